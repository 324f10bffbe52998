import { rename, rm, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { errnoOf, errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { readBeginning } from "../core/read-beginning.ts";
import { asCode } from "../text/markdown-text.ts";
import { sizeText } from "../text/session-text.ts";
import { shortId } from "@gyre/coding/internal/text/session-title";
import type { SlashCommand } from "./command-context.ts";

/** For the user alone: a conversation may hold what others should not read. */
const FILE_MODE = 0o600;

/** `/export [FILE]`: this conversation as one page. */
export const exportCommand: SlashCommand = {
  name: "export",
  about: "write this conversation to an HTML file",
  hint: "[FILE]",
  async run(rest, { harness: { session }, setup }) {
    if (!session) throw new Error("Nothing was said in this session yet.");
    const name = rest === "" ? `gyre-${shortId(session.header.id)}.html` : rest;
    const path = resolve(setup.cwd, name);
    const bytes = await writeExport(session, path);
    return `Written to ${asCode(path)} (${sizeText(bytes)}).`;
  },
};

/**
 * Writes the page, at once or not at all; gives its size in bytes. Replaces nothing but an
 * earlier page of the same session.
 */
export async function writeExport(session: Session, path: string): Promise<number> {
  const { exportMark, MARK_BYTES, sessionHtml } = await import("../modes/tui/export/html.ts");
  const there = await readMark(path, MARK_BYTES);
  if (there !== undefined && !there.includes(exportMark(session.header.id))) {
    throw new Error(
      `${path} is there already, and is no export of this session. Give another name: /export FILE`,
    );
  }
  const draft = `${path}.${process.pid}.draft`;
  try {
    await writeFile(draft, sessionHtml(session), { flag: "wx", mode: FILE_MODE });
    const { size } = await stat(draft);
    await rename(draft, path);
    return size;
  } catch (cause) {
    await rm(draft, { force: true });
    throw new Error(`${path} cannot be written: ${errorMessage(cause)}`, { cause });
  }
}

/** Nothing where there is no file. */
async function readMark(path: string, bytes: number): Promise<string | undefined> {
  try {
    return await readBeginning(path, bytes);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw new Error(`${path} cannot be looked at: ${errorMessage(error)}`, { cause: error });
  }
}
