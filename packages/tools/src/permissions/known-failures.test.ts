import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentEvent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissions } from "../permissions.ts";
import { openToolset, type Toolset } from "../toolset.ts";
import type { RuleList } from "./rules.ts";

let base: string;
let tools: Toolset;

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-known-failures-")));
  put("twice.txt", "one\nsame\nsame\n");
  put("seen.txt", "old\n");
  put("unseen.txt", "hunter22\n");
  tools = await openToolset({
    root: base,
    tools: ["read", "write", "edit", "apply_patch"],
    sandbox: "none",
    stateFolder: join(base, ".state"),
  });
  for (const path of ["twice.txt", "seen.txt"]) {
    tools.env.seen.note(path, readFileSync(join(base, path), "utf8"));
  }
});
afterEach(async () => {
  await tools.close();
  rmSync(base, { recursive: true, force: true });
});

function put(name: string, text: string): void {
  writeFileSync(join(base, name), text);
}

interface Tried {
  questions: string[];
  outcome: string;
  text: string;
}

/** One call in mode "ask", with a person who says yes. */
async function attempt(
  name: string,
  args: Record<string, unknown>,
  { rules = {}, whileAsked }: { rules?: RuleList; whileAsked?: () => void } = {},
): Promise<Tried> {
  const questions: string[] = [];
  const guard = permissions({
    mode: "ask",
    rules,
    sandboxed: "waived",
    workspace: () => tools.env.workspace,
    ask: ({ access, fingerprint }) => {
      questions.push(access?.summary ?? "");
      whileAsked?.();
      return Promise.resolve({ allow: true, fingerprint });
    },
  });
  const model = scriptedModel([call(name, args), "Done."]);
  const agent = new Agent({
    protocol: model,
    middleware: [guard],
    model: model.model,
    tools: tools.registry.list(),
  });
  const ends: (AgentEvent & { type: "tool_execution_end" })[] = [];
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") ends.push(event);
  });
  await agent.prompt("Go");
  const [end] = ends;
  return { questions, outcome: end?.outcome ?? "", text: textOf(end?.result ?? { content: [] }) };
}

const edit = (path: string, oldText: string): Record<string, unknown> => ({
  path,
  edits: [{ oldText, newText: "new" }],
});
const patch = (...lines: string[]): Record<string, unknown> => ({
  patch: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n"),
});

describe("a call that is known to fail is not asked about", () => {
  const cases: [what: string, tool: string, args: Record<string, unknown>, error: RegExp][] = [
    ["a text that is not there", "edit", edit("seen.txt", "nowhere"), /not in seen\.txt/],
    ["a text at two places", "edit", edit("twice.txt", "same"), /lines 2, 3/],
    ["no edits", "edit", { path: "seen.txt", edits: [] }, /no edits/],
    ["a file that is not there", "edit", edit("no.txt", "a"), /no\.txt/],
    [
      "a patch without its place",
      "apply_patch",
      patch("*** Update File: seen.txt", "@@", "-nowhere", "+new"),
      /not in seen\.txt/,
    ],
    [
      "a patch that adds what is there",
      "apply_patch",
      patch("*** Add File: seen.txt", "+new"),
      /is there already/,
    ],
    [
      "a file that was not read",
      "write",
      { path: "unseen.txt", content: "new" },
      /was not read\. Read it first/,
    ],
  ];
  it.each(cases)("%s", async (_what, tool, args, error) => {
    const { questions, outcome, text } = await attempt(tool, args);
    expect(questions).toEqual([]);
    expect(outcome).toBe("error");
    expect(text).toMatch(error);
  });

  it("a file that has changed since it was read", async () => {
    put("seen.txt", "old, and more\n");
    const { questions, outcome } = await attempt("write", { path: "seen.txt", content: "new" });
    expect([questions, outcome]).toEqual([[], "error"]);
  });
});

it("one that would do what it says is asked about, and done", async () => {
  const { questions, outcome } = await attempt("edit", edit("seen.txt", "old"));
  expect([questions, outcome]).toEqual([["Edit seen.txt (1 place)"], "ok"]);
  expect(readFileSync(join(base, "seen.txt"), "utf8")).toBe("new\n");
});

it("is checked again when it runs", async () => {
  const whileAsked = (): void => put("seen.txt", "elsewhere\n");
  const { questions, outcome } = await attempt("edit", edit("seen.txt", "old"), { whileAsked });
  expect(questions).toHaveLength(1);
  expect(outcome).toBe("error");
  expect(readFileSync(join(base, "seen.txt"), "utf8")).toBe("elsewhere\n");
});

it("shows nothing of a file that is not to be read", async () => {
  const denied = await attempt("edit", edit("unseen.txt", "hunter2"), {
    rules: { deny: ["read(unseen.txt)"] },
  });
  expect(denied).toMatchObject({ questions: [], outcome: "denied" });
  expect(denied.text).not.toContain("hunter22");
  // A person decides whether it may be read, and so whether the model gets the error.
  const asked = await attempt("edit", edit("unseen.txt", "nowhere"), {
    rules: { ask: ["read(unseen.txt)"] },
  });
  expect(asked.questions).toHaveLength(1);
});
