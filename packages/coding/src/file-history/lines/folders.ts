import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { defaultSessionFolder } from "@gyre/sessions";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the histories of this user are: beside the sessions. */
export function historyFolder(env: Environment): string {
  return join(dirname(defaultSessionFolder(env)), "files");
}

/** Where what is kept of the files of a session is, in the folder with all histories. */
export function historyIn(folder: string, session: string): string {
  return join(folder, folderName(session));
}

/** Where what is kept of the files of a session is. */
export function sessionHistoryFolder(env: Environment, session: string): string {
  return historyIn(historyFolder(env), session);
}

/** Takes away what is kept of the files of a session. */
export async function removeHistory(env: Environment, session: string): Promise<void> {
  await rm(sessionHistoryFolder(env, session), { recursive: true, force: true });
}

/** An id that came with a file may be anything. */
function folderName(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(id)) return id;
  return createHash("sha256").update(id).digest("hex");
}
