import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildProgram } from "../../packages/cli/dist/testing/program.js";
import { scriptedService } from "../../packages/cli/dist/testing/scripted-service.js";
import { openInTerminal } from "../../packages/cli/dist/testing/terminal-program.js";
import { drawFilm, drawStill } from "./terminal-svg.mjs";

/**
 * Makes the pictures of the docs from real runs of the program, with a service that follows
 * a script: docs/terminal.svg (a film) and docs/terminal-*.svg, docs/demo.svg. Run it after
 * a build; the names of pictures make these alone: node scripts/docs/recording.mjs terminal
 *
 * @typedef {import("../../packages/cli/dist/testing/terminal-program.js").TerminalRun} TerminalRun
 * @typedef {import("../../packages/cli/dist/testing/program.js").Program} Program
 * @typedef {import("../../packages/cli/dist/testing/scripted-service.js").Script} Script
 * @typedef {import("./terminal-svg.mjs").Frame} Frame
 */

const DOCS = fileURLToPath(new URL("../../docs", import.meta.url));
const MAX_FILM_BYTES = 200_000;
/** Two frames of a film are at least so far apart; a pause is at most so long. */
const MIN_FRAME_MS = 80;
const MAX_FRAME_MS = 1_600;
const LAST_FRAME_MS = 5_000;
const KEY_MS = 45;
/** How long a person looks at a question. */
const READING_MS = 1_500;
const QUESTION = "Two of the same item cost as much as one. Fix it.";
/** As fast as a service is. */
const PACE = { deltaChars: 5, paceMs: 18 };

const BUG =
  "export function total(items) {\n  return items.reduce((sum, { price }) => sum + price, 0);\n}\n";
const TEST = `import { test } from "node:test";
import { equal } from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { total } from "./cart.js";

test("adds prices", () => equal(total([{ price: 3, count: 1 }]), 3));
test("counts each item", () => equal(total([{ price: 3, count: 2 }]), 6));
test("takes its time", () => setTimeout(2_000));
`;
const FILES = {
  "cart.js": BUG,
  "cart.test.js": TEST,
  "package.json": '{ "type": "module", "scripts": { "test": "node --test" } }\n',
};

/** @type {Extract<Script, readonly unknown[]>} */
const STORY = [
  {
    say: [
      { text: "I look at how the total is made, and at its tests." },
      { call: "read", arguments: { path: "cart.js" } },
      { call: "read", arguments: { path: "cart.test.js" } },
    ],
    ...PACE,
    usage: { input: 1_240, output: 58 },
  },
  {
    say: [
      { text: "`total` adds each price **once**, however often the item is there." },
      {
        call: "edit",
        arguments: {
          path: "cart.js",
          edits: [
            {
              oldText: "{ price }) => sum + price,",
              newText: "{ price, count }) => sum + price * count,",
            },
          ],
        },
      },
    ],
    ...PACE,
    usage: { input: 310, output: 96, cacheRead: 1_240 },
  },
  {
    say: [
      { text: "Now the tests." },
      { call: "shell", arguments: { command: "node --test --test-reporter=spec" } },
    ],
    ...PACE,
    usage: { input: 140, output: 41, cacheRead: 1_550 },
  },
  {
    say: `## Fixed\n\nThe tests pass. What was wrong, and what is different now:\n\n- \`total\` multiplies each price by its **count**.\n- An item *without* a count would give \`NaN\`; here is a guard, if you want one:\n\n\`\`\`js\nconst { price, count = 1 } = item;\n\`\`\`\n`,
    ...PACE,
    usage: { input: 420, output: 112, cacheRead: 1_690 },
  },
];

/** The pictures of questions are in the mode that asks, about commands before they run. */
const ASKING = ["--mode", "ask"];
const ENVIRONMENT = { GYRE_EFFECTS: "false" };

const later = (/** @type {number} */ ms) => new Promise((settle) => setTimeout(settle, ms));

/**
 * @param {TerminalRun} run
 * @param {string} text
 */
async function typeSlowly(run, text) {
  for (const letter of text) {
    run.type(letter);
    await later(KEY_MS);
  }
}

/**
 * @param {TerminalRun} run
 * @param {string} prompt
 */
function ask(run, prompt) {
  run.type(prompt);
  run.press("enter");
}

/**
 * It has done all that it was asked to.
 *
 * @param {TerminalRun} run
 * @param {string} last
 */
function idle(run, last) {
  return run.until((rows) => {
    const text = rows.join("\n");
    return text.includes(last) && !text.includes("Esc interrupts");
  });
}

/**
 * What is on the screen after some work.
 *
 * @param {Program} program
 * @param {{ script: Script, args?: string[], columns: number, rows: number }} options
 * @param {string} about
 * @param {(run: TerminalRun) => Promise<void>} work
 */
async function still(program, options, about, work) {
  let drawn = "";
  await inProject(program, options, async (run) => {
    await work(run);
    drawn = drawStill(captureScreen(run), { columns: options.columns, title: "gyre", about });
  });
  return drawn;
}

/**
 * The program in a small project of its own.
 *
 * @param {Program} program
 * @param {{ script: Script, args?: string[], columns: number, rows: number }} options
 * @param {(run: TerminalRun) => Promise<void>} work
 */
