import { chmod, lstat, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type HistoryWorld, historyWorld } from "../../testing/history-world.ts";
import { countCases } from "../../../../../tests/support/cases.ts";

const RUNS = countCases(8, 25, "GYRE_CASES");
const PATHS = ["a", "b", "d/c", "d/e", "f/g/h"] as const;

type Op =
  | { type: "write"; path: string; content: string }
  | { type: "remove"; path: string }
  | { type: "rename"; path: string; to: string }
  | { type: "chmod"; path: string; mode: number }
  | { type: "link"; path: string; to: string };

type Step = { by: "user"; ops: Op[] } | { by: "agent"; calls: { isNamed: boolean; ops: Op[] }[] };

const path = fc.constantFrom(...PATHS);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("write" as const),
      path,
      content: fc.string({ maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("remove" as const), path }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("rename" as const), path, to: path }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("chmod" as const),
      path,
      mode: fc.constantFrom(0o644, 0o755, 0o444, 0o600),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("link" as const),
      path,
      to: fc.constantFrom("a", "../nowhere", "/etc/hostname"),
    }),
  },
);
const ops = fc.array(op, { minLength: 1, maxLength: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ by: fc.constant("user" as const), ops }),
  fc.record({
    by: fc.constant("agent" as const),
    calls: fc.array(fc.record({ isNamed: fc.boolean(), ops }), { minLength: 1, maxLength: 2 }),
  }),
);

async function isThere(absolute: string): Promise<boolean> {
  return lstat(absolute).then(
    () => true,
    () => false,
  );
}

async function perform(w: HistoryWorld, todo: readonly Op[]): Promise<void> {
  for (const one of todo) {
    const at = w.path(one.path);
    await mkdir(dirname(at), { recursive: true });
    const stats = (await isThere(at)) ? await lstat(at) : undefined;
    switch (one.type) {
      case "write":
        // A link would be followed.
        if (stats) await rm(at);
        await writeFile(at, one.content);
        break;
      case "remove":
        await rm(at, { force: true });
        break;
      case "rename":
        await mkdir(dirname(w.path(one.to)), { recursive: true });
        if (stats) await rename(at, w.path(one.to));
        break;
      case "chmod":
        if (stats?.isFile()) await chmod(at, one.mode);
        break;
      case "link":
        if (stats) await rm(at);
        await symlink(one.to, at);
        break;
    }
  }
}

function listPaths(todo: readonly Op[]): string[] {
  return [...new Set(todo.flatMap((one) => ("to" in one ? [one.path, one.to] : [one.path])))];
}

type Files = Record<string, string>;

function changed(before: Files, after: Files): string[] {
  return PATHS.filter((one) => before[one] !== after[one]);
}

/** What a call did to one path. */
interface Event {
  path: string;
  entry: number;
  was: string | undefined;
  became: string | undefined;
}

/**
 * What a path is to be after a rewind to a prompt, by a model of its own: what it was before
 * the first call that changed it, unless it was ever something that no call had left there.
 */
function expected(
  path: string,
  entry: number,
  events: readonly Event[],
  now: Files,
): string | undefined {
  const own = events.filter((event) => event.path === path && event.entry >= entry);
  const [first] = own;
  if (!first) return now[path];
  const isTouched = own.some(({ became }, index) => {
    const next = own[index + 1];
    return became !== (next ? next.was : now[path]);
  });
  return isTouched ? now[path] : first.was;
}

it(
  "takes back all that is the agent's, nothing from outside, and can be taken back",
  { tags: "long" },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 2, maxLength: 6 }),
        fc.nat(),
        async (steps, choice) => {
          const w = await historyWorld();
          try {
            const events: Event[] = [];
            const entries: number[] = [];
            for (const one of steps) {
              if (one.by === "user") {
                await perform(w, one.ops);
                continue;
              }
              const made: Omit<Event, "entry">[] = [];
              const entry = await w.run(async () => {
                for (const { isNamed, ops: todo } of one.calls) {
                  const before = await w.files();
                  const work = (): Promise<void> => perform(w, todo);
                  await (isNamed ? w.edit(listPaths(todo), work) : w.shell(work));
                  const after = await w.files();
                  for (const name of changed(before, after)) {
                    made.push({ path: name, was: before[name], became: after[name] });
                  }
                }
              });
              entries.push(entry);
              events.push(...made.map((event) => ({ ...event, entry })));
            }
            const entry = entries[choice % Math.max(1, entries.length)];
            if (entry === undefined) return;
            const now = await w.files();
            const plan = await w.recorder.plan({ before: entry });
            const report = await w.recorder.apply(plan, { withConflicts: false });
            expect(report.failed).toEqual([]);
            expect(w.warnings).toEqual([]);
            const after = await w.files();
            for (const name of PATHS) {
              expect([name, after[name]]).toEqual([name, expected(name, entry, events, now)]);
            }
            const lines = await w.recorder.lines();
            if (report.done.length === 0) return;
            const back = await w.recorder.plan({ line: lines.length - 1 });
            await w.recorder.apply(back, { withConflicts: false });
            expect(await w.files()).toEqual(now);
          } finally {
            await w.close();
          }
        },
      ),
      { numRuns: RUNS },
    );
  },
);
