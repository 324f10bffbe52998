import { hostname } from "node:os";
import { resolve } from "node:path";

/** The pool of this machine, for sessions whose files are on it alone: "host:NAME". */
export function hostPool(name: string = hostname()): string {
  return `host:${name}`;
}

/** The pool of the machines that have a folder at this path, on storage that they share: "workspace:PATH". */
export function workspacePool(path: string): string {
  return `workspace:${resolve(path)}`;
}
