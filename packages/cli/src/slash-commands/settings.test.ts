import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AssistantMessage, type Model } from "@gyre/ai";
import { call, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import type { Mcp, McpServerStatus } from "@gyre/mcp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Approvals, type Harness, openHarness } from "@gyre/coding/internal/harness/harness";
import { Spending } from "@gyre/coding/internal/harness/session/spending";
import { openStore, type Setup } from "../core/setup.ts";
import { FakeView } from "../testing/slash-commands.ts";
import { drawBar } from "../text/markdown-text.ts";
import { builtinCommands } from "./builtin.ts";
import { KeyBindings } from "../core/key-bindings.ts";
import { listKeyGroups } from "./help.ts";
import { contextParts } from "./usage.ts";

let folder = "";
let harness: Harness | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-settings-commands-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  rmSync(folder, { recursive: true, force: true });
});

interface PlayedOptions {
  script?: ScriptStep[];
  layers?: Setup["layers"];
  settings?: Setup["settings"];
  mcp?: Mcp;
  tools?: string[];
  approvals?: Approvals;
}

/** Commands on a real agent whose model follows a script. */
async function played(options: PlayedOptions = {}): Promise<FakeView> {
  const { script = ["Hello"], layers, mcp, settings } = options;
  const { tools = ["read", "grep"], approvals = "deny" } = options;
  const model = scriptedModel(script);
  const env = { XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder, HOME: folder };
  const store = await openStore({ env });
  const named = (name: string): Promise<Model> => {
    if (name === "nothing") return Promise.reject(new Error('There is no model "nothing".'));
    return Promise.resolve(
      name.endsWith(model.model.id) ? model.model : { ...model.model, id: name },
    );
  };
  harness = await openHarness({
    settings: { tools, sandbox: "none", skills: false, instructionFiles: false },
    cwd: folder,
    env,
    approvals,
    warn: () => {},
    newSession: () => store.create({ cwd: folder }),
    models: {
      client: model,
      fallbacks: [],
      current: () => named(model.model.id),
      find: named,
      list: () => Promise.resolve([model.model]),
    },
  });
  const of = mcp ? Object.assign(harness, { mcp }) : harness;
  return new FakeView({
    harness: of,
    env,
    cwd: folder,
    ...(settings && { settings }),
    ...(layers && { layers }),
  });
}

it("each name is there once", () => {
  const names = builtinCommands.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(new Set(names).size).toBe(names.length);
});

describe("/add-dir", () => {
  it("adds a folder, lists those that were added, and says what is wrong with one", async () => {
    const view = await played({ tools: ["read"] });
    await view.run("add-dir");
    const lib = mkdtempSync(join(tmpdir(), "gyre-lib-"));
    await view.run(`add-dir ${lib}`);
    await view.run(`add-dir ${lib}`);
    await view.run("add-dir");
    await expect(view.run("add-dir none")).rejects.toThrow(
      `${join(folder, "none")} cannot be added: there is no such folder.`,
    );
    await expect(view.run("add-dir /")).rejects.toThrow("it is all of this machine");
    rmSync(lib, { recursive: true });
    expect(view.output).toEqual([
      "No folders were added. /add-dir FOLDER adds one.",
      `${lib} belongs to the workspace now.`,
      `${lib} belongs to the workspace already.`,
      `The workspace is ${folder} and\n${lib}`,
    ]);
  });
});

describe("/permissions forget", () => {
  it("takes back a rule of an answer: what it allowed is asked about again", async () => {
    const asked: string[] = [];
    const write = call("write", { path: "a.txt", content: "a" });
    const again = call("write", { path: "a.txt", content: "b" });
    const view = await played({
      tools: ["write"],
      script: [
        write,
        "One.",
        again,
        "Two.",
        call("write", { path: "a.txt", content: "c" }),
        "Three.",
      ],
      approvals: ({ tool }) => {
        asked.push(tool);
        return Promise.resolve(
          asked.length === 1 ? { allow: "always", rule: "write(a.txt)" } : { allow: false },
        );
      },
    });
    await view.harness.prompt({ text: "Go" });
    await view.harness.prompt({ text: "Go" });
    expect(asked.length).toBe(1);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("b");
    await view.run("permissions forget write(a.txt)");
    expect(view.output).toEqual(["write(a.txt) is asked about again."]);
    await view.harness.prompt({ text: "Go" });
    expect(asked.length).toBe(2);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("b");
    await expect(view.run("permissions forget write(a.txt)")).rejects.toThrow(
      "There is no rule write(a.txt) of an answer. You gave none.",
    );
  });

  it("names the rules that there are where another is given", async () => {
    const view = await played({
      tools: ["write"],
      script: [call("write", { path: "a.txt", content: "a" }), "One."],
      approvals: () => Promise.resolve({ allow: "always", rule: "write(a.txt)" }),
    });
    await view.harness.prompt({ text: "Go" });
    await expect(view.run("permissions forget write(b.txt)")).rejects.toThrow(
      "You gave: write(a.txt).",
    );
  });
});

