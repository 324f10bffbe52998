import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { FolderError, type Toolset } from "@gyre/tools";
import type { NoticeMessage } from "../conversation/notice.ts";
import type { Environment } from "../core/environment.ts";
import { CodingAgentError } from "../core/errors.ts";
import type { FileRecorder } from "../file-history/recorder.ts";

export interface AddFolderParts {
  toolset: Pick<Toolset, "env">;
  fileHistory: FileRecorder | undefined;
  env: Environment;
  /** Whether a session may work in a folder. */
  isAllowed: (folder: string) => boolean;
}

/**
 * Adds a folder to the workspace of a session that goes on. Gives what the model is to know of it, or nothing where
 * it belongs to the workspace already.
 */
export async function addFolder(
  path: string,
  { toolset, fileHistory, env, isAllowed }: AddFolderParts,
): Promise<{ folder: string; notice: NoticeMessage } | undefined> {
  const { workspace } = toolset.env;
  const home = env["HOME"] || homedir();
  const wanted = path === "~" || path.startsWith("~/") ? join(home, path.slice(1)) : path;
  const absolute = resolve(workspace.root, wanted);
  if (!isAllowed(absolute)) {
    throw new CodingAgentError("bad_option", `${absolute} is not a folder for sessions here.`);
  }
  const folder = addTo(workspace, absolute);
  if (folder === undefined) return undefined;
  // What is in it was there before: else it would count as made by the next call.
  await fileHistory?.lookAround();
  const text = `The user has added the folder ${folder} to the workspace: tools and commands may read and change it.`;
  return { folder, notice: { role: "notice", text, summary: "", timestamp: Date.now() } };
}

function addTo(workspace: Toolset["env"]["workspace"], folder: string): string | undefined {
  try {
    return workspace.addFolder(folder);
  } catch (error) {
    if (!(error instanceof FolderError)) throw error;
    throw new CodingAgentError("bad_option", error.message, { cause: error });
  }
}
