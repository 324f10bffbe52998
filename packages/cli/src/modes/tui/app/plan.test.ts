import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { ServiceRequest } from "../../../testing/scripted-service.ts";
import { ask, decide, terminalWorld } from "../../../testing/terminal-world.ts";

// From a plan to the work, in the built program.

const { open } = terminalWorld();

const PLAN = "# Tea\n\n1. Write tea.txt\n2. Read it again\n";
const present = { say: [{ call: "plan", arguments: { plan: PLAN } }] };
const todo = (...done: readonly string[]) => ({
  call: "todo",
  arguments: {
    todos: ["Write tea.txt", "Read it again"].map((content) => ({
      content,
      status: done.includes(content) ? "done" : "in_progress",
    })),
  },
});

function toolNames({ body }: ServiceRequest): string[] {
  const { tools } = body;
  return (Array.isArray(tools) ? tools : []).map(({ name }) => String(name));
}

it("looks around, shows a plan, and carries it out when it is approved, with its steps in sight", async () => {
  const { run, service } = await open(
    [
      { say: [{ call: "shell", arguments: { command: "ls" } }] },
      { say: [{ call: "write", arguments: { path: "tea.txt", content: "green" } }] },
      present,
      {
        say: [
          todo("Write tea.txt"),
          { call: "write", arguments: { path: "tea.txt", content: "green" } },
        ],
      },
      { say: "Written.", fault: { how: "silence", afterDeltas: 1 } },
    ],
    { args: ["--mode", "plan"], files: { "black.txt": "black" }, rows: 30 },
  );
  ask(run, "Make tea.");
  await run.until("Carry out this plan?");
  const [first, second, third] = service.requests;
  expect(first && toolNames(first)).toContain("plan");
  expect(first?.text).toContain("The mode is plan. Look at whatever you need");
  expect(second?.text).toContain("black.txt");
  expect(third?.text).toContain("nothing is changed and nothing is run");
  expect(existsSync(join(run.cwd, "tea.txt"))).toBe(false);
  await decide(run, "2", "☑ Write tea.txt");
  await run.until("Written.");
  expect(run.screen().join("\n")).toContain("☑ Write tea.txt\n▸ Read it again\n");
  expect(readFileSync(join(run.cwd, "tea.txt"), "utf8")).toBe("green");
  const fourth = service.requests[3];
  expect(fourth?.text).toContain("Approved. The mode is auto-edit now");
  expect(fourth && toolNames(fourth)).toContain("todo");
  expect(fourth && toolNames(fourth)).not.toContain("plan");
});

it("carries out the plan as the user has edited it", async () => {
  const { run, service } = await open([present, { say: "So be it." }], {
    args: ["--mode", "plan"],
    rows: 30,
  });
  ask(run, "Make tea.");
  await run.until("Carry out this plan?");
  await decide(run, "4", "Edit the plan: Enter is the end");
  run.type("3. Drink it");
  run.press("enter");
  await run.until(/Carry out this plan\?/);
  await decide(run, "1", "So be it.");
  expect(service.requests[1]?.text).toContain("The user has edited it. This is the plan");
  expect(service.requests[1]?.text).toContain("3. Drink it");
  await run.until("☐ Drink it");
});

it("goes on planning where the user says what is missing", async () => {
  const { run, service } = await open([present, { say: "I will think of sugar." }], {
    args: ["--mode", "plan"],
    rows: 30,
  });
  ask(run, "Make tea.");
  await run.until("Carry out this plan?");
  await decide(run, "5", "What is missing in the plan?");
  run.type("sugar");
  run.press("enter");
  await run.until("I will think of sugar.");
  expect(service.requests[1]?.text).toContain("Not approved: sugar Go on planning.");
});

it("has the steps of the plan in sight again where the session is resumed", async () => {
  const { run } = await open([present, { say: [todo("Write tea.txt")] }, { say: "So far." }], {
    args: ["--mode", "plan"],
    rows: 30,
  });
  ask(run, "Make tea.");
  await run.until("Carry out this plan?");
  await decide(run, "2", "So far.");
  run.press("ctrl+d");
  await run.end;
  const { home, cwd } = run;
  const again = await open([], { args: ["--continue"], home, cwd, rows: 30 });
  await again.run.until("▸ Read it again");
  expect(again.run.screen().join("\n")).toContain("☑ Write tea.txt\n▸ Read it again\n");
});

it("answers a side question while it works, and neither stops nor enters the conversation", async () => {
  const { run, service } = await open(
    ({ text }) =>
      text.includes("Which tea?")
        ? { say: "Green, I think." }
        : { say: "I boil water.", fault: { how: "silence", afterDeltas: 1 } },
    { rows: 30 },
  );
  ask(run, "Make tea.");
  await run.until("I boil");
  ask(run, "/btw Which tea?");
  await run.until("Green, I think.");
  expect(run.screen().join("\n")).toContain("Esc interrupts");
  expect(service.requests[1]?.text).toContain("Make tea.");
  expect(service.requests[1]?.body["tool_choice"]).toEqual({ type: "none" });
  run.press("escape");
  await run.until(/interrupted/);
  ask(run, "And sugar?");
  await service.asked(2);
  expect(service.requests[2]?.text).not.toContain("Which tea?");
});
