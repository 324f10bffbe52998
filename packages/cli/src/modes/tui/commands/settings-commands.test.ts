import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AssistantMessage, type Model } from "@gyre/ai";
import { call, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import type { Mcp, McpServerStatus } from "@gyre/tools/mcp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OWN_COMMANDS } from "../../../extensions/command-registry.ts";
import { type Approvals, type Harness, openHarness } from "../../../harness/harness.ts";
import { openStore, type Setup } from "../../../harness/setup.ts";
import { textIo } from "../../../testing/command-io.ts";
import { NO_COLOURS } from "../terminal/theme.ts";
import type { CommandWorld, Question } from "../ui/ui.ts";
import { barOf } from "./context.ts";
import { KEY_GROUPS } from "./help.ts";
import { spendingOf } from "./cost.ts";
import { settingsCommands } from "./settings-commands.ts";

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

const commands = settingsCommands(() => commands);

interface Played {
  world: CommandWorld;
  said: string[];
  questions: Question<unknown>[];
  /** The labels, or the beginnings of some, to choose; without one a question is left. */
  answers: string[];
  run: (line: string) => Promise<void>;
  stop: AbortController;
  quits: () => number;
}

interface PlayedOptions {
  script?: ScriptStep[];
  setup?: Partial<Setup>;
  mcp?: Mcp;
  tools?: string[];
  approvals?: Approvals;
}

/** Commands on a real agent whose model follows a script. */
async function played(options: PlayedOptions = {}): Promise<Played> {
  const { script = ["Hello"], setup = {}, mcp } = options;
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
  const said: string[] = [];
  const questions: Question<unknown>[] = [];
  const answers: string[] = [];
  let quits = 0;
  const stop = new AbortController();
  const world: CommandWorld = {
    harness: mcp ? Object.assign(harness, { mcp }) : harness,
    io: textIo({ env, cwd: folder }),
    setup: { settings: {}, explicit: new Set(), cwd: folder, warn: () => {}, ...setup },
    signal: stop.signal,
    reopen: () => Promise.resolve(),
    prompt: () => {},
    quit: () => void quits++,
    ui: {
      columns: 80,
      theme: NO_COLOURS,
      draw: () => {},
      say: (text) => void said.push(text),
      warn: (text) => void said.push(text),
      show: () => {},
      open: () => Promise.resolve(undefined),
      choose: <T>(question: Question<T>) => {
        questions.push(question);
        const wanted = answers.shift();
        const chosen = question.choices.find(
          ({ label }) => wanted !== undefined && label.startsWith(wanted),
        );
        return Promise.resolve(chosen?.value);
      },
      edit: () => {},
      suspend: (work) => work(),
      control: () => true,
    },
  };
  const run = async (line: string): Promise<void> => {
    const [name = "", ...rest] = line.split(" ");
    const command = commands.find((each) => each.name === name);
    if (!command) throw new Error(`There is no command ${name}.`);
    await command.run(rest.join(" "), world);
  };
  return { world, said, questions, answers, run, stop, quits: () => quits };
}

it("no command has a name that a plugin could take", () => {
  expect(OWN_COMMANDS).toEqual(expect.arrayContaining(commands.map(({ name }) => name)));
});

describe("/model", () => {
  it("takes the model that is named, and says so", async () => {
    const { run, said, world } = await played();
    await run("model other");
    expect(world.harness.model.id).toBe("other");
    expect(said).toEqual([`The model is ${world.harness.model.provider}/other now.`]);
  });

  it("says that the cache starts anew where something was said already", async () => {
    const { run, said, world } = await played();
    await world.harness.prompt({ text: "Hi" });
    await run("model other");
    expect(said[0]).toMatch(/now\. The service's cache starts anew/);
    await run("model other");
    expect(said[1]).not.toContain("cache");
  });

  it("lists the models, with the one in use marked, and leaves it where none is chosen", async () => {
    const { run, said, questions, world } = await played();
    const { provider, id } = world.harness.model;
    await run("model");
    expect(questions[0]?.choices[questions[0].start ?? -1]).toMatchObject({
      value: `${provider}/${id}`,
      detail: expect.stringMatching(/ · now$/) as unknown,
    });
    expect(questions[0]?.filter).toBe(true);
    expect(said).toEqual([]);
  });

  it("rejects with what to tell the user where there is no such model", async () => {
    const { run } = await played();
    await expect(run("model nothing")).rejects.toThrow('There is no model "nothing".');
  });
});

describe("/thinking", () => {
  it("takes a level by name or from a list, and none that there is not", async () => {
    const { run, said, answers, questions, world } = await played();
    await run("thinking high");
    answers.push("low");
    await run("thinking");
    expect(questions[0]?.start).toBe(4);
    expect(world.harness.agent.state.thinkingLevel).toBe("low");
    expect(said).toEqual(["Thinking is high now.", "Thinking is low now."]);
    await expect(run("thinking much")).rejects.toThrow('There is no level "much". There is: off,');
  });
});

describe("/mode and /permissions", () => {
  it("take a mode by name or from a list that says what each means", async () => {
    const { run, said, answers, questions, world } = await played();
    await run("mode plan");
    answers.push("auto-edit");
    await run("permissions");
    expect(questions[0]?.choices.map(({ detail }) => detail)).toContain(
      "Does everything by itself.",
    );
    expect(world.harness.mode).toBe("auto-edit");
    expect(said[0]).toBe(
      "The mode is plan now. Reads and plans. Changes nothing and runs nothing.",
    );
    await expect(run("permissions all")).rejects.toThrow('There is no mode "all".');
  });

  it("show each rule that holds once, the strongest first, with where it is from", async () => {
    const { run, said } = await played({
      setup: {
        layers: [
          { source: "user file", settings: { allow: ["read", "shell(npm test)"], deny: ["git"] } },
          { source: "command line", settings: { allow: ["read", "edit(a|b)"] } },
        ],
      },
    });
    await run("permissions");
    expect(said[0]).toBe(
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
    const { run, said, world } = await played({
      script: [call("write", { path: "a.txt", content: "a" }), "Done"],
      tools: ["write"],
      approvals: () => Promise.resolve({ allow: "always", rule: "write(a.txt)" }),
    });
    await world.harness.prompt({ text: "Write it" });
    await run("permissions");
    expect(said[0]).toContain("| allow | `write(a.txt)` | your answer, until this ends |");
  });
});

describe("/tools", () => {
  it("turns one off and on by name, for the requests that follow", async () => {
    const { run, said, world } = await played();
    await run("tools grep");
    const names = (): string[] => world.harness.agent.state.tools.map(({ name }) => name);
    expect(names()).toEqual(["read"]);
    await run("tools grep");
    expect(names()).toEqual(["read", "grep"]);
    expect(said).toEqual(["The model has read now.", "The model has read, grep now."]);
    await expect(run("tools grap")).rejects.toThrow("Did you mean grep?");
  });

  it("asks until the list is left, and warns of the cache", async () => {
    const { run, said, answers, questions, world } = await played();
    await world.harness.prompt({ text: "Hi" });
    answers.push("[x] read", "[x] grep", "[ ] grep");
    await run("tools");
    expect(questions.map(({ choices }) => choices.map(({ label }) => label))).toEqual([
      ["[x] read", "[x] grep"],
      ["[ ] read", "[x] grep"],
      ["[ ] read", "[ ] grep"],
      ["[ ] read", "[x] grep"],
    ]);
    expect(said).toEqual([expect.stringMatching(/^The model has grep now\. .* cache starts anew/)]);
  });

  it("says nothing where all stays as it was", async () => {
    const { run, said } = await played();
    await run("tools");
    expect(said).toEqual([]);
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
  const mcpOf = (servers: McpServerStatus[]): Mcp => ({
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
    close: () => Promise.resolve(),
  });

  it("says where servers come from when there are none", async () => {
    const { run, said } = await played();
    await run("mcp");
    expect(said[0]).toMatch(/^No MCP servers are set/);
  });

  it("shows each server with what it has, or what is wrong with it", async () => {
    const { run, said } = await played({
      mcp: mcpOf([
        status({ held: ["c"] }),
        status({ name: "web", kind: "http", problem: "It is | gone." }),
      ]),
    });
    await run("mcp");
    expect(said[0]?.split("\n").slice(2)).toEqual([
      "| `files` | stdio | user | 2 tools; 1 changed: /mcp trust files |",
      "| `web` | http | user | It is \\| gone. |",
    ]);
  });

  it("waits no longer for a server that does not answer when it is stopped", async () => {
    const mcp = { ...mcpOf([status({})]), connect: () => new Promise<void>(() => {}) };
    const { run, said, stop } = await played({ mcp });
    const end = run("mcp");
    stop.abort();
    await expect(end).rejects.toBe(stop.signal.reason);
    expect(said).toEqual([]);
  });

  it("trusts the tools of one as they are, and shows what they say", async () => {
    const { run, said } = await played({ mcp: mcpOf([status({})]) });
    await run("mcp trust files");
    expect(said[0]).toContain("`new` (new)\n\n````\n```\nDoes.\nparameters: ");
    expect(said[0]).toMatch(/The tools of files are now trusted as they are\.$/);
    await expect(run("mcp trust")).rejects.toThrow("the name of a server");
  });
});

describe("/context", () => {
  it("shows a bar and a table of what the next request is made of", async () => {
    const { run, said } = await played();
    await run("context");
    expect(said[0]).toMatch(/^About [\d,]+ tokens; [\d,]+ more until it is compacted at [\d,]+\./);
    expect(said[0]).toMatch(/\n```\n█+▓+·+\n```\n/);
    expect(said[0]).toMatch(/\n\| ▓ \| tools \| [\d,]+ \| (<1|\d+) % \|\n/);
  });

  it("has a bar that is as wide as it may be, and shows all that is there", () => {
    const parts = { system: 1, tools: 0, files: 500, results: 1, messages: 498 };
    const whole = { ...parts, total: 1000, free: 0, trigger: 1000 };
    expect(barOf(whole, 20)).toBe("█▒▒▒▒▒▒▒▒▒░▄▄▄▄▄▄▄▄▄");
    expect(barOf({ ...whole, trigger: 10_000 }, 20)).toBe("█▒░▄················");
    expect(barOf({ ...whole, trigger: 10 }, 20)).toHaveLength(20);
  });
});

describe("/compact", () => {
  it("makes the context smaller, says by how much, and the session has it", async () => {
    const long = "word ".repeat(3000);
    const { run, said, world } = await played({
      script: [long, long, long, "All that matters: names."],
    });
    for (const text of ["one", "two", "three"]) await world.harness.prompt({ text });
    await run("compact the names");
    expect(said[0]).toMatch(/^The context went from about [\d,]+ to [\d,]+ tokens\./);
    expect(JSON.stringify(world.harness.agent.state.compaction)).toContain("All that matters");
    const path = world.harness.session?.path ?? "";
    expect(existsSync(path) && readFileSync(path, "utf8")).toContain('"type":"compaction"');
  });

  it("leaves all as it was when it is stopped", async () => {
    const long = "word ".repeat(3000);
    const { run, said, stop, world } = await played({ script: [long, long, long, [stall()]] });
    for (const text of ["one", "two", "three"]) await world.harness.prompt({ text });
    const end = run("compact");
    stop.abort();
    await expect(end).rejects.toThrow("all is as it was");
    expect(said).toEqual([]);
    expect(world.harness.agent.state.compaction).toBeUndefined();
  });

  it("says where there is nothing to leave out", async () => {
    const { run, said } = await played();
    await run("compact");
    expect(said).toEqual(["There is nothing to leave out yet."]);
  });
});

describe("/cost", () => {
  it("shows the session, the last prompt, and what came from the cache", async () => {
    const usage = { input: 100, cacheRead: 300, output: 10, totalTokens: 410 };
    const { run, said, world } = await played({
      script: [
        { parts: [call("grep", { pattern: "x" })], usage },
        { parts: ["Done"], usage },
      ],
    });
    await world.harness.prompt({ text: "Look" });
    await run("cost");
    expect(said[0]).toMatch(/^The session: 820 tokens, for .*\. 75 % of the input was cached\./);
    expect(said[0]).toContain("Since your last message: 820 tokens");
  });

  it("tells models apart, and what was said last from all", () => {
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
    const { session, prompt, models } = spendingOf([user, answer("a", 1), user, answer("b", 2)]);
    expect([session.totalTokens, prompt.totalTokens]).toEqual([3, 2]);
    expect([...models].map(([name, { totalTokens }]) => [name, totalTokens])).toEqual([
      ["p/a", 1],
      ["p/b", 2],
    ]);
  });
});

describe("/help and /quit", () => {
  it("shows every key and every command", async () => {
    const { run, said } = await played();
    await run("help");
    for (const { name } of commands) expect(said[0]).toContain(`\`/${name}\``);
    for (const { about } of KEY_GROUPS.flatMap(({ keys }) => keys))
      expect(said[0]).toContain(about);
  });

  it("ends the program", async () => {
    const { run, quits } = await played();
    await run("quit");
    expect(quits()).toBe(1);
  });
});
