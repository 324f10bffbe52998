import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Answer, ServiceRequest } from "../../../testing/scripted-service.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// Sub-agents in the built program, as a person sees them.

const world = terminalWorld();

const REVIEWER =
  "---\nname: reviewer\ndescription: Reviews changes.\ntools: Read\n---\nYou are strict.\n";

/** Whether a sub-agent sent it. */
function isOfSubAgent({ text }: ServiceRequest): boolean {
  return text.includes("You are a sub-agent");
}

it("shows a sub-agent as a tree of its calls, with what it costs", async () => {
  const give = { description: "count the teas", prompt: "Count.", agent: "explore" };
  let asked = 0;
  let release: (answer: Answer) => void = () => {};
  const held = new Promise<Answer>((settle) => (release = settle));
  const { run, service } = await world.open(
    (request) => {
      if (!isOfSubAgent(request)) {
        return request.text.includes("There are two.")
          ? { say: "Two teas." }
          : { say: [{ call: "task", arguments: give }] };
      }
      asked++;
      if (asked === 1) return { say: [{ call: "read", arguments: { path: "green.txt" } }] };
      if (asked === 2) return { say: [{ call: "find", arguments: { pattern: "*.txt" } }] };
      return held;
    },
    { files: { "green.txt": "green", "black.txt": "black" } },
  );
  ask(run, "How many teas?");
  await run.until("└ find *.txt");
  const running = run.screen().join("\n");
  expect(running).toMatch(/○ task explore: count the teas {2}2 calls · \$0\.00/);
  expect(running).toContain("  ├ read green.txt\n  └ find *.txt");
  release({ say: "There are two." });
  await run.until("Two teas.");
  const ended = run.screen().join("\n");
  expect(ended).toMatch(/● task explore: count the teas {2}2 calls · \$0\.00/);
  expect(ended).toContain("  ├ read green.txt\n  └ find *.txt\n  There are two.");
  expect(service.problems).toEqual([]);
});

it("has the agents of files, and what the project says for all", async () => {
  const home = await world.program.makeHome();
  const cwd = join(home, "shop");
  mkdirSync(join(cwd, ".claude/agents"), { recursive: true });
  mkdirSync(join(cwd, ".git"));
  writeFileSync(join(cwd, ".claude/agents/reviewer.md"), REVIEWER);
  const give = { description: "look", prompt: "Look.", agent: "reviewer" };
  const { run, service } = await world.open(
    [{ say: [{ call: "task", arguments: give }] }, { say: "Strict." }, { say: "Reviewed." }],
    { home, cwd, files: { "AGENTS.md": "Indent with tabs." } },
  );
  ask(run, "Review.");
  await run.until("Reviewed.");
  const [first, second] = service.requests;
  expect(first?.text).toContain("reviewer: Reviews changes.");
  expect(second?.text).toContain("You are strict.");
  expect(second?.text).toContain("Indent with tabs.");
  const tools = second?.body["tools"];
  expect((Array.isArray(tools) ? tools : []).map(({ name }) => name)).toEqual(["read"]);
});

it("turns tools on and off with /tools, for sub-agents as well", async () => {
  const give = { description: "look", prompt: "Look." };
  const { run, service } = await world.open([
    { say: [{ call: "task", arguments: give }] },
    { say: "Looked." },
    { say: "All done." },
  ]);
  ask(run, "/tools +ls,-shell");
  await run.until("The model has");
  ask(run, "Go.");
  await run.until("All done.");
  for (const request of service.requests.slice(0, 2)) {
    const { tools } = request.body;
    const names = (Array.isArray(tools) ? tools : []).map(({ name }) => String(name));
    expect(names).toContain("ls");
    expect(names).not.toContain("shell");
  }
});
