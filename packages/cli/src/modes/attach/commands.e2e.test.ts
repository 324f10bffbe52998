import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { attachWorld } from "../../testing/attached-program.ts";
import type { TerminalRun } from "../../testing/terminal-program.ts";
import { ask } from "../../testing/terminal-world.ts";

// Slash commands and keys of the built program on a session that runs on a server.

const world = attachWorld();
const NEW = { args: ["--cwd", "."], rows: 40 };

const isIdle = (rows: readonly string[]): boolean =>
  !rows.some((row) => row.includes("Esc interrupts"));

async function say(run: TerminalRun, prompt: string, until: string): Promise<void> {
  ask(run, prompt);
  await run.until(until);
  await run.until(isIdle);
}

it("those of the session are run at the server, and ask here", async () => {
  const server = await world.serve([{ say: "Green." }, { say: "Black." }, { say: "White." }]);
  const run = await world.attach(server, NEW);
  await say(run, "Which tea?", "Green.");
  await say(run, "And now?", "Black.");
  await say(run, "/cost", "The session:");
  await say(run, "/context", "until it is compacted");
  await say(run, "/title The tea", "This session is called The tea now.");
  await say(run, "/session", "open it in a terminal");
  ask(run, "/fork");
  await run.until("A copy up to which prompt?");
  run.press("enter");
  await run.until("This is a copy of");
  await run.until("› And now?");
  await run.until(isIdle);
  run.press("enter");
  await run.until("White.");
  expect(server.service.requests).toHaveLength(3);
});

it("model, mode and thinking change as far as the server allows, and others see it", async () => {
  const server = await world.serve([], { args: ["--mode", "auto-edit"] });
  const run = await world.attach(server, NEW);
  const other = await world.attach(server, { shows: "A new session" });
  other.press("enter");
  await other.until(/gyre \d/);
  await say(run, "/mode plan", "The mode is plan now.");
  await other.until("· plan");
  await say(run, "/mode full", 'Mode "full" is more than this server allows: "auto-edit".');
  await say(run, "/thinking low", "Thinking is low now.");
  await other.until("thinking low");
  ask(run, "/model");
  await run.until("Which model?");
  run.type("haiku");
  await run.until((rows) => !rows.some((row) => row.includes("claude-opus")));
  run.press("enter");
  await run.until("The model is anthropic/");
  await expect(other.until(/claude-haiku\S* · /)).resolves.toBeUndefined();
});

it("go back in the tree, in both terminals", async () => {
  const server = await world.serve([{ say: "Green." }, { say: "Black." }, { say: "White." }]);
  const run = await world.attach(server, NEW);
  await say(run, "Which tea?", "Green.");
  const other = await world.attach(server, { shows: "A new session", rows: 40 });
  other.press("enter");
  await other.until("Green.");
  await say(run, "And now?", "Black.");
  ask(run, "/tree");
  await run.until("Enter go there");
  // Entries are read when they are looked at, and only those can be gone to.
  await run.until("  > And now?");
  run.press("up");
  await run.until("› > And now?");
  run.press("enter");
  await run.until("from here on");
  await run.until("› And now?");
  await other.until("the conversation was changed");
  run.press("enter");
  await run.until("White.");
  await other.until("White.");
  expect(other.screen().filter((row) => row === "Green.")).toHaveLength(2);
});

it("begin another session, and come back to the first", async () => {
  const server = await world.serve([{ say: "Green." }, { say: "Black." }]);
  const run = await world.attach(server, NEW);
  await say(run, "Which tea?", "Green.");
  await say(run, "/new And in the morning?", "Black.");
  ask(run, "/resume");
  await run.until("Sessions of the server");
  await run.until("Which tea?");
  run.press("enter");
  const isTwice = (rows: readonly string[]) => rows.filter((row) => row === "Green.").length === 2;
  await expect(run.until(isTwice)).resolves.toBeUndefined();
});

describe("what does not work there says so in a sentence", () => {
  it.each([
    ["/rewind", "A server does not record files"],
    ["/login", "Keys are stored where the server runs"],
    ["/config", "The settings are those of the server"],
    ["/kept", "A server does not record what was kept"],
    ["!ls", "A command of yours would run on this computer"],
    ["/mcp trust x", "MCP servers are trusted at the server"],
  ])("%s", async (typed, sentence) => {
    const server = await world.serve([]);
    const run = await world.attach(server, NEW);
    ask(run, typed);
    await expect(run.until(sentence)).resolves.toBeUndefined();
  });
});

it("completes files of the folder at the server, and commands", async () => {
  const server = await world.serve([], { files: { "teapot.txt": "hot" } });
  const run = await world.attach(server, NEW);
  run.type("Read @teap");
  await run.until(/teapot\.txt/);
  run.press("tab");
  await run.until("Read @teapot.txt");
  run.press("ctrl+c");
  run.type("/comp");
  await expect(run.until("make the context smaller now")).resolves.toBeUndefined();
});

it("shows steps, jobs and their ends", async () => {
  const todos = [{ content: "Boil the water", status: "in_progress" }];
  const server = await world.serve(
    [
      { say: [{ call: "todo", arguments: { todos } }] },
      {
        say: [
          { call: "shell", arguments: { command: "sleep 0.2; exit 3", background: true }, id: "s" },
        ],
      },
      { say: "Under way." },
    ],
    { args: ["--mode", "full", "--allow-unsandboxed", "--tools", "todo,shell,jobs"] },
  );
  const run = await world.attach(server, { args: ["--cwd", ".", "--mode", "full"], rows: 40 });
  ask(run, "Go.");
  await run.until("▸ Boil the water");
  await run.until("Under way.");
  await expect(run.until(/job-\S* ended, exit code 3/)).resolves.toBeUndefined();
});

it("sends pictures that are here, and leaves a note for what goes on", async () => {
  const picture = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  const server = await world.serve([{ silent: true }]);
  const run = await world.attach(server, NEW);
  const { writeFileSync } = await import("node:fs");
  writeFileSync(join(run.cwd, "dot.png"), picture);
  ask(run, "What is dot.png?");
  const { text } = await server.service.asked(0);
  expect(text).toContain('"image/png"');
  await run.until("Esc interrupts");
  run.press("ctrl+d");
  await run.end;
  expect(run.screen().join("\n")).toMatch(/It goes on at the server\.\s+gyre attach ws:/);
});

it("works as plain lines too", async () => {
  const server = await world.serve([{ say: "Green." }]);
  const run = await world.attach(server, {
    args: ["--cwd", ".", "--screen-reader"],
    shows: "This is gyre",
  });
  run.type("Which tea?\r");
  await run.until("Green.");
  await run.until("Done.");
  run.type("/quit\r");
  await run.end;
  expect(run.screen().join("\n")).toMatch(/To come back: gyre attach/);
  expect(readFileSync(server.tokenFile, "utf8").trim()).toBe(server.token);
});
