import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../../core/io.ts";

const OWNER_ONLY = 0o600;

/**
 * Opens a text in the program that VISUAL or EDITOR names, which gets the terminal. Returns undefined where the
 * program ended with an error: the text then stays. Throws where neither is set or the program cannot be started.
 */
export async function editExternally(text: string, env: Environment): Promise<string | undefined> {
  const program = env["VISUAL"] || env["EDITOR"];
  if (!program) {
    throw new Error("No editor is named. Set EDITOR, to `nano` or `code --wait`, say.");
  }
  const folder = await mkdtemp(join(tmpdir(), "gyre-prompt-"));
  const file = join(folder, "prompt.md");
  try {
    await writeFile(file, text, { mode: OWNER_ONLY });
    // The variable may contain options and quotes: a shell parses them.
    const code = await runToEnd("/bin/sh", ["-c", `${program} "$1"`, "sh", file]);
    return code === 0 ? (await readFile(file, "utf8")).replace(/\n$/, "") : undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runToEnd(command: string, args: readonly string[]): Promise<number | null> {
  return new Promise((settle, fail) => {
    const child = spawn(command, args, { stdio: "inherit" });
    child.once("error", fail);
    child.once("close", settle);
  });
}
