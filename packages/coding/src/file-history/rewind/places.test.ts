import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import {
  converse,
  createRandom,
  disturb,
  type Files,
  type KnownPlace,
  PATHS,
  pick,
  type Random,
} from "../../testing/file-places.ts";
import { type HistoryWorld, historyWorld, RUN } from "../../testing/history-world.ts";
import type { RewindReport } from "./apply.ts";

const seed = pickSeed();
/** Of so many cases some are killed in the middle. */
const MANY = 50;

async function inWorld(
  number: number,
  check: (w: HistoryWorld, random: Random) => Promise<void>,
): Promise<void> {
  const w = await historyWorld();
  try {
    await check(w, createRandom(seed + number));
    expect(w.warnings).toEqual([]);
  } catch (error) {
    throw new Error(`Set GYRE_SEED=${seed + number} GYRE_PLACE_CASES=1 to see this again.`, {
      cause: error,
    });
  } finally {
    await w.close();
  }
}

/** Brings files and conversation to a place. */
async function jump(
  w: HistoryWorld,
  { entry, to }: Pick<KnownPlace, "entry" | "to">,
  withConflicts = false,
): Promise<RewindReport> {
  const report = await w.recorder.apply(await w.recorder.plan(to), { withConflicts });
  await w.session.branch(entry);
  return report;
}

/** As it is before another rewind is made of it. */
async function takeBack(w: HistoryWorld): Promise<void> {
  const lines = await w.recorder.lines();
  const line = lines.findLastIndex(({ by }) => by === "rewind");
  const leaf = lines[line]?.leaf ?? null;
  await jump(w, { entry: leaf, to: { line } });
}

