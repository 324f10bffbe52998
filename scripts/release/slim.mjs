import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix, sep } from "node:path";
import { minifySync } from "rolldown/utils";

/** What a declaration imports of its own package. */
const IMPORT = /(?:from|import\()\s*"(\.[^"]+)"/g;

/**
 * Takes out of a staged package what its users do not see: comments of the code, because those of
 * what is public are in the declarations, and declarations that no entry point leads to. The code stays readable, with all its names.
 *
 * @param {string} folder
 */
export function slimPackage(folder) {
  const files = listBuilt(folder);
  if (files.length === 0) return;
  const reached = findDeclarations(folder, files);
  for (const file of files) {
    const path = join(folder, file);
    if (file.endsWith(".d.ts")) {
      if (!reached.has(file)) rmSync(path);
    } else if (file.endsWith(".map")) {
      // Of an older build: there are no sources beside it.
      rmSync(path);
    } else if (file.endsWith(".js")) {
      writeFileSync(path, removeComments(file, readFileSync(path, "utf8")));
    }
  }
}

/** @param {string} folder */
function listBuilt(folder) {
  const dist = join(folder, "dist");
  if (!existsSync(dist)) return [];
  return readdirSync(dist, { recursive: true, encoding: "utf8" }).map((name) =>
    posix.join("dist", ...name.split(sep)),
  );
}

/**
 * The declarations that a compiler reads, from the entry points on.
 *
 * @param {string} folder
 * @param {readonly string[]} files
 */
function findDeclarations(folder, files) {
  const { exports = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  /** @type {string[]} */
  const found = Object.values(exports).flatMap(({ types }) => types ?? []);
  const reached = new Set(
    found.flatMap((path) => {
      const [start = "", end] = posix.normalize(path).split("*");
      if (end === undefined) return [start];
      return files.filter((file) => file.startsWith(start) && file.endsWith(end));
    }),
  );
  for (const file of reached) {
    for (const [, path = ""] of readFileSync(join(folder, file), "utf8").matchAll(IMPORT)) {
      reached.add(posix.join(dirname(file), path).replace(/\.[jt]s$/, ".d.ts"));
    }
  }
  return reached;
}

/**
 * @param {string} file
 * @param {string} text
 */
function removeComments(file, text) {
  const { code, errors } = minifySync(file, text, {
    ...{ module: true, compress: false, mangle: false },
    codegen: { removeWhitespace: false },
  });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  return code;
}
