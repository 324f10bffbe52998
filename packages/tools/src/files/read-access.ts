import { sep } from "node:path";
import type { Access } from "../contract/access.ts";
import type { ToolEnv } from "../contract/env.ts";

/** What a tool that only looks at one path would do: read it, where its links lead, outside of the workspace too. */
export async function readAccess(
  env: ToolEnv,
  verb: string,
  args: Record<string, unknown>,
): Promise<Access> {
  const place = await env.workspace.resolve(readPath(args), { outside: true });
  if (place.outside) {
    const target = place.absolute.replaceAll(sep, "/");
    const summary = `${verb} ${JSON.stringify(target)}, outside of the workspace`;
    return { kind: "read", targets: [target], outside: [place.absolute], summary };
  }
  const target = place.path || ".";
  return { kind: "read", targets: [target], summary: `${verb} ${JSON.stringify(target)}` };
}

/** The path of a call; the workspace itself where it names none. */
export function readPath(args: Record<string, unknown>): string {
  const { path } = args;
  if (path === undefined || path === "") return ".";
  if (typeof path !== "string") throw new TypeError(`"path" is to be text, not ${typeof path}.`);
  return path;
}
