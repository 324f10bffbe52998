import { tmpdir } from "node:os";
import { afterEach, expect, it } from "vitest";
import { openCommand, encodeKey, type Size, type TerminalRun } from "./terminal-program.ts";

const runs: TerminalRun[] = [];
afterEach(async () => {
  for (const run of runs.splice(0)) {
    run.kill();
    await run.end;
  }
});

/** A program of its own, with `out` to write and `on` for what is typed. */
function play(script: string, size: Size = {}): TerminalRun {
  const prelude = `
    const out = (text) => process.stdout.write(text);
    const on = (listener) => process.stdin.setRawMode(true).on("data", (data) => listener(String(data)));
  `;
  const run = openCommand([process.execPath, "-e", prelude + script], {
    cwd: tmpdir(),
    env: { PATH: process.env["PATH"] ?? "" },
    ...size,
  });
  runs.push(run);
  return run;
}

it("shows what the program draws, in a terminal of the size that was asked for", async () => {
  const run = play(
    `out(process.stdout.columns + "x" + process.stdout.rows + "\\r\\n\\x1b[5Cthere  ");`,
    { columns: 30, rows: 4 },
  );
  await run.end;
  expect(run.screen()).toEqual(["30x4", "     there", "", ""]);
});

it("keeps the rows that leave the screen", async () => {
  const run = play(`for (let n = 1; n <= 6; n++) out("row " + n + (n < 6 ? "\\r\\n" : ""));`, {
    rows: 2,
  });
  await run.end;
  expect(run.scrollback()).toEqual(["row 1", "row 2", "row 3", "row 4"]);
  expect(run.scrollback(3)).toEqual(["row 4"]);
  expect(run.screen()).toEqual(["row 5", "row 6"]);
});

it("sends keys, and what is typed", async () => {
  const run = play(`on((data) => out(JSON.stringify(data) + "\\r\\n")); out("ready");`);
  await run.until("ready");
  run.press("ctrl+c", "alt+enter", "up");
  await expect(run.until(String.raw`"\u0003\u001b\r\u001b[A"`)).resolves.toBeUndefined();
  run.type("héllo");
  await expect(run.until('"héllo"')).resolves.toBeUndefined();
});

it("pastes in brackets where the program has asked for them", async () => {
  const run = play(`on((data) => out(JSON.stringify(data))); out("\\x1b[?2004hready");`);
  await run.until("ready");
  run.paste("two\nlines");
  await expect(run.until(String.raw`"\u001b[200~two\nlines\u001b[201~"`)).resolves.toBeUndefined();
});

it("answers a program that asks where the cursor is", async () => {
  const run = play(`on((data) => out(JSON.stringify(data))); out("abc\\x1b[6n");`);
  await expect(run.until(String.raw`"\u001b[1;4R"`)).resolves.toBeUndefined();
});

it("notifies the program when the terminal is resized", async () => {
  const run = play(
    `process.stdout.on("resize", () => out(process.stdout.columns + "x" + process.stdout.rows));
     on(() => {}); out("ready");`,
  );
  await run.until("ready");
  run.resize(40, 10);
  await run.until("40x10");
  expect(run.screen()).toHaveLength(10);
});

it("looks at whole frames, not at the midst of one", async () => {
  const run = play(`on(() => out("\\rold\\x1b[?2026l")); out("old\\x1b[?2026h\\rnew");`);
  const seen: string[] = [];
  run.watch(() => seen.push(run.screen()[0] ?? ""));
  await new Promise<void>((settle) => {
    run.listen((bytes) => {
      if (bytes.includes("new")) settle();
    });
  });
  await run.settled();
  run.type("x");
  await run.until("old");
  expect(seen).not.toContain("new");
});

it("knows where the cursor is, and whether it is shown", async () => {
  const run = play(`out("one\\r\\ntwo\\x1b[?25l");`);
  await run.end;
  expect(run.cursor()).toEqual({ row: 1, column: 3, isShown: false });
});

it("reports with the screen what a program did not show before it ended", async () => {
  const run = play(`out("something else");`);
  await expect(run.until("this")).rejects.toThrow(/ended and did not show "this":\nsomething else/);
});

it("reports with the screen what a program does not show in time", async () => {
  const run = play(`on(() => {}); out("something else");`);
  await run.until("something else");
  await expect(run.until("this", { within: 1 })).rejects.toThrow(/did not show "this":\nsomething/);
});

it("reports how the program ended", async () => {
  await expect(play(`process.exit(3);`).end).resolves.toEqual({ code: 3, signal: undefined });
  const run = play(`on(() => {}); out("ready");`);
  await run.until("ready");
  run.kill("SIGTERM");
  await expect(run.end).resolves.toEqual({ code: 0, signal: 15 });
});

it("refuses a key that no terminal has", () => {
  expect(() => encodeKey("any")).toThrow('There is no key "any".');
  expect(encodeKey("ctrl+shift+left")).toBe("\x1b[1;6D");
  expect(encodeKey("shift+tab")).toBe("\x1b[Z");
  expect(encodeKey("alt+x")).toBe("\x1bx");
});
