import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import {
  type BatteryCase,
  type BatteryEdit,
  batteryCases,
  judge,
  seededRandom,
} from "./edit-battery.ts";
import { editTool } from "../edit/tool.ts";
import { EditError } from "../edit/error.ts";
import { editedFile, planEdits } from "../edit/plan.ts";
import { noSandbox } from "../sandbox/sandbox.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";
import { systemClock } from "@gyre/ai";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";

const EDITS = countCases(100, 300);
const EDITS_ON_DISK = 20;
const MIN_APPLIED = 0.99;
const SEED = pickSeed();

const packages = fileURLToPath(new URL("../../..", import.meta.url));

async function sources(): Promise<string[]> {
  const files = await readdir(packages, { recursive: true });
  const ours = files.filter(
    (name) => /[\\/]src[\\/].*\.ts$/.test(name) && !/node_modules|dist/.test(name),
  );
  return Promise.all(ours.sort().map((name) => readFile(join(packages, name), "utf8")));
}

function makeEdits(kind: BatteryCase, files: readonly string[], count: number): BatteryEdit[] {
  const random = seededRandom(SEED + batteryCases.indexOf(kind));
  const edits: BatteryEdit[] = [];
  for (let tries = 0; edits.length < count && tries < count * 50; tries++) {
    const edit = kind.make(files[Math.floor(random() * files.length)] ?? "", random);
    if (edit && edit.oldText !== edit.newText && edit.expected !== edit.content) edits.push(edit);
  }
  expect(edits, `edits of ${kind.name}`).toHaveLength(count);
  return edits;
}

function byPlan(edit: BatteryEdit): string | undefined {
  try {
    return planEdits(editedFile("a.ts", edit.content, edit.seen), [edit]).content;
  } catch (error) {
    if (error instanceof EditError) return undefined;
    throw error;
  }
}

function check(
  kind: BatteryCase,
  edits: readonly BatteryEdit[],
  results: readonly (string | undefined)[],
): string {
  const counts = { applied: 0, refused: 0, damaged: 0, wrong: 0 };
  edits.forEach((edit, index) => {
    const verdict = judge(edit, results[index]);
    counts[verdict] += 1;
    if (verdict === "wrong" || verdict === "damaged")
      expect(results[index], `${kind.name}, seed ${SEED}`).toBe(edit.expected ?? "refused");
  });
  const shouldApply = edits[0]?.expected !== undefined;
  if (shouldApply)
    expect(counts.applied, `${kind.name}, seed ${SEED}`).toBeGreaterThanOrEqual(
      edits.length * MIN_APPLIED,
    );
  else expect(counts.refused, `${kind.name}, seed ${SEED}`).toBe(edits.length);
  const cells = [counts.applied, counts.refused, counts.damaged, counts.wrong].map((count) =>
    String(count).padStart(8),
  );
  return `${kind.name.padEnd(26)}${shouldApply ? "apply " : "refuse"}${cells.join("")}`;
}

test(`real edits with the slips of models (seed ${SEED})`, { tags: "long" }, async () => {
  const files = await sources();
  const rows = batteryCases.map((kind) => {
    const edits = makeEdits(kind, files, EDITS);
    return check(kind, edits, edits.map(byPlan));
  });
  const head = `${`seed ${SEED}`.padEnd(26)}should   applied refused damaged   wrong`;
  process.stdout.write(`${[head, ...rows].join("\n")}\n`);
});

test(`the same through the tool, on disk (seed ${SEED})`, { tags: "long" }, async () => {
  const files = await sources();
  const root = await mkdtemp(join(tmpdir(), "gyre-battery-"));
  const workspace = await openWorkspace(root);
  try {
    const seen = new SeenFiles();
    const env = {
      workspace,
      seen,
      sandbox: () => Promise.resolve(noSandbox),
      spoolFolder: root,
      environment: {},
      clock: systemClock,
    };
    const tool = editTool(env);
    const byTool = async (edit: BatteryEdit): Promise<string | undefined> => {
      await writeFile(join(root, "a.ts"), edit.content);
      seen.note("a.ts", edit.seen);
      const args = { path: "a.ts", edits: [{ oldText: edit.oldText, newText: edit.newText }] };
      const before = Buffer.from(edit.content);
      try {
        await tool.execute(args, {
          id: "1",
          signal: new AbortController().signal,
          update: () => {},
          host: {
            call: () => Promise.reject(new Error("none")),
          },
          messages: [],
        });
      } catch (error) {
        if (!(error instanceof EditError)) throw error;
        expect((await readFile(join(root, "a.ts"))).equals(before)).toBe(true);
        return undefined;
      }
      return readFile(join(root, "a.ts"), "utf8");
    };
    for (const kind of batteryCases) {
      const edits = makeEdits(kind, files, EDITS_ON_DISK);
      const results: (string | undefined)[] = [];
      for (const edit of edits) results.push(await byTool(edit));
      check(kind, edits, results);
    }
  } finally {
    await workspace.close();
    await rm(root, { recursive: true });
  }
});
