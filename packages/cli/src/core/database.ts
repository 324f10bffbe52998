import { resolve } from "node:path";
import { EXIT, ExitError, UsageError } from "./exit-codes.ts";

/** A relative path is meant from the folder that the program was started in. */
export function resolveFileUrl(url: string, cwd: string): string {
  const [, path = ""] = /^file:(?!\/\/)(.*[^/])$/.exec(url) ?? [];
  return path === "" ? url : `file:${resolve(cwd, path)}`;
}

/** Why a database could not be opened, in terms of this program. */
export function explainDatabaseError(error: Error & { code: string }): ExitError | UsageError {
  const options = { cause: error };
  if (error.code === "bad_url") return new UsageError(error.message, options);
  return new ExitError(EXIT.failed, error.message, options);
}
