import { statSync } from "node:fs";
import type { Session } from "@gyre/sessions";

/** The session that an agent goes on with, open, or the way to a new one. Neither: none is written. */
export interface ChosenSession {
  session?: Session;
  newSession?: () => Promise<Session>;
}

/** The session of a file, which is made with the first prompt where it is missing or empty. */
export async function chooseSessionFile(
  path: string,
  cwd: string,
  warn: (text: string) => void,
): Promise<ChosenSession> {
  const { createSession, openSession } = await import("@gyre/sessions");
  const found = statSync(path, { throwIfNoEntry: false });
  const isNew = !found || (found.isFile() && found.size === 0);
  if (isNew) return { newSession: () => createSession(path, { cwd }) };
  const session = await openSession(path);
  warnOfDamage(session, warn);
  return { session };
}

/** Reports what is wrong with a session that was opened. */
export function warnOfDamage(
  { header, path = header.id, problems = [] }: Session,
  warn: (text: string) => void,
): void {
  for (const { line, message } of problems) warn(`${path}, line ${line}: ${message}`);
}
