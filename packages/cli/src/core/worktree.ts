import { randomBytes } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";
import { defaultSessionFolder } from "@gyre/sessions";
import { Repository } from "@gyre/coding/internal/copies/repository";
import { ExitError, EXIT } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import type { Values } from "./options.ts";

const NAME_BYTES = 3;

/**
 * Makes a worktree of the repository around the folder that is worked in, on a branch of its own, and gives
 * the command line that works in it. It stays when the program ends.
 */
export async function useWorktree(values: Values, io: Io): Promise<Values> {
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  try {
    const repository = await Repository.find(cwd, io.env);
    const name = `${basename(repository.root)}-${randomBytes(NAME_BYTES).toString("hex")}`;
    const folder = join(dirname(defaultSessionFolder(io.env)), "worktrees", name);
    await repository.addWorktree(folder, `gyre/${name}`);
    io.stderr.write(
      `Works in ${folder} on the branch gyre/${name}. To remove it: git worktree remove ${folder}\n`,
    );
    return { ...values, cwd: join(folder, repository.below) };
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw new ExitError(EXIT.failed, `--worktree: ${reason}`, { cause: error });
  }
}
