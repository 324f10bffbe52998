import type { ToolEnv } from "../contract/env.ts";

/** Where a command runs; an error where that is no folder of the workspace. */
export async function workingFolder(env: ToolEnv, path: string | undefined): Promise<string> {
  if (path === undefined) return env.workspace.root;
  const { absolute } = await env.workspace.resolve(path);
  const { kind } = await env.workspace.stat(path);
  if (kind !== "folder") throw new Error(`"${path}" is not a folder: a command cannot run in it.`);
  return absolute;
}
