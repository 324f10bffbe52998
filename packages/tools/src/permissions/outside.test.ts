import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { permissions, type PermissionOptions } from "../permissions.ts";
import { noSandbox } from "../sandbox/sandbox.ts";
import { openToolset, type Toolset } from "../toolset.ts";
import type { ApprovalAnswer, ApprovalRequest } from "./permissions.ts";
import { rulesFor } from "./rules-for.ts";

let base: string;
let tools: Toolset;
let requests: ApprovalRequest[];

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-outside-")));
  for (const name of ["work", "lib/src", "other/.env"])
    mkdirSync(join(base, name), { recursive: true });
  writeFileSync(join(base, "lib/a.txt"), "of the library\n");
  writeFileSync(join(base, "lib/src/b.txt"), "of the library, too\n");
  writeFileSync(join(base, "other/c.txt"), "of others\n");
  writeFileSync(join(base, "work/w.txt"), "mine\n");
  requests = [];
  tools = await openToolset({
    root: join(base, "work"),
    sandbox: noSandbox,
    stateFolder: join(base, "state"),
  });
});

afterEach(async () => {
  await tools.close();
  rmSync(base, { recursive: true });
});

type Answer = (request: ApprovalRequest) => ApprovalAnswer | Promise<ApprovalAnswer>;
const yes: Answer = ({ fingerprint }) => ({ allow: true, fingerprint });
const no: Answer = () => ({ allow: false });

/** The results of calls of one agent, one after the other. */
async function run(
  calls: readonly (readonly [string, Record<string, unknown>])[],
  { answer = no, ...options }: Partial<PermissionOptions> & { answer?: Answer } = {},
): Promise<string[]> {
  const guard = permissions({
    sandboxed: false,
    tools: tools.registry.list(),
    workspace: tools.env.workspace,
    ...(!options.headless && {
      ask(request) {
        requests.push(request);
        return Promise.resolve(answer(request));
      },
    }),
    ...options,
  });
  const model = scriptedModel([...calls.map(([name, args]) => call(name, args)), "Done."]);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    tools: tools.registry.list(),
    middleware: [guard],
  });
  const results: string[] = [];
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") results.push(textOf(event.result));
  });
  await agent.prompt("Go");
  return results;
}

