import { chmod, lstat, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { FilePlace } from "../file-history/lines/line.ts";
import type { HistoryWorld } from "./history-world.ts";

/** Below `n`, as a seed decides. */
export type Random = (n: number) => number;
export type Files = Readonly<Record<string, string>>;

export const PATHS: readonly string[] = ["a", "b", "d/c", "d/e", "f/g/h"];

/** Numbers that a seed decides. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

export function pick<T>(random: Random, all: readonly T[]): T {
  const one = all[random(all.length)];
  if (one === undefined) throw new Error("There is nothing to pick from.");
  return one;
}

/** Does one of many things to one of the files. */
export async function disturb(w: HistoryWorld, random: Random): Promise<void> {
  const path = pick(random, PATHS);
  const at = w.path(path);
  const stats = await lstat(at).catch(() => undefined);
  await mkdir(dirname(at), { recursive: true });
  switch (random(8)) {
    case 0:
      return rm(at, { force: true });
    case 1: {
      const to = w.path(pick(random, PATHS));
      await mkdir(dirname(to), { recursive: true });
      return stats ? rename(at, to) : undefined;
    }
    case 2:
      return stats?.isFile() ? chmod(at, pick(random, [0o644, 0o755, 0o444])) : undefined;
    case 3:
      await rm(at, { force: true });
      return symlink(pick(random, ["a", "../nowhere"]), at);
    default:
      // A link would be followed.
      await rm(at, { force: true });
      return writeFile(at, String(random(1_000_000)));
  }
}

/** A place of a session, with the files that were there. */
export interface KnownPlace {
  /** Where the conversation goes on. */
  entry: number | null;
  to: FilePlace;
  files: Files;
}

/** A prompt with its answer, and calls between them that change files. Gives the places that it makes. */
export async function converse(
  w: HistoryWorld,
  random: Random,
  work: () => Promise<void> = () => disturb(w, random),
): Promise<KnownPlace[]> {
  const entry = w.session.leaf;
  const before = await w.files();
  const places: KnownPlace[] = [];
  const prompt = await w.run(async () => {
    for (let call = random(4); call > 0; call--) {
      await say(w);
      const change = async (): Promise<void> => {
        for (let count = random(3); count >= 0; count--) await work();
      };
      await (random(2) === 0 ? w.shell(change) : w.edit(PATHS, change));
      places.push(await placeHere(w));
    }
    await say(w);
  });
  return [{ entry, to: { before: prompt }, files: before }, ...places, await placeHere(w)];
}

async function placeHere(w: HistoryWorld): Promise<KnownPlace> {
  const entry = w.session.leaf;
  return { entry, to: { after: entry }, files: await w.files() };
}

async function say(w: HistoryWorld): Promise<void> {
  const message = {
    role: "assistant" as const,
    content: [{ type: "text" as const, text: "Well." }],
    api: "none",
    provider: "none",
    model: "none",
    usage: {},
    stopReason: "stop" as const,
    timestamp: 0,
  };
  await w.session.append({ type: "message", message });
}
