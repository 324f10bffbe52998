import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { defaultSessionFolder } from "@gyre/sessions";
import { ExitError, EXIT } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import type { Values } from "./options.ts";

const run = promisify(execFile);
const NAME_BYTES = 3;

/**
 * Makes a worktree of the repository around the folder that is worked in, on a branch of its own, and gives
 * the command line that works in it. It stays when the program ends.
 */
export async function useWorktree(values: Values, io: Io): Promise<Values> {
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  const git = async (...args: string[]): Promise<string> =>
    (await run("git", ["-C", cwd, ...args], { env: { ...io.env } })).stdout.trim();
  try {
    const root = await git("rev-parse", "--show-toplevel");
    const below = await git("rev-parse", "--show-prefix");
    const name = `${basename(root)}-${randomBytes(NAME_BYTES).toString("hex")}`;
    const folder = join(dirname(defaultSessionFolder(io.env)), "worktrees", name);
    await mkdir(dirname(folder), { recursive: true });
    await git("worktree", "add", "-b", `gyre/${name}`, folder);
    io.stderr.write(
      `Works in ${folder} on the branch gyre/${name}. To remove it: git worktree remove ${folder}\n`,
    );
    return { ...values, cwd: join(folder, below) };
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw new ExitError(EXIT.failed, `--worktree: ${reason}`, { cause: error });
  }
}