describe("a place of the tree", () => {
  it(
    "has its files again, whichever place one comes from",
    { tags: "long", timeout: 600_000 },
    async () => {
      for (let number = 0; number < countCases(8, 100, "GYRE_PLACE_CASES"); number++) {
        await inWorld(number, async (w, random) => {
          for (let count = random(4); count > 0; count--) await disturb(w, random);
          const places: KnownPlace[] = [];
          for (let step = 0; step < 8; step++) {
            places.push(...(await converse(w, random)));
            if (random(2) === 0) continue;
            const place = pick(random, places);
            // The conversation alone, at times: what comes then begins with the files of now.
            if (random(3) === 0) await w.session.branch(place.entry);
            else await jump(w, place);
          }
          for (let count = 0; count < 8; count++) {
            const here = await w.files();
            const place = pick(random, places);
            const report = await jump(w, place);
            expect(report).toMatchObject({ left: [], failed: [] });
            expect(await w.files()).toEqual(place.files);
            if (random(3) > 0 || report.done.length === 0) continue;
            await takeBack(w);
            expect(await w.files()).toEqual(here);
          }
        });
      }
    },
  );

  it(
    "leaves alone what others have changed, and it can be taken back",
    { tags: "long", timeout: 600_000 },
    async () => {
      for (let number = 0; number < countCases(8, 100, "GYRE_PLACE_CASES"); number++) {
        await inWorld(number, async (w, random) => {
          const places: KnownPlace[] = [];
          /** What the user wrote last, as long as it is there. */
          const own = new Map<string, string | undefined>();
          /** What the session had left before that. */
          const left = new Map<string, string | undefined>();
          /** All that the user ever made of a file. */
          const theirs = new Map<string, Set<string | undefined>>();
          const note = (before: Files, after: Files, isUser: boolean): void => {
            for (const path of PATHS) {
              if (before[path] === after[path]) continue;
              if (!isUser) own.delete(path);
              else {
                if (!own.has(path)) left.set(path, before[path]);
                own.set(path, after[path]);
                // What is as the session had left it is the session's again.
                if (left.get(path) === after[path]) own.delete(path);
                theirs.set(path, (theirs.get(path) ?? new Set()).add(after[path]));
              }
            }
          };
          for (let step = 0; step < 12; step++) {
            const before = await w.files();
            const kind = random(5);
            if (kind < 2) {
              places.push(...(await converse(w, random)));
              note(before, await w.files(), false);
            } else if (kind === 2) {
              await disturb(w, random);
              note(before, await w.files(), true);
            } else if (places.length > 0) {
              const place = pick(random, places);
              const report = await jump(w, place);
              const after = await w.files();
              for (const path of PATHS) {
                const seen = [path, after[path]];
                const users = theirs.get(path);
                if (own.has(path)) expect(seen).toEqual([path, own.get(path)]);
                else if (!users) expect(seen).toEqual([path, place.files[path]]);
                // It stays, is as it was there, or as the user had it when a call first changed it.
                else expect([before[path], place.files[path], ...users]).toContain(after[path]);
              }
              if (report.done.length === 0 || random(2) === 0) continue;
              await takeBack(w);
              expect(await w.files()).toEqual(before);
            }
          }
        });
      }
    },
  );

  it("has what others changed before a prompt, and not what they changed before the answer", async () => {
    await inWorld(0, async (w) => {
      const write = (text: string) => () => w.shell(() => w.put("a", text, 0o644));
      const first = await w.run(write("by the agent"));
      await w.put("a", "by the user");
      const second = await w.run(write("by both"));
      await w.recorder.apply(await w.recorder.plan({ before: second }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 by the user" });
      const plan = await w.recorder.plan({ after: first });
      expect(plan.steps).toMatchObject([
        { path: "a", conflict: { why: expect.stringContaining("outside of this session") } },
      ]);
      await w.recorder.apply(plan, { withConflicts: true });
      expect(await w.files()).toEqual({ a: "644 by the agent" });
      // What they wrote is there as long as the session is.
      await w.recorder.apply(await w.recorder.plan({ before: second }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 by the user" });
    });
  });

  it("before a prompt has what others had changed by then, though the agent changed it later", async () => {
    await inWorld(0, async (w) => {
      const write = (path: string, text: string) => () => w.shell(() => w.put(path, text, 0o644));
      await w.run(write("a", "by the agent"));
      await w.put("a", "by the user");
      const second = await w.run(write("b", "two"));
      const third = await w.run(write("a", "by both"));
      const plan = await w.recorder.plan({ before: second });
      expect(plan.steps.map(({ path, conflict }) => [path, conflict])).toEqual([
        ["a", undefined],
        ["b", undefined],
      ]);
      await w.recorder.apply(plan, { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 by the user" });
      await w.recorder.apply(await w.recorder.plan({ after: third }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 by both", b: "644 two" });
    });
  });

  it("knows it as well where the program was ended and started again in between", async () => {
    await inWorld(0, async (w) => {
      await w.run(() => w.shell(() => w.put("a", "by the agent", 0o644)));
      await w.put("a", "by the user");
      const again = w.reopened();
      const run = async (): Promise<number> => {
        const end = again.middleware.run?.(RUN);
        const message = { role: "user", content: "Go on.", timestamp: 1 } as const;
        const { id } = await w.session.append({ type: "message", message });
        end?.(undefined);
        await again.lines();
        return id;
      };
      const second = await run();
      expect((await again.lines()).at(-1)).toMatchObject({ by: "user", entry: second });
      const lines = (await again.lines()).length;
      await run();
      expect(await again.lines()).toHaveLength(lines);
    });
  });

  it("keeps a change of others that a later prompt has seen, and that no call has changed again", async () => {
    await inWorld(0, async (w) => {
      const write = (path: string, text: string) => () => w.shell(() => w.put(path, text, 0o644));
      const first = await w.run(write("a", "one"));
      await w.put("a", "by the user");
      const second = await w.run(write("b", "two"));
      await w.put("a", "by the user again");
      await w.run(write("b", "three"));
      for (const place of [{ after: first }, { before: second }]) {
        const plan = await w.recorder.plan(place);
        expect(plan.steps.map(({ path }) => path)).toEqual(["b"]);
      }
      const start = await w.recorder.plan({ before: first });
      expect(start.steps).toMatchObject([{ path: "a", conflict: {} }, { path: "b" }]);
    });
  });

  it("keeps a change of others to a file that is the same there", async () => {
    await inWorld(0, async (w) => {
      const write = (path: string, text: string) => () => w.shell(() => w.put(path, text, 0o644));
      const first = await w.run(write("a", "one"));
      await w.run(write("b", "two"));
      await w.put("a", "by the user");
      const plan = await w.recorder.plan({ after: first });
      expect(plan.steps.map(({ path }) => path)).toEqual(["b"]);
      await w.recorder.apply(plan, { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 by the user" });
    });
  });

  it("has what a command did before its result is there, where that is wanted", async () => {
    const w = await historyWorld({ waitsForLooks: true });
    try {
      await w.run(async () => {
        await w.shell(() => w.put("a", "one", 0o644));
        const list = join(w.folder, w.session.header.id, "changes.jsonl");
        expect(JSON.parse(await readFile(list, "utf8"))).toMatchObject({
          changes: [{ path: "a" }],
        });
      });
    } finally {
      await w.close();
    }
  });

  it("is reached by a rewind that was cut off when a link was gone and its file not yet there", async () => {
    await inWorld(0, async (w) => {
      const path = join(w.root, "a");
      const first = await w.run(() => w.shell(() => w.put("a", "one", 0o644)));
      await w.run(() =>
        w.shell(async () => {
          await rm(path);
          await symlink("../nowhere", path);
        }),
      );
      const line = (await w.recorder.lines()).at(-1);
      const changes = line?.changes.map(({ before, after }) => ({
        path: "a",
        before: after,
        after: before,
      }));
      const intent = { ...line, by: "intent", to: { after: first }, changes };
      const list = join(w.folder, w.session.header.id, "changes.jsonl");
      await appendFile(list, `${JSON.stringify(intent)}\n`);
      await rm(path);
      const next = w.reopened({ warn: () => {} });
      await next.apply(await next.plan({ after: first }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 one" });
    });
  });

  it("goes by what an older program has written", async () => {
    await inWorld(0, async (w) => {
      const write = (text: string) => () => w.shell(() => w.put("a", text, 0o644));
      const first = await w.run(write("one"));
      const second = await w.run(write("two"));
      const lines = (await w.recorder.lines()).map(({ leaf: _leaf, ...line }) => line);
      const list = join(w.folder, w.session.header.id, "changes.jsonl");
      await writeFile(list, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      const old = w.reopened();
      await old.apply(await old.plan({ before: second }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 one" });
      await old.apply(await old.plan({ before: first }), { withConflicts: false });
      expect(await w.files()).toEqual({});
      await old.apply(await old.plan({ after: second }), { withConflicts: false });
      expect(await w.files()).toEqual({ a: "644 two" });
    });
  });
});

describe("a process that is killed while it brings files to a place", () => {
  let home = "";

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "gyre-jump-"));
    const bundle = await rolldown({
      input: fileURLToPath(new URL("../../testing/jump-program.ts", import.meta.url)),
      platform: "node",
      resolve: { conditionNames: ["@gyre/source", "import"] },
      logLevel: "silent",
    });
    await bundle.write({ dir: home, entryFileNames: "jump.mjs" });
    await bundle.close();
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  /** Whether it was killed before it was done. */
  async function killAt(w: HistoryWorld, place: KnownPlace, number: number): Promise<boolean> {
    const { path = "" } = w.session;
    const program = join(home, "jump.mjs");
    const args = [program, w.root, w.folder, path, JSON.stringify(place.to), String(number)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] });
    const [code, signal]: unknown[] = await once(child, "exit");
    expect([code, signal]).toEqual(signal === null ? [0, null] : [null, "SIGKILL"]);
    return signal !== null;
  }

  it(
    "has a rewind that can be finished, or taken back",
    { tags: "long", timeout: 600_000 },
    async () => {
      const cases = countCases(6, 100, "GYRE_PLACE_CASES");
      let cutOffs = 0;
      for (let number = 0; number < cases; number++) {
        await inWorld(number, async (w, random) => {
          const places: KnownPlace[] = [];
          for (let step = 0; step < 4; step++) {
            places.push(...(await converse(w, random)));
            if (random(2) === 0) await jump(w, pick(random, places));
          }
          const here = await w.files();
          const place = pick(random, places);
          const isKilled = await killAt(w, place, 1 + random(16));
          const warnings: string[] = [];
          const next = w.reopened({ warn: (text) => warnings.push(text) });
          const lines = await next.lines();
          const last = lines.findLastIndex(({ by }) => by === "rewind");
          if (lines[last]?.isCutOff) {
            cutOffs++;
            expect(isKilled).toBe(true);
            expect(warnings).toEqual([expect.stringContaining("/rewind finishes it")]);
          }
          if (random(2) === 0) {
            const report = await next.apply(await next.plan(place.to), { withConflicts: false });
            expect(report).toMatchObject({ left: [], failed: [] });
            expect(await w.files()).toEqual(place.files);
          } else if (lines[last]?.isCutOff) {
            await next.apply(await next.plan({ line: last }), { withConflicts: false });
            expect(await w.files()).toEqual(here);
          }
        });
      }
      if (cases >= MANY) expect(cutOffs).toBeGreaterThan(cases / 10);
    },
  );
});
