import { join, relative, sep } from "node:path";
import { isWithin } from "../sandbox/places.ts";
import type { Workspace } from "./types.ts";

/** The folders that were added to a workspace, by their paths from it. */
export function listAdded({ root, folders }: Pick<Workspace, "root" | "folders">): string[] {
  return folders.map((folder) => relative(root, folder).replaceAll(sep, "/"));
}

/** Whether a path from the workspace begins outside of the workspace's own folder. */
export function isBeside(path: string): boolean {
  return path === ".." || path.startsWith("../");
}

/**
 * The folder of a workspace that a path is in, by its path from the workspace: "" for its own, an added one, or
 * the place itself where it is outside.
 */
export function findStart(workspace: Pick<Workspace, "root" | "folders">, path: string): string {
  if (!isBeside(path)) return "";
  const absolute = join(workspace.root, path);
  const around = workspace.folders.findIndex((folder) => isWithin(absolute, folder));
  return listAdded(workspace)[around] ?? path;
}