async function inProject(program, { script, args = [], columns, rows }, work) {
  const service = await scriptedService(script);
  const home = await program.makeHome();
  const cwd = join(home, "shop");
  await mkdir(cwd, { recursive: true });
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(cwd, name), text);
  const run = await openInTerminal(program, args, {
    ...{ service, home, cwd, columns, rows },
    env: ENVIRONMENT,
  });
  try {
    await run.until(/^gyre \d/m);
    await work(run);
  } finally {
    run.kill();
    await run.end;
    await service.close();
  }
  if (service.problems.length > 0) throw new Error(service.problems.join("\n"));
}

/** @param {TerminalRun} run */
function captureScreen(run) {
  const { row, column, isShown } = run.cursor();
  return { rows: run.styled(), ...(isShown && { cursor: { row, column } }) };
}

/**
 * Records what is shown from now on. Changes that follow each other too soon are one frame.
 *
 * @param {TerminalRun} run
 */
function film(run) {
  /** @type {(import("./terminal-svg.mjs").Screen & { at: number })[]} */
  const taken = [];
  const take = () => {
    const at = performance.now();
    const last = taken.at(-1);
    if (last && at - last.at < MIN_FRAME_MS) taken.pop();
    taken.push({ ...captureScreen(run), at: last && at - last.at < MIN_FRAME_MS ? last.at : at });
  };
  take();
  const end = run.watch(take);
  /** @returns {Frame[]} */
  return () => {
    end();
    take();
    return taken.map(({ rows, cursor, at }, nth) => {
      const next = taken[nth + 1];
      return { rows, cursor, ms: next ? Math.min(next.at - at, MAX_FRAME_MS) : LAST_FRAME_MS };
    });
  };
}

/**
 * By the name of its file.
 *
 * @type {Readonly<Record<string, (program: Program) => Promise<string>>>}
 */
const PICTURES = {
  async terminal(program) {
    const [columns, rows] = [84, 28];
    /** @type {Frame[]} */
    let frames = [];
    await inProject(program, { script: STORY, args: ASKING, columns, rows }, async (run) => {
      const end = film(run);
      await later(KEY_MS);
      await typeSlowly(run, QUESTION);
      run.press("enter");
      await run.until("Allow edit cart.js?");
      await later(READING_MS);
      run.type("y");
      await run.until("Allow shell?");
      await later(READING_MS);
      run.type("y");
      await run.until((screen) => !screen.join("\n").includes("Allow shell?"));
      await typeSlowly(run, "Explain what was wrong, too.");
      run.press("enter");
      await idle(run, "const { price, count = 1 }");
      frames = end();
      const shown = [...run.scrollback(), ...run.screen()].filter((row) => row.includes("✗"));
      if (shown.length > 0) throw new Error(`Not all went well:\n${shown.join("\n")}`);
    });
    const about =
      "gyre in a terminal: a prompt is typed, an edit is allowed, tests run, and the answer comes";
    const drawn = drawFilm(frames, { columns, title: "gyre", about });
    if (drawn.length > MAX_FILM_BYTES) {
      throw new Error(`The film has ${drawn.length} bytes, and ${MAX_FILM_BYTES} are the most.`);
    }
    return drawn;
  },
  async "terminal-permission"(program) {
    const options = { script: STORY, args: ASKING, columns: 84, rows: 24 };
    return still(program, options, "gyre asks before it edits", async (run) => {
      ask(run, QUESTION);
      await run.until("Allow edit cart.js?");
    });
  },
  async "terminal-tree"(program) {
    const answers = {
      "What does total do?": "It adds prices.",
      "How many tests are there?": "Two: one of them fails.",
      "Where is the fault?": "In cart.js, line 2.",
    };
    const script = Object.values(answers).map((say) => ({ say }));
    const options = { script, columns: 84, rows: 20 };
    return still(program, options, "A session as a tree", async (run) => {
      for (const [question, answer] of Object.entries(answers)) {
        ask(run, question);
        await idle(run, answer);
      }
      run.press("escape", "escape");
      await run.until("● here");
    });
  },
  async "terminal-narrow"(program) {
    const options = { script: STORY.slice(-1), columns: 40, rows: 24 };
    return still(program, options, "gyre in 40 columns", async (run) => {
      ask(run, "What was wrong?");
      await idle(run, "const { price, count = 1 }");
    });
  },
  async demo(program) {
    const [columns, rows] = [80, 36];
    const run = await openInTerminal(program, ["demo", "--fast"], { columns, rows });
    const { code } = await run.end;
    if (code !== 0) throw new Error(`The demo ended with ${code}:\n${run.screen().join("\n")}`);
    const about = "The end of gyre demo: the agent edits a file, the tests pass";
    return drawStill({ rows: fromBlank(run.styled()) }, { columns, title: "gyre demo", about });
  },
};

/**
 * From the first whole paragraph on, without the empty rows at the end.
 *
 * @template {unknown[]} T
 * @param {readonly T[]} rows
 */
function fromBlank(rows) {
  const last = rows.findLastIndex((row) => row.length > 0);
  return rows.slice(rows.findIndex((row) => row.length === 0) + 1, last + 1);
}

const wanted = process.argv.slice(2);
const program = await buildProgram();
try {
  for (const [name, draw] of Object.entries(PICTURES)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const drawn = await draw(program);
    await writeFile(join(DOCS, `${name}.svg`), drawn);
    console.log(`docs/${name}.svg ${(drawn.length / 1000).toFixed(1)} KB`);
  }
} finally {
  await program.remove();
}
