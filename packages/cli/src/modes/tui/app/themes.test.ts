import { describe, expect, it } from "vitest";
import type { Look } from "../../../testing/screen-text.ts";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// The colors of the built program, in a terminal that answers as the tests want it.

const { open } = terminalWorld();
const ASKS = "\x1b]11;?\x07";
const WHITE = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\";
/** Cyan that can be read on white. */
const LIGHT_ACCENT = 30;

function findLook(run: TerminalRun, text: string): Look | undefined {
  return run
    .styled()
    .flat()
    .find((piece) => piece.text.includes(text))?.look;
}

/** The sign of the editor has this color. */
function untilAccent(run: TerminalRun, color: number | string): Promise<void> {
  return run.until(() => findLook(run, "›")?.foreground === color);
}

async function prompt(run: TerminalRun): Promise<void> {
  ask(run, "Hi.");
  await run.until("Hello.");
}

describe("the theme", () => {
  it("is light where the terminal says that its background is, and prompts stand out", async () => {
    const { run } = await open([{ say: "Hello." }]);
    expect(run.bytes.toString("latin1").split(ASKS)).toHaveLength(2);
    run.type(WHITE);
    await untilAccent(run, LIGHT_ACCENT);
    await prompt(run);
    expect(findLook(run, "Hi.")).toMatchObject({ background: 254, bold: true });
  });

  it("is what COLORFGBG says where the terminal does not answer", async () => {
    const { run } = await open([], {
      env: { COLORFGBG: "0;15" },
    });
    await untilAccent(run, LIGHT_ACCENT);
    expect(run.bytes.toString("latin1")).toContain(ASKS);
  });

  it("has the terminal's own colors where nothing is known, and does not wait", async () => {
    const { run } = await open([{ say: "Hello." }]);
    await prompt(run);
    expect(findLook(run, "Hi.")).toEqual({ bold: true });
  });

  it("is the one that is set, and the terminal is not asked", async () => {
    const { run } = await open([], {
      env: { GYRE_THEME: "sea" },
      files: { ".gyre/themes/sea.json": '{ "colors": { "accent": "#ff8800" } }' },
    });
    await untilAccent(run, "#ff8800");
    expect(run.bytes.toString("latin1")).not.toContain(ASKS);
  });

  it("that is wrong is an error that says what to write, and nothing else changes", async () => {
    const { run } = await open([{ say: "Hello." }], {
      env: { GYRE_THEME: "sea" },
      files: { ".gyre/themes/sea.json": '{ "colors": { "accent": "blu" } }' },
    });
    await run.until('It is "blu".');
    expect(run.screen().join(" ").replaceAll(/\s+/g, " ")).toMatch(
      /! The theme "sea" \(\S+sea\.json\): "accent" must be a text such as "bold cyan"/,
    );
    await prompt(run);
  });

  it("is off with NO_COLOR: nothing is asked, nothing colored", async () => {
    const { run } = await open([{ say: "# Hello." }], {
      env: { NO_COLOR: "1", COLORFGBG: "0;15", GYRE_THEME: "light" },
    });
    await prompt(run);
    expect(run.bytes.toString("latin1")).not.toContain(ASKS);
    expect(
      run
        .styled()
        .flat()
        .filter(({ look }) => Object.keys(look).length > 0),
    ).toEqual([]);
  });
});
