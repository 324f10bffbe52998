import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { type BytePath, fromBytes, fromText } from "./byte-path.ts";
import type { Effect } from "./effect.ts";

/** A program that has a file open which a command changed in its layer. */
export interface FileUser {
  id: number;
  path: BytePath;
  pid: number;
  name: string;
  /** It could write: what it writes after the file was replaced is lost. */
  writes: boolean;
}

/** Among the flags of a handle: opened to write, to read and write. */
const WRITES = 0o3;
const OCTAL = 8;

/**
 * Which programs have open what effects replace or delete. They would go on with the old file, a database
 * say, and what they write then is lost. Programs of other users cannot be looked at.
 */
export function findUsers(root: string, effects: readonly Effect[]): FileUser[] {
  const ids = new Map<BytePath, number>();
  const folders: { path: BytePath; id: number }[] = [];
  for (const { id, path, kind, before } of effects) {
    if (kind === "create" || kind === "mode" || !before) continue;
    if (before.type === "folder") folders.push({ path: `${path}/`, id });
    else ids.set(path, id);
  }
  if (ids.size + folders.length === 0) return [];
  const prefix = `${fromText(root)}/`;
  const users: FileUser[] = [];
  for (const pid of listNumbers("/proc")) {
    if (pid === process.pid) continue;
    for (const handle of listNumbers(`/proc/${pid}/fd`)) {
      const open = readLink(`/proc/${pid}/fd/${handle}`);
      if (!open?.startsWith(prefix)) continue;
      const path = open.slice(prefix.length);
      const id = ids.get(path) ?? folders.find((folder) => path.startsWith(folder.path))?.id;
      if (id === undefined) continue;
      users.push({ id, path, pid, name: readName(pid), writes: isWriter(pid, handle) });
    }
  }
  return users;
}

function listNumbers(folder: string): number[] {
  return read(() => readdirSync(folder), [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readLink(path: string): BytePath | undefined {
  return read(() => fromBytes(readlinkSync(path, { encoding: "buffer" })), undefined);
}

function readName(pid: number): string {
  const name = read(() => readFileSync(join("/proc", String(pid), "comm"), "utf8"), "");
  return name.trim() || "a program";
}

function isWriter(pid: number, handle: number): boolean {
  const text = read(() => readFileSync(`/proc/${pid}/fdinfo/${handle}`, "utf8"), "");
  const flags = /^flags:\s*([0-7]+)/m.exec(text)?.[1];
  return flags === undefined || (Number.parseInt(flags, OCTAL) & WRITES) !== 0;
}

/** A program ends when it likes, and that of another user is closed to us. */
function read<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