describe("a read outside of the workspace", () => {
  it.each(["plan", "ask", "auto-edit", "auto", "full"] as const)(
    "is asked about in mode %s, and reads what was approved",
    async (mode) => {
      const path = join(base, "lib/a.txt");
      const [text] = await run([["read", { path }]], { mode, answer: yes });
      expect(text).toContain("of the library");
      expect(requests.map(({ reason }) => reason)).toEqual([
        `"${path}" is outside of the workspace.`,
      ]);
      expect(requests[0]?.access?.summary).toBe(`Read "${path}", outside of the workspace`);
    },
  );

  it("is asked about each time, and denied where a person says no", async () => {
    const calls = ["../lib/a.txt", "../lib/a.txt"].map((path) => ["read", { path }] as const);
    const first = await run(calls, { answer: yes });
    expect(first.every((text) => text.includes("of the library"))).toBe(true);
    expect(requests.length).toBe(2);
    const [denied] = await run([["read", { path: "../lib/a.txt" }]]);
    expect(denied).toBe('Tool "read" failed: Denied: a person said no.');
  });

  it("opens nothing else than what was approved", async () => {
    await run([["read", { path: "../lib/a.txt" }]], { answer: yes });
    const { workspace } = tools.env;
    await expect(workspace.read("../lib/src/b.txt")).rejects.toThrow("leads out of the workspace");
    await expect(workspace.list("../lib")).rejects.toThrow("leads out of the workspace");
    await expect(workspace.resolve("../lib/a.txt")).rejects.toThrow("leads out of the workspace");
    await expect(workspace.write("../lib/a.txt", "x")).rejects.toThrow(
      "leads out of the workspace",
    );
    await expect(workspace.remove("../lib/a.txt")).rejects.toThrow("leads out of the workspace");
  });

  it("is one of the place that was shown, wherever a link leads by then", async () => {
    const link = join(base, "work/link");
    symlinkSync(join(base, "lib/a.txt"), link);
    const [text] = await run([["read", { path: "link" }]], {
      answer(request) {
        rmSync(link, { force: true });
        symlinkSync(join(base, "other/c.txt"), link);
        return requests.length === 1 ? yes(request) : no(request);
      },
    });
    expect(requests[1]?.reason).toContain("It has changed since it was approved.");
    expect(text).toContain("Denied");
  });

  it("of a folder lists, finds and searches all of it", async () => {
    const path = join(base, "lib");
    const results = await run(
      [
        ["ls", { path }],
        ["find", { pattern: "**/*.txt", path }],
        ["grep", { pattern: "too", path }],
        ["ls", { path: "../lib/src" }],
      ],
      { answer: yes },
    );
    expect(results[0]).toContain("a.txt");
    expect(results[1]?.split("\n").sort()).toEqual(["../lib/a.txt", "../lib/src/b.txt"]);
    expect(results[2]).toContain("of the library, too");
    expect(results[3]).toContain("b.txt");
    expect(requests.length).toBe(4);
  });

  it("needs no answer where a rule allows the file or the folder, and one without a pattern does not", async () => {
    const path = join(base, "lib/a.txt");
    const folder = join(base, "lib");
    for (const rule of [`read(${path})`, `read(${folder}/**)`]) {
      const [text] = await run([["read", { path }]], { rules: { allow: [rule] } });
      expect(text, rule).toContain("of the library");
    }
    for (const rule of ["read", "read(**)", `read(${base}/other/**)`, `write(${folder}/**)`]) {
      const [text] = await run([["read", { path }]], { rules: { allow: [rule] } });
      expect(text, rule).toContain("Denied");
    }
  });

  it("can be allowed for the file and for its folder by the rules that are offered", async () => {
    const path = join(base, "lib/a.txt");
    await run([["read", { path }]]);
    const [request] = requests;
    if (!request) throw new Error("Nothing was asked.");
    expect(await rulesFor(request)).toEqual([`read(${path})`]);
    expect(await rulesFor({ ...request, isWide: true })).toEqual([`read(${base}/lib/**)`]);
    const results = await run(
      [
        ["read", { path }],
        ["read", { path: "../lib/src/b.txt" }],
      ],
      { answer: () => ({ allow: "always", rule: `read(${base}/lib/**)` }) },
    );
    expect(results[1]).toContain("of the library, too");
    expect(requests.length).toBe(2);
  });

  it("is denied by a rule that forbids, relative or absolute, before a person is asked", async () => {
    const path = join(base, "lib/a.txt");
    for (const rule of ["read(a.txt)", "read(**/*.txt)", `read(${path})`, `read(${base}/lib)`]) {
      const [text] = await run([["read", { path }]], { rules: { deny: [rule] }, answer: yes });
      expect(text, rule).toContain(`The rule "${rule}" forbids it.`);
    }
    expect(requests).toEqual([]);
  });

  it("holds for files of the workspace where a rule forbids by an absolute path", async () => {
    const rule = `read(${base}/work/w.txt)`;
    const results = await run(
      [
        ["read", { path: "w.txt" }],
        ["grep", { pattern: "mine" }],
      ],
      { rules: { deny: [rule] } },
    );
    expect(results[0]).toContain(`The rule "${rule}" forbids it.`);
    expect(results[1]).not.toContain("w.txt:");
  });

  it("leaves out of a search what a rule forbids to read", async () => {
    const [text] = await run([["grep", { pattern: "of the library", path: join(base, "lib") }]], {
      rules: { deny: ["read(src/**)"] },
      answer: yes,
    });
    expect(text).toContain("a.txt");
    expect(text).not.toContain("b.txt");
  });

  it("is denied where no person can be asked, with what allows it", async () => {
    const [text] = await run([["read", { path: "../lib/a.txt" }]], {
      headless: true,
      outsideHint: "Start with --add-dir FOLDER.",
    });
    expect(text).toContain("is outside of the workspace. Start with --add-dir FOLDER.");
  });

  it.each([
    ["a key", () => join(homedir(), ".ssh/id_ed25519")],
    ["the folder of keys, by ~", () => "~/.ssh"],
    ["what the system says of this process", () => "/proc/self/environ"],
    ["its memory", () => "/dev/mem"],
  ])("of %s is refused, whatever a person or a rule says", async (_name, find) => {
    const [text] = await run([["read", { path: find() }]], {
      mode: "full",
      rules: { allow: ["read(/**)"] },
      answer: yes,
    });
    expect(text).toContain("is not for tools");
    expect(requests).toEqual([]);
  });
});
