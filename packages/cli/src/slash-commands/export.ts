import { open, rename, rm, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Session } from "@gyre/sessions";
import { asCode } from "../text/markdown-text.ts";
import { sizeText } from "../text/session-text.ts";
import { shortId } from "../text/session-title.ts";
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
  const there = await readBeginning(path, MARK_BYTES);
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
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${path} cannot be written: ${why}`, { cause });
  }
}

/** Nothing where there is no file. */
async function readBeginning(path: string, bytes: number): Promise<string | undefined> {
  try {
    const file = await open(path, "r");
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be looked at: ${why}`, { cause: error });
  }
}
