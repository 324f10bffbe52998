import type { Stats } from "node:fs";

/** Files that are looked at together: those of one folder. */
export interface FileGroup {
  /** Names the group. */
  key: string;
  /** What each name begins with, from the workspace: "" or a folder with a slash. */
  prefix: string;
  names: readonly string[];
}

/** Notes of files what the system says of them, and finds those that differ. */
export interface StatShard {
  /** Adds groups, or replaces those of the same key: what was noted of a name that stays is kept. */
  set(groups: readonly FileGroup[]): void;
  drop(keys: readonly string[]): void;
  /**
   * The paths of files that are new, have changed or are gone since the last look, and of those
   * that may have changed without a trace: within one tick of the clock before the last look.
   * `keys`: only these groups.
   */
  look(keys?: readonly string[]): string[];
}

/** As `lstatSync`: nothing for what is not there. */
export type ReadStats = (path: string, options: { throwIfNoEntry: false }) => Stats | undefined;

/**
 * Makes one. It uses nothing from outside of itself, so that a worker can be made of its text:
 * see `StatPool`. A number has the time to a quarter of a microsecond: less than a tick.
 */
export function createStatShard(lstat: ReadStats, root: string): StatShard {
  // A change this long after another one has another time, if the file system keeps fractions of
  // seconds; else it takes two, and some more.
  const tickMs = 20;
  const longTickMs = 2_500;
  const fields = 5;
  interface Noted {
    prefix: string;
    names: readonly string[];
    /** Size, both times, inode and mode of each; a size of -1 has to be looked at in any case. */
    stats: Float64Array;
  }
  const groups = new Map<string, Noted>();

  /** Whether it is to be reported. */
  const note = (path: string, stats: Float64Array, at: number, now: number): boolean => {
    let found;
    try {
      found = lstat(path, { throwIfNoEntry: false });
    } catch {
      // A folder on the way is a file now, or is closed to us.
    }
    if (!found || found.isDirectory()) {
      const isNew = stats[at] !== -2;
      stats[at] = -2;
      return isNew;
    }
    const { size, mtimeMs, ctimeMs, ino, mode } = found;
    const isSame =
      stats[at] === size &&
      stats[at + 1] === mtimeMs &&
      stats[at + 2] === ctimeMs &&
      stats[at + 3] === ino &&
      stats[at + 4] === mode;
    if (isSame) return false;
    const isRacy = ctimeMs > now - (ctimeMs % 1000 === 0 ? longTickMs : tickMs);
    stats[at] = isRacy ? -1 : size;
    stats[at + 1] = mtimeMs;
    stats[at + 2] = ctimeMs;
    stats[at + 3] = ino;
    stats[at + 4] = mode;
    return true;
  };

  return {
    set(given) {
      for (const { key, prefix, names } of given) {
        const last = groups.get(key);
        const places = new Map(last?.names.map((name, index) => [name, index]));
        const stats = new Float64Array(names.length * fields).fill(-1);
        names.forEach((name, index) => {
          const from = places.get(name);
          if (!last || from === undefined || last.prefix !== prefix) return;
          stats.set(last.stats.subarray(from * fields, (from + 1) * fields), index * fields);
        });
        groups.set(key, { prefix, names, stats });
      }
    },
    drop(keys) {
      for (const key of keys) groups.delete(key);
    },
    look(keys) {
      // The clock is read first: a file counts rather too often as changed shortly before.
      const now = Date.now();
      const changed: string[] = [];
      for (const key of keys ?? groups.keys()) {
        const group = groups.get(key);
        if (!group) continue;
        const { prefix, names, stats } = group;
        const start = `${root}/${prefix}`;
        for (let index = 0; index < names.length; index++) {
          const name = names[index] ?? "";
          if (note(start + name, stats, index * fields, now)) changed.push(prefix + name);
        }
      }
      return changed;
    },
  };
}
