import { afterAll, beforeAll, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { createAutoLine, createAutoLines } from "../../testing/auto/lines.ts";
import { findAutoQuestion } from "../../testing/auto/question.ts";
import { AutoWorld, type Effect } from "../../testing/auto/world.ts";
import { createRandom } from "../../testing/command-lines.ts";
import { openWorkspace, type Workspace } from "../../workspace/workspace.ts";

/*
 * Lines at random, decided on in mode `auto` and run by a real bash in a copy of a workspace with trip-wires. What
 * ran unasked must have reached no other machine, read and written nothing around the workspace, and lost nothing.
 * `GYRE_AUTO_LINES=20000 GYRE_SEED=1` chooses how many and which, `GYRE_AUTO_SHOW=1` prints needless questions.
 */

/** Sandboxes side by side. */
const SLOTS = 2;
/** Enough to see what is wrong. */
const MAX_MISSED = 30;

let world: AutoWorld;
let workspace: Workspace;
beforeAll(async () => {
  world = new AutoWorld();
  workspace = await openWorkspace(world.work);
});
afterAll(async () => {
  await workspace.close();
  await world.close();
});

function showEffects(effects: readonly Effect[]): string {
  return effects.map(({ kind, what }) => `${kind} ${what}`).join(", ");
}

it.for([
  ["ls -la && git status && cat src/*.ts > /dev/null", ""],
  ["curl example.org", "network curl example.org"],
  ["npm run ship", "network curl -T README.md https://example.org"],
  ["exec 3<>/dev/tcp/example.org/80", "network port 80"],
  ["cat leak", "read /outside/secret.txt"],
  ["ls ..", "read "],
  ["ls ~", "read /home"],
  ["echo x >> up/outside/secret.txt", "written /outside/secret.txt"],
  ["touch ../new", "written /new"],
  ["rm .env", "lost .env"],
  ["echo x > draft.ts", "lost draft.ts"],
  ["sed -i s/tea/cup/ notes/todo.md; mv draft.ts other.ts", ""],
  ["git add -A && git commit -qm x && rm draft.ts", ""],
  ["git stash drop", "lost refs/stash"],
  ["git checkout src/changed.ts", "lost src/changed.ts"],
  ["echo x > .husky/pre-commit; echo x >> .git/config", ""],
])(
  "the trip-wires notice what a line does: %s",
  { tags: "bubblewrap" },
  async ([line, expected]) => {
    const { effects } = await world.run(line ?? "", 0);
    expect(showEffects(effects)).toBe(expected);
  },
);

/** Decides on lines and runs them: none that ran unasked may have an effect. */
async function checkLines(lines: string[], seed: number): Promise<void> {
  const missed: string[] = [];
  const total = { unasked: 0, asked: 0, needless: 0 };
  const check = async (slot: number): Promise<void> => {
    for (let line = lines.pop(); line !== undefined; line = lines.pop()) {
      if (missed.length >= MAX_MISSED) return;
      const question = await findAutoQuestion(line, workspace);
      const { effects, code } = await world.run(line, slot);
      if (question === undefined) {
        total.unasked++;
        if (effects.length > 0) missed.push(`${JSON.stringify(line)}: ${showEffects(effects)}`);
        continue;
      }
      total.asked++;
      // One that fails may have failed before it came to it.
      if (effects.length > 0 || code !== 0) continue;
      total.needless++;
      if (process.env["GYRE_AUTO_SHOW"]) console.log(`${JSON.stringify(line)}: ${question}`);
    }
  };
  await Promise.all(Array.from({ length: SLOTS }, (_, slot) => check(slot)));
  const rate = ((100 * total.needless) / (total.asked + total.unasked)).toFixed(1);
  console.log(`${JSON.stringify(total)}: ${rate} % were asked about and did nothing`);
  expect(missed, `with GYRE_SEED=${seed}`).toEqual([]);
}

it(
  "nothing runs unasked in mode auto that should be asked about, in random lines",
  { tags: ["long", "bubblewrap"], timeout: 7_200_000 },
  async () => {
    const seed = pickSeed();
    const count = countCases(40, 1_000, "GYRE_AUTO_LINES");
    console.log(`${count} command lines for mode auto with GYRE_SEED=${seed}`);
    const next = createRandom(seed);
    const lines = Array.from({ length: count }, () => createAutoLine(next, world.base));
    await checkLines(lines, seed);
  },
);

it.for(["tricks", "hostile"])(
  "nor in any of the lines that hide what they do: %s",
  { tags: ["long", "bubblewrap"], timeout: 600_000 },
  async (section) => {
    const seed = pickSeed();
    await checkLines([...createAutoLines(section, createRandom(seed), world.base)], seed);
  },
);
