import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";
import type { TerminalRun } from "../../../testing/terminal-program.ts";

// Branches that carry files: the built program in a real terminal.

const { open } = terminalWorld();

const write = (path: string, content: string) => ({
  say: [{ call: "write", arguments: { path, content } }],
});

/** What is in sight, and nothing is under way. */
function idle(run: TerminalRun, shown: string | RegExp): Promise<unknown> {
  return run.until((rows) => {
    const screen = rows.join("\n");
    const isShown = typeof shown === "string" ? screen.includes(shown) : shown.test(screen);
    return isShown && !/Esc (?:interrupts|stops)/.test(screen);
  });
}

it("brings the files along when it goes to another place of the tree, and back", async () => {
  const { run } = await open(
    [
      write("tea.txt", "green\n"),
      { say: "First done." },
      write("tea.txt", "green\nblack\n"),
      write("cup.txt", "one\n"),
      { say: "Second done." },
    ],
    { args: ["--mode", "full"], rows: 30 },
  );
  const file = (name: string): string => join(run.cwd, name);
  ask(run, "Make tea");
  await idle(run, "First done.");
  ask(run, "Make more");
  await idle(run, "Second done.");
  ask(run, "/tree");
  await run.until("● here");
  // To the prompts alone: the second one is marked.
  run.type("u");
  await run.until("The prompts of this session");
  run.press("enter");
  await run.until("Files are not as they were at this place");
  expect(run.screen().join("\n")).toContain("~ tea.txt  +0 -1");
  expect(run.screen().join("\n")).toContain("- cup.txt is removed  +0 -1");
  run.press("enter");
  await idle(run, /2 files brought to this place; \/rewind\s+undoes that./);
  expect(readFileSync(file("tea.txt"), "utf8")).toBe("green\n");
  expect(existsSync(file("cup.txt"))).toBe(false);
  // The prompt is in the editor, to be asked in other words.
  expect(run.screen().join("\n")).toContain("› Make more");
  run.press("ctrl+u");
  // An edit of the user's own is not lost on the way forward.
  writeFileSync(file("cup.txt"), "mine\n");
  ask(run, "/tree");
  await run.until("● here");
  run.press("end");
  run.press("enter");
  await run.until("! cup.txt stays: it was changed outside of this session since");
  run.press("enter");
  await run.until("1 file may hold changes from outside of this session");
  run.press("enter");
  await idle(run, "Left as they are: cup.txt.");
  expect(readFileSync(file("tea.txt"), "utf8")).toBe("green\nblack\n");
  expect(readFileSync(file("cup.txt"), "utf8")).toBe("mine\n");
});
