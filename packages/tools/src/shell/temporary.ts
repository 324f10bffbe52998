import { lstat, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ToolEnv } from "../contract/env.ts";
import { HOST_NAME } from "../process/leftovers.ts";
import { describeHost } from "@gyre/ai/programs";
import { humanSize } from "@gyre/ai/text";
import { runProgram } from "../process/processes.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** Files that may be in it: they take room as well. */
const MAX_FILES = 200_000;
const EMPTY_TIMEOUT_MS = 60_000;

/** Closed folders are opened, so that what is in them can go; nothing follows a link. */
const EMPTY_SCRIPT =
  "find /tmp -xdev -mindepth 1 -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null; " +
  "find /tmp -xdev -mindepth 1 -delete 2>/dev/null; true";

/** Makes the folder, and notes by which process: after a crash the next toolset removes it. */
export async function makeTemporary(folder: string): Promise<string> {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  const host = made === undefined ? undefined : describeHost();
  if (host !== undefined) {
    await writeFile(join(dirname(folder), HOST_NAME), host, { mode: 0o600 });
  }
  return folder;
}

/**
 * Empties the /tmp of sandboxed commands where it holds too much, and gives the sentence that
 * says so. A job may still run and swap folders for links: so it is emptied in the sandbox.
 */
export async function limitTemporary(env: ToolEnv, sandbox: Sandbox): Promise<string | undefined> {
  if (!env.temporary || sandbox.kind !== "bubblewrap") return undefined;
  const { folder, maxBytes } = env.temporary;
  if (!(await holdsMore(folder, maxBytes))) return undefined;
  const program = sandbox.wrap(
    {
      argv: ["/bin/sh", "-c", EMPTY_SCRIPT],
      cwd: "/",
      env: { PATH: env.environment["PATH"] ?? "/usr/bin:/bin" },
    },
    { writable: [], readOnly: [], hidden: [], network: false, temporary: folder },
  );
  const { clock, spoolFolder } = env;
  await runProgram(program, { timeoutMs: EMPTY_TIMEOUT_MS, clock, spoolFolder });
  return `/tmp held more than ${humanSize(maxBytes)}, and was emptied.`;
}

async function holdsMore(folder: string, maxBytes: number): Promise<boolean> {
  let bytes = 0;
  let files = 0;
  const folders = [folder];
  for (const path of folders) {
    // Gone meanwhile, or closed: the size of what is in it is not known, and it takes no more.
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const at = join(path, entry.name);
      if (entry.isDirectory()) folders.push(at);
      // Room on the disk, not length: a file may have holes.
      else bytes += ((await lstat(at).catch(() => undefined))?.blocks ?? 0) * 512;
      if (++files > MAX_FILES || bytes > maxBytes) return true;
    }
  }
  return false;
}