describe("/model", () => {
  it("takes the model that is named, and says so", async () => {
    const view = await played();
    await view.run("model other");
    expect(view.harness.model.id).toBe("other");
    expect(view.output).toEqual([`The model is ${view.harness.model.provider}/other now.`]);
  });

  it("says that the cache starts over where something was said already", async () => {
    const view = await played();
    await view.harness.prompt({ text: "Hi" });
    await view.run("model other");
    expect(view.output[0]).toMatch(/now\. The service's cache starts over/);
    await view.run("model other");
    expect(view.output[1]).not.toContain("cache");
  });

  it("lists the models, with the one in use marked, and leaves it where none is chosen", async () => {
    const view = await played();
    const { provider, id } = view.harness.model;
    await view.run("model");
    expect(view.questions[0]?.choices[view.questions[0].start ?? -1]).toMatchObject({
      value: `${provider}/${id}`,
      detail: expect.stringMatching(/ · now$/) as unknown,
    });
    expect(view.questions[0]?.filter).toBe(true);
    expect(view.output).toEqual([]);
  });

  it("rejects with a message for the user where there is no such model", async () => {
    const view = await played();
    await expect(view.run("model nothing")).rejects.toThrow('There is no model "nothing".');
  });
});

describe("/thinking", () => {
  it("takes a level by name or from a list, and none that there is not", async () => {
    const view = await played();
    await view.run("thinking high");
    view.answers.push("low");
    await view.run("thinking");
    expect(view.questions[0]?.start).toBe(4);
    expect(view.harness.agent.state.thinkingLevel).toBe("low");
    expect(view.output).toEqual(["Thinking is high now.", "Thinking is low now."]);
    await expect(view.run("thinking much")).rejects.toThrow(
      'There is no level "much". The levels are off,',
    );
  });
});

describe("/mode and /permissions", () => {
  it("take a mode by name or from a list that says what each means", async () => {
    const view = await played();
    await view.run("mode plan");
    view.answers.push("auto-edit");
    await view.run("permissions");
    expect(view.questions[0]?.choices.map(({ detail }) => detail)).toContain(
      "Does everything by itself.",
    );
    expect(view.harness.mode).toBe("auto-edit");
    expect(view.output[0]).toBe(
      "The mode is plan now. Reads and plans. Changes nothing and runs nothing.",
    );
    await expect(view.run("permissions all")).rejects.toThrow('There is no mode "all".');
  });

  it("show each rule that holds once, the strongest first, with where it is from", async () => {
    const view = await played({
      layers: [
        { source: "user file", settings: { allow: ["read", "shell(npm test)"], deny: ["git"] } },
        { source: "command line", settings: { allow: ["read", "edit(a|b)"] } },
      ],
    });
    await view.run("permissions");
    expect(view.output[0]).toBe(
      [
        "|  | rule | from |",
        "| --- | --- | --- |",
        "| deny | `git` | your settings |",
        "| allow | `read` | your settings |",
        "| allow | `shell(npm test)` | your settings |",
        "| allow | `edit(a\\|b)` | the command line |",
      ].join("\n"),
    );
  });

  it("show the rules that a person gave with an answer", async () => {
    const view = await played({
      script: [call("write", { path: "a.txt", content: "a" }), "Done"],
      tools: ["write"],
      approvals: () => Promise.resolve({ allow: "always", rule: "write(a.txt)" }),
    });
    await view.harness.prompt({ text: "Write it" });
    await view.run("permissions");
    expect(view.output[0]).toContain("| allow | `write(a.txt)` | your answer, until this ends |");
  });
});

describe("/tools", () => {
  it("turns one off and on by name, for the requests that follow", async () => {
    const view = await played();
    await view.run("tools grep");
    const names = (): string[] => view.harness.agent.state.tools.map(({ name }) => name);
    expect(names()).toEqual(["read"]);
    await view.run("tools grep");
    expect(names()).toEqual(["read", "grep"]);
    expect(view.output).toEqual(["The model has read now.", "The model has read, grep now."]);
    await expect(view.run("tools grap")).rejects.toThrow("Did you mean grep?");
  });

  it("adds one that was not there, and takes one away", async () => {
    const view = await played();
    const names = (): string[] => view.harness.agent.state.tools.map(({ name }) => name);
    await view.run("tools +git");
    expect(names()).toEqual(["read", "grep", "git"]);
    await view.run("tools +oracle, -grep");
    expect(names()).toEqual(["read", "git", "oracle"]);
    expect(view.output.at(-1)).toBe("The model has read, git, oracle now.");
    await expect(view.run("tools +gti")).rejects.toThrow("Did you mean git?");
    await expect(view.run("tools -gti")).rejects.toThrow("Did you mean git?");
    await expect(view.run("tools +find grep")).rejects.toThrow('"grep" needs + or - before it.');
    expect(names()).toEqual(["read", "git", "oracle"]);
  });

  it("asks until the list is left, and warns of the cache", async () => {
    const view = await played();
    await view.harness.prompt({ text: "Hi" });
    view.answers.push("[x] read", "[x] grep", "[ ] grep");
    await view.run("tools");
    expect(view.questions.map(({ choices }) => choices.map(({ label }) => label))).toEqual([
      ["[x] read", "[x] grep"],
      ["[ ] read", "[x] grep"],
      ["[ ] read", "[ ] grep"],
      ["[ ] read", "[x] grep"],
    ]);
    expect(view.output).toEqual([
      expect.stringMatching(/^The model has grep now\. .* cache starts over/),
    ]);
  });

  it("says nothing where all stays as it was", async () => {
    const view = await played();
    await view.run("tools");
    expect(view.output).toEqual([]);
  });
});

describe("/mcp", () => {
  const status = (more: Partial<McpServerStatus>): McpServerStatus => ({
    name: "files",
    scope: "user",
    kind: "stdio",
    state: "ready",
    tools: ["a", "b"],
    held: [],
    ...more,
  });
  const createMcp = (servers: McpServerStatus[]): Mcp => ({
    tools: [],
    middleware: {},
    connect: () => Promise.resolve(),
    status: () => servers,
    accept: (server) =>
      Promise.resolve({
        server,
        changed: [],
        added: ["new"],
        tools: [{ name: "new", description: "```\nDoes.", inputSchema: { type: "object" } }],
      }),
    prompts: () =>
      Promise.resolve([
        {
          server: "files",
          name: "plan",
          description: "Plans.",
          arguments: [
            { name: "day", isRequired: true },
            { name: "mood", isRequired: false },
          ],
        },
      ]),
    prompt: (server, name, args) =>
      Promise.resolve([
        { type: "text", text: `${server} ${name} ${JSON.stringify(args)}` },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ]),
    logIn: () => Promise.resolve(),
    logOut: () => {},
    close: () => Promise.resolve(),
  });

  it("says where servers come from when there are none", async () => {
    const view = await played();
    await view.run("mcp");
    expect(view.output[0]).toMatch(/^No MCP servers are set/);
  });

  it("shows each server with what it has, or what is wrong with it", async () => {
    const view = await played({
      mcp: createMcp([
        status({ held: ["c"] }),
        status({ name: "web", kind: "http", problem: "It is | gone." }),
      ]),
    });
    await view.run("mcp");
    expect(view.output[0]?.split("\n").slice(2)).toEqual([
      "| `files` | stdio | user | 2 tools; 1 changed: /mcp trust files |",
      "| `web` | http | user | It is \\| gone. |",
    ]);
  });

  it("waits no longer for a server that does not answer when it is stopped", async () => {
    const mcp = { ...createMcp([status({})]), connect: () => new Promise<void>(() => {}) };
    const view = await played({ mcp });
    const end = view.run("mcp");
    view.stop.abort();
    await expect(end).rejects.toBe(view.stop.signal.reason);
    expect(view.output).toEqual([]);
  });

  it("trusts the tools of one as they are, and shows what they say", async () => {
    const view = await played({ mcp: createMcp([status({})]) });
    await view.run("mcp trust files");
    expect(view.output[0]).toContain("`new` (new)\n\n````\n```\nDoes.\nparameters: ");
    expect(view.output[0]).toMatch(/The tools of files are now trusted as they are\.$/);
    await expect(view.run("mcp trust")).rejects.toThrow("the name of a server");
  });

  it("says which server wants a login, and how", async () => {
    const view = await played({
      mcp: createMcp([status({ state: "down", problem: "No.", needsLogin: true })]),
    });
    await view.run("mcp");
    expect(view.output[0]).toContain("wants a login: gyre mcp login files");
  });

  it("lists the prompts of servers, and sends one with its arguments", async () => {
    const view = await played({ mcp: createMcp([status({})]) });
    await view.run("mcp prompts");
    expect(view.output[0]).toContain("| `files` | `plan` | day mood? | Plans. |");
    await view.run("mcp prompt files plan day=Monday mood=very tired");
    expect(view.sent).toEqual(['files plan {"day":"Monday","mood":"very tired"}']);
    await expect(view.run("mcp prompt files")).rejects.toThrow("KEY=VALUE");
    await expect(view.run("mcp prompt files plan Monday")).rejects.toThrow(
      '"Monday" is no argument',
    );
  });
});

describe("/context", () => {
  it("shows a bar and a table of what the next request is made of", async () => {
    const view = await played();
    await view.run("context");
    expect(view.output[0]).toMatch(
      /^About [\d,]+ tokens; [\d,]+ more until it is compacted at [\d,]+\./,
    );
    expect(view.output[0]).toMatch(/\n```\n█+▓+·+\n```\n/);
    expect(view.output[0]).toMatch(/\n\| ▓ \| tools \| [\d,]+ \| (\\<1|\d+) % \|\n/);
  });

  it("has a bar that is as wide as it may be, and shows all that is there", () => {
    const parts = { system: 1, tools: 0, files: 500, results: 1, messages: 498 };
    const whole = { ...parts, total: 1000, free: 0, trigger: 1000 };
    const bar = (size: typeof whole): string => {
      const [, found] = contextParts(size);
      return found?.type === "bar" ? drawBar(found, 20) : "";
    };
    expect(bar(whole)).toBe("█▒▒▒▒▒▒▒▒▒░▄▄▄▄▄▄▄▄▄");
    expect(bar({ ...whole, trigger: 10_000 })).toBe("█▒░▄················");
    expect(bar({ ...whole, trigger: 10 })).toHaveLength(20);
  });
});

describe("/compact", () => {
  it("makes the context smaller, says by how much, and the session has it", async () => {
    const long = "word ".repeat(3000);
    const view = await played({
      script: [long, long, long, "All that matters: names."],
    });
    for (const text of ["one", "two", "three"]) await view.harness.prompt({ text });
    await view.run("compact the names");
    expect(view.output[0]).toMatch(/^The context went from about [\d,]+ to [\d,]+ tokens\./);
    expect(JSON.stringify(view.harness.agent.state.compaction)).toContain("All that matters");
    const path = view.harness.session?.path ?? "";
    expect(existsSync(path) && readFileSync(path, "utf8")).toContain('"type":"compaction"');
  });

  it("leaves all as it was when it is stopped", async () => {
    const long = "word ".repeat(3000);
    const view = await played({ script: [long, long, long, [stall()]] });
    for (const text of ["one", "two", "three"]) await view.harness.prompt({ text });
    const end = view.run("compact");
    view.stop.abort();
    await expect(end).rejects.toThrow("has changed nothing");
    expect(view.output).toEqual([]);
    expect(view.harness.agent.state.compaction).toBeUndefined();
  });

  it("says where there is nothing to leave out", async () => {
    const view = await played();
    await view.run("compact");
    expect(view.output).toEqual(["There is nothing to leave out yet."]);
  });
});

describe("/status", () => {
  it("shows model, mode, folder, sandbox, tools and session", async () => {
    const view = await played();
    await view.run("status");
    const [shown = ""] = view.output;
    expect(shown).toContain(`| model | \`${view.harness.model.provider}/`);
    expect(shown).toContain("| mode | ask |");
    expect(shown).toContain("| sandbox | none, as you set it |");
    expect(shown).toContain("| network | commands do not reach it |");
    expect(shown).toContain("| tools | read, grep |");
    expect(shown).toContain("| session | begins with the first prompt |");
    await view.harness.prompt({ text: "Look" });
    await view.run("status");
    expect(view.output[1]).toContain(`| session | \`${view.harness.session?.header.id}\` |`);
  });
});

describe("/config", () => {
  it("shows what is set and by what, and all else if that is asked for", async () => {
    const settings = { mode: "plan", allow: ["shell(ls)"] } as const;
    const view = await played({
      settings,
      layers: [{ source: "user file", settings }],
    });
    await view.run("config");
    expect(view.output[0]).toContain('| `mode` | "plan" | user file |');
    expect(view.output[0]).not.toContain("`network`");
    await view.run("settings all");
    expect(view.output[1]).toContain("| `network` | false | default |");
    await expect(view.run("config mode")).rejects.toThrow('/config takes "all" or nothing');
  });
});

describe("/login", () => {
  it("asks for a key, stores it for the user alone, and does not show it", async () => {
    const view = await played();
    view.secret = "sk-ant-secret";
    await view.run("login anthropic");
    const file = join(folder, "gyre", "keys.json");
    expect(view.output[0]).toContain(file);
    expect(view.output.join()).not.toContain("sk-ant-secret");
    expect(readFileSync(file, "utf8")).toContain("sk-ant-secret");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("stores nothing where the question is left, and suggests a service", async () => {
    const view = await played();
    view.answers = ["OpenAI"];
    await view.run("login");
    expect(view.output).toEqual(["No key was stored."]);
    await expect(view.run("login antropic")).rejects.toThrow("Did you mean anthropic?");
  });
});

describe("/cost", () => {
  it("shows the session, the last prompt, and what came from the cache", async () => {
    const usage = { input: 100, cacheRead: 300, output: 10, totalTokens: 410 };
    const view = await played({
      script: [
        { parts: [call("grep", { pattern: "x" })], usage },
        { parts: ["Done"], usage },
      ],
    });
    await view.harness.prompt({ text: "Look" });
    await view.run("cost");
    expect(view.output[0]).toMatch(
      /^The session: 820 tokens, for .*\. 75 % of the input was cached\./,
    );
    expect(view.output[0]).toContain("Since your last message: 820 tokens");
  });

  it("counts summaries and side questions, and says what each was for", async () => {
    const usage = { input: 1000, output: 10 };
    const long = "word ".repeat(3000);
    const view = await played({
      script: [
        ...[1, 2, 3].map(() => ({ parts: [long], usage })),
        { parts: ["All that matters."], usage: { input: 20_000, output: 100 } },
        { parts: ["Yes."], usage: { input: 300, output: 1 } },
      ],
    });
    for (const text of ["one", "two", "three"]) await view.harness.prompt({ text });
    await view.run("compact");
    await view.harness.ask("Is it?", new AbortController().signal);
    await view.run("cost");
    const shown = view.output.at(-1) ?? "";
    expect(shown).toContain("The session: 23,431 tokens");
    expect(shown).toMatch(/\| answers \| 3,030 \|/);
    expect(shown).toMatch(/\| summaries \| 20,100 \|/);
    expect(shown).toMatch(/\| side questions \| 301 \|/);
    expect(view.harness.agent.state.usage.totalTokens).toBe(23_431);
  });

  it("keeps models apart, and what was said last from all", () => {
    const answer = (model: string, tokens: number): AssistantMessage => ({
      role: "assistant",
      content: [],
      api: "x",
      provider: "p",
      model,
      usage: { totalTokens: tokens },
      stopReason: "stop",
      timestamp: 0,
    });
    const user = { role: "user", content: "Hi", timestamp: 0 } as const;
    const spending = new Spending();
    for (const each of [user, answer("a", 1), user, answer("b", 2)]) spending.addMessage(each);
    const { session, prompt, models } = spending;
    expect([session.totalTokens, prompt.totalTokens]).toEqual([3, 2]);
    expect([...models].map(([name, { totalTokens }]) => [name, totalTokens])).toEqual([
      ["p/a", 1],
      ["p/b", 2],
    ]);
  });
});

describe("/help and /quit", () => {
  it("shows every key and every command", async () => {
    const view = await played();
    await view.run("help");
    for (const { name } of builtinCommands) expect(view.output[0]).toContain(`\`/${name}\``);
    for (const { about } of listKeyGroups(new KeyBindings()).flatMap(({ keys }) => keys))
      expect(view.output[0]).toContain(about);
  });

  it("ends the program", async () => {
    const view = await played();
    await view.run("quit");
    expect(view.quits).toBe(1);
  });
});
