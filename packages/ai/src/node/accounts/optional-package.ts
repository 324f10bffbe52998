import { errnoOf } from "../../common/errors.ts";

/** A package that is installed by those who need it is not there. The message has the command. */
export class MissingPackageError extends Error {
  readonly code = "missing_package";
  readonly packageName: string;
  constructor(packageName: string, purpose: string) {
    super(`${purpose} need the package ${packageName}. Run: npm install ${packageName}`);
    this.name = "MissingPackageError";
    this.packageName = packageName;
  }
}

/** What Node says of a package that is not there, and what code says that a bundler built without it. */
const NOT_FOUND = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * Why a package that is not a dependency did not load. `purpose` is what needs it, as the beginning of a sentence. Its
 * `import()` has to stand in the `try` itself: then bundlers build a program without the package.
 */
export function explainLoadError(error: unknown, name: string, purpose: string): unknown {
  return NOT_FOUND.has(errnoOf(error) ?? "") ? new MissingPackageError(name, purpose) : error;
}
