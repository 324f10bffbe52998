import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type AgentEvent, defineTool } from "@gyre/agent";
import { call, scriptedModel, type ScriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import { MemorySessions } from "@gyre/sessions";
import type { ApprovalRequest } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CodingAgent, type CodingAgentOptions, createCodingAgent } from "./index.ts";

const MCP_SERVER = fileURLToPath(new URL("../../mcp/src/testing/mcp-server.mjs", import.meta.url));

let home = "";
let cwd = "";
let agents: CodingAgent[] = [];
let warnings: string[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gyre-coding-"));
  cwd = join(home, "project");
  mkdirSync(cwd);
});
afterEach(async () => {
  for (const agent of agents) await agent.close();
  agents = [];
  warnings = [];
  rmSync(home, { recursive: true, force: true });
});

async function open(
  script: readonly ScriptStep[] | ScriptedModel,
  options: CodingAgentOptions = {},
): Promise<{ agent: CodingAgent; model: ScriptedModel }> {
  const model = "calls" in script ? script : scriptedModel([...script]);
  const agent = await createCodingAgent({
    cwd,
    model: model.model,
    protocol: model,
    sandbox: "none",
    settings: { facts: false },
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      XDG_STATE_HOME: join(home, "state"),
      XDG_CONFIG_HOME: join(home, "config"),
    },
    onWarning: (text) => void warnings.push(text),
    ...options,
  });
  agents.push(agent);
  return { agent, model };
}

function write(path: string, content: string): void {
  const file = join(cwd, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, content);
}

const read = (path: string): string => readFileSync(join(cwd, path), "utf8");

/** The results of calls, as the model got them. */
function resultsIn({ state }: CodingAgent): { tool: string; isError: boolean; text: string }[] {
  return state.messages.flatMap((message) =>
    message.role === "toolResult"
      ? {
          tool: message.toolName,
          isError: message.isError,
          text: message.content.map((part) => (part.type === "text" ? part.text : "")).join(""),
        }
      : [],
  );
}

describe("works in a folder", () => {
  it("reads a file, changes it and runs a command", async () => {
    write("tea.txt", "green\n");
    const { agent } = await open(
      [
        call("read", { path: "tea.txt" }),
        call("edit", { path: "tea.txt", edits: [{ oldText: "green", newText: "black" }] }),
        call("shell", { command: "cat tea.txt" }),
        "It is black now.",
      ],
      { permissions: { mode: "full" } },
    );
    const end = await agent.prompt("Make the tea black.");
    expect(end.text).toBe("It is black now.");
    expect(end).toMatchObject({ stop: "done", turns: 4 });
    expect(read("tea.txt")).toBe("black\n");
    expect(resultsIn(agent)[2]).toMatchObject({ tool: "shell", isError: false });
    expect(resultsIn(agent)[2]?.text).toContain("black");
    expect(warnings).toEqual([]);
  });

  it("keeps commands in the sandbox of the system", { tags: "bubblewrap" }, async () => {
    const outside = join(home, "outside.txt");
    const { agent } = await open(
      [call("shell", { command: `echo tea > inside.txt; echo tea > ${outside}` }), "Done."],
      { sandbox: "auto", permissions: { mode: "full" } },
    );
    await agent.prompt("Write both.");
    expect(read("inside.txt")).toBe("tea\n");
    expect(existsSync(outside)).toBe(false);
    expect(warnings).toEqual([]);
  });

  it("gives events to listeners and to a reader, and its text as it comes", async () => {
    const { agent } = await open(["One.", "Two."]);
    const heard: AgentEvent["type"][] = [];
    const unsubscribe = agent.subscribe((event) => void heard.push(event.type));
    const run = agent.run("Count.");
    expect(agent.isRunning).toBe(true);
    const read: AgentEvent["type"][] = [];
    for await (const event of run) read.push(event.type);
    expect(read).toEqual(heard);
    expect(read.at(0)).toBe("agent_start");
    expect(read.at(-1)).toBe("agent_end");
    expect((await run.result()).text).toBe("One.");
    unsubscribe();
    let text = "";
    for await (const delta of agent.run("More.").textStream) text += delta;
    expect(text).toBe("Two.");
    expect(heard).toEqual(read);
  });

  it("answers in the form that is asked for", async () => {
    const { agent } = await open([call("final_answer", { cups: 3 })]);
    const { output } = await agent.prompt("How many?", {
      output: {
        type: "object",
        properties: { cups: { type: "integer" } },
        required: ["cups"],
      },
    });
    expect(output.cups).toBe(3);
  });

  it("has tools of the program beside its own", async () => {
    const kettle = defineTool({
      name: "kettle",
      description: "Boils water.",
      parameters: { type: "object", properties: {} },
      execute: () => "It boils.",
    });
    const script = [call("kettle", {}), "Done."];
    const { agent } = await open(script, {
      tools: [kettle],
      permissions: { allow: ["kettle"] },
    });
    await agent.prompt("Boil.");
    expect(resultsIn(agent)).toEqual([{ tool: "kettle", isError: false, text: "It boils." }]);
    const names = agent.state.tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["read", "shell", "kettle"]));

    const alone = await open(["Done."], { tools: ["read", kettle] });
    expect(alone.agent.state.tools.map(({ name }) => name)).toEqual(["read", "kettle"]);
    const readings: string[] = [];
    const own = defineTool({
      name: "read",
      description: "Reads tea leaves.",
      parameters: { type: "object", properties: {} },
      execute: () => `Reading ${readings.push("leaves")}.`,
    });
    for (const tools of [[own], ["read", own]]) {
      await expect(open([], { tools })).rejects.toMatchObject({
        code: "bad_option",
        message: 'tools: there is a tool "read" already. To replace it, add "-read".',
      });
    }
    const path = join(home, "leaves.jsonl");
    for (const tools of [["-read", own], [own]]) {
      const options = { tools, permissions: { mode: "full" }, session: { path } } as const;
      const { agent } = await open([call("read", {}), "Done."], options);
      await agent.prompt("Read.");
      await agent.close();
    }
    expect(readings).toHaveLength(2);
    const asked = await open(script, { tools: [kettle] });
    await asked.agent.prompt("Boil.");
    expect(asked.agent.denied).toMatchObject([{ tool: "kettle", rule: "kettle" }]);
  });

  it("has no limit of turns unless one is given", async () => {
    write("tea.txt", "green\n");
    const steps = Array.from({ length: 101 }, (_, index) =>
      call("read", { path: "tea.txt", offset: index + 1 }),
    );
    const unlimited = await open([...steps, "Read."], { session: "none" });
    expect(await unlimited.agent.prompt("Read.")).toMatchObject({ stop: "done", turns: 102 });
    const limited = await open(steps, { session: "none", limits: { maxTurns: 2 } });
    expect(await limited.agent.prompt("Read.")).toMatchObject({ stop: "limit", turns: 2 });
  });
});

describe("permissions", () => {
  const WRITE = call("write", { path: "tea.txt", content: "green\n" });

  it("deny what no one can be asked about, and say so", async () => {
    const { agent } = await open([WRITE, "I may not."]);
    await agent.prompt("Write.");
    expect(existsSync(join(cwd, "tea.txt"))).toBe(false);
    expect(resultsIn(agent)).toMatchObject([{ tool: "write", isError: true }]);
    expect(resultsIn(agent)[0]?.text).toContain("it needs an approval, and no person can be asked");
    expect(agent.denied).toMatchObject([{ tool: "write", rule: expect.stringContaining("write") }]);
  });

  it("deny by rules whatever the mode and the callback say", async () => {
    const asked: ApprovalRequest[] = [];
    const { agent } = await open([call("shell", { command: "touch owned" }), "I may not."], {
      permissions: {
        mode: "full",
        deny: ["shell(touch *)"],
        approve: (request) => asked.push(request) > 0,
      },
    });
    await agent.prompt("Touch.");
    expect(existsSync(join(cwd, "owned"))).toBe(false);
    expect(resultsIn(agent)[0]?.text).toContain("shell(touch *)");
    expect(asked).toEqual([]);
  });

  it("ask a callback, whose answer holds for the call", async () => {
    const asked: string[] = [];
    const answers = [false, true];
    const { agent } = await open([WRITE, WRITE, "Done."], {
      permissions: {
        approve: ({ tool, access }) => {
          asked.push(`${tool}: ${access?.summary}`);
          return answers.shift() ?? false;
        },
      },
    });
    await agent.prompt("Write.");
    expect(asked).toHaveLength(2);
    expect(asked[0]).toMatch(/^write: .*tea\.txt/);
    expect(resultsIn(agent).map(({ isError }) => isError)).toEqual([true, false]);
    expect(read("tea.txt")).toBe("green\n");
  });

  it("keep a rule that a callback gives, until the agent is closed", async () => {
    let asked = 0;
    const { agent } = await open([WRITE, WRITE, "Done."], {
      permissions: {
        approve: () => {
          asked++;
          return { allow: "always", rule: "write(*.txt)" };
        },
      },
    });
    await agent.prompt("Write.");
    expect(asked).toBe(1);
    expect(resultsIn(agent).map(({ isError }) => isError)).toEqual([false, false]);
  });

  it("do not run a call whose callback throws", async () => {
    const { agent } = await open([WRITE, "I may not."], {
      permissions: {
        approve: () => {
          throw new Error("No one is at the desk.");
        },
      },
    });
    await agent.prompt("Write.");
    expect(resultsIn(agent)).toMatchObject([{ tool: "write", isError: true }]);
    expect(existsSync(join(cwd, "tea.txt"))).toBe(false);
  });

  it("suspend a run, which another process goes on with", async () => {
    const sessions = new MemorySessions();
    const first = await open([WRITE], {
      permissions: { approve: "suspend" },
      session: { storage: sessions },
    });
    const end = await first.agent.prompt("Write.");
    expect(end.stop).toBe("suspended");
    const [pending] = end.pending;
    expect(pending?.reason).toBeTruthy();
    const id = first.agent.session?.header.id ?? "";
    await first.agent.close();

    const second = await open(["Written."], {
      permissions: { approve: "suspend" },
      session: { id, storage: sessions },
    });
    const [again] = second.agent.state.pending;
    expect(again).toEqual(pending);
    const { fingerprint = "", toolCall } = again ?? { toolCall: { id: "" } };
    const decisions = { [toolCall.id]: { type: "approve", fingerprint } as const };
    expect((await second.agent.continue({ decisions })).text).toBe("Written.");
    expect(read("tea.txt")).toBe("green\n");
  });

  it("change with the mode", async () => {
    const { agent } = await open([WRITE, "No.", WRITE, "Yes."], { permissions: { mode: "plan" } });
    expect(agent.mode).toBe("plan");
    await agent.prompt("Write.");
    expect(existsSync(join(cwd, "tea.txt"))).toBe(false);
    await agent.setMode("auto-edit");
    await agent.prompt("Write.");
    expect(read("tea.txt")).toBe("green\n");
  });
});

describe("guidance", () => {
  beforeEach(() => {
    write("AGENTS.md", "Tea is always green here.");
    write(
      ".agents/skills/brew/SKILL.md",
      "---\nname: brew\ndescription: How to brew tea.\n---\nThree minutes.\n",
    );
  });

  it("of AGENTS.md, of skills and of the program reaches the prompt", async () => {
    const { agent, model } = await open([call("skill", { name: "brew" }), "Done."], {
      instructions: "Speak like a tea master.",
    });
    await agent.prompt("Brew.");
    const [{ systemPrompt = "" } = {}] = model.calls;
    expect(systemPrompt).toContain("Tea is always green here.");
    expect(systemPrompt).toContain("How to brew tea.");
    expect(systemPrompt).toContain("Speak like a tea master.");
    expect(agent.skills.map(({ name }) => name)).toEqual(["brew"]);
    expect(resultsIn(agent)[0]?.text).toContain("Three minutes.");
  });

  it("is left out where the program says so", async () => {
    const { agent, model } = await open(["Done."], { instructionFiles: false, skills: false });
    await agent.prompt("Brew.");
    const [{ systemPrompt = "" } = {}] = model.calls;
    expect(systemPrompt).not.toContain("always green");
    expect(systemPrompt).not.toContain("brew");
  });
});

describe("MCP servers", () => {
  it("of the program are started and called, and end with the agent", async () => {
    const notes = join(home, "notes.jsonl");
    const { agent } = await open(
      [call("mcp_call", { tool: "mcp__test__echo", arguments: { text: "over stdio" } }), "Done."],
      {
        tools: ["read"],
        mcp: {
          test: { command: process.execPath, args: [MCP_SERVER, JSON.stringify({ notes })] },
        },
        permissions: { allow: ["mcp__test__echo"] },
      },
    );
    await agent.prompt("Echo.");
    expect(resultsIn(agent)[0]?.text).toContain("over stdio");
    const { started } = JSON.parse(readFileSync(notes, "utf8").split("\n")[0] ?? "");
    await agent.close();
    expect(() => process.kill(started, 0)).toThrow("ESRCH");
  });

  it("of a project are used only with its settings, and only if it is trusted", async () => {
    const notes = join(home, "notes.jsonl");
    const args = [MCP_SERVER, JSON.stringify({ notes })];
    write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { test: { command: process.execPath, args } } }),
    );
    const use = call("mcp_call", { tool: "mcp__test__echo", arguments: { text: "hi" } });
    const permissions = { allow: ["mcp__test__echo"] };
    await (await open([use, "No."], { permissions, trust: true })).agent.prompt("Echo.");
    await (await open([use, "No."], { permissions, settingsFiles: true })).agent.prompt("Echo.");
    expect(existsSync(notes)).toBe(false);
    expect(warnings.join("\n")).toContain(".mcp.json is not used: it is not trusted.");
    const trusted = await open([use, "Yes."], { permissions, settingsFiles: true, trust: true });
    await trusted.agent.prompt("Echo.");
    expect(resultsIn(trusted.agent)[0]?.text).toContain("hi");
  });
});

describe("settings", () => {
  const INSTRUCTIONS = "Speak of tea alone.";

  it("of files hold only where that is asked for, and less than the options", async () => {
    mkdirSync(join(home, "config/gyre"), { recursive: true });
    const file = { instructions: INSTRUCTIONS, mode: "full", thinking: "high" };
    writeFileSync(join(home, "config/gyre/config.json"), JSON.stringify(file));
    const without = await open(["Hi."]);
    expect(without.agent.mode).toBe("ask");
    expect(without.agent.state.systemPrompt).not.toContain(INSTRUCTIONS);
    const options = { settingsFiles: true, permissions: { mode: "plan" } } as const;
    const { agent } = await open(["Hi."], options);
    expect(agent.mode).toBe("plan");
    expect(agent.state.thinkingLevel).toBe("high");
    expect(agent.state.systemPrompt).toContain(INSTRUCTIONS);
  });

  it("of a project that no one trusted are left out", async () => {
    write(".gyre/config.json", JSON.stringify({ instructions: INSTRUCTIONS }));
    const left = await open(["Hi."], { settingsFiles: true });
    expect(left.agent.state.systemPrompt).not.toContain(INSTRUCTIONS);
    expect(warnings.join("\n")).toContain("its folder is not trusted");
    const { agent } = await open(["Hi."], { settingsFiles: true, trust: true });
    expect(agent.state.systemPrompt).toContain(INSTRUCTIONS);
  });

  it("of the program run hooks and plugins", async () => {
    write(
      "plugin.mjs",
      `export function registerTools(registry) {
        registry.register({
          name: "steep", description: "Steeps.", parameters: { type: "object", properties: {} },
          execute: () => ({ content: [{ type: "text", text: "Steeped." }] }),
        });
      }`,
    );
    const { agent, model } = await open([call("steep", {}), "Done.", "Really done."], {
      plugins: ["./plugin.mjs"],
      permissions: { allow: ["steep"] },
      hooks: {
        UserPromptSubmit: [{ command: "echo The kettle is on." }],
        Stop: [
          { command: 'test -e ~/stopped || { touch ~/stopped; echo "Not yet." >&2; exit 2; }' },
        ],
      },
    });
    const ends: AgentEvent[] = [];
    const run = agent.run("Steep.");
    for await (const event of run) if (event.type === "agent_end") ends.push(event);
    const end = await run.result();
    expect(end.text).toBe("Really done.");
    expect(end.turns).toBe(3);
    expect(ends).toEqual([end]);
    expect(resultsIn(agent)[0]?.text).toBe("Steeped.");
    expect(JSON.stringify(model.calls[0]?.messages)).toContain("The kettle is on.");
    expect(JSON.stringify(model.calls[2]?.messages)).toContain("Not yet.");
    expect(warnings).toEqual([]);
  });

  it("of the program have plugins that are objects, with hooks that are functions", async () => {
    const asked: string[] = [];
    const { agent } = await open([call("shell", { command: "touch owned" }), "I may not."], {
      permissions: { mode: "full" },
      plugins: [
        {
          registerTools: (_registry, api) =>
            api.hook("PreToolUse", ({ tool_name: tool }) => {
              asked.push(String(tool));
              return { block: "Not today." };
            }),
        },
      ],
    });
    await agent.prompt("Touch.");
    expect(asked).toEqual(["shell"]);
    expect(resultsIn(agent)[0]?.text).toContain("Not today.");
    expect(existsSync(join(cwd, "owned"))).toBe(false);
    expect(agent.denied).toMatchObject([{ tool: "shell" }]);
    const broken = {
      registerTools: () => {
        throw new Error("There is no kettle.");
      },
    };
    await expect(open([], { plugins: [broken] })).rejects.toMatchObject({
      code: "bad_option",
      message: "plugins[0] cannot be used: There is no kettle.",
    });
  });

  it("of a hook that blocks a prompt reject it", async () => {
    const { agent } = await open([], {
      hooks: { UserPromptSubmit: [{ command: "echo No tea today. >&2; exit 2" }] },
    });
    await expect(agent.prompt("Brew.")).rejects.toMatchObject({
      code: "prompt_blocked",
      message: expect.stringContaining("No tea today."),
    });
    await expect(agent.run("Brew.").result()).rejects.toMatchObject({ code: "prompt_blocked" });
    expect(agent.isRunning).toBe(false);
  });
});

describe("the facts of the start", () => {
  it("are a message before the first prompt, unless the settings say no", async () => {
    const { agent } = await open(["Green."], { settings: {} });
    const { messages } = await agent.prompt("Which tea?");
    expect(messages.map(({ role }) => role)).toEqual(["notice", "user", "assistant"]);
    expect(messages[0]).toMatchObject({ text: expect.stringMatching(/^Date: \d{4}-/) });
    const { agent: other } = await open(["Green."], { settings: { facts: false } });
    expect((await other.prompt("Which tea?")).messages).toHaveLength(2);
  });
});

describe("sessions", () => {
  it("resume by id, by path and by folder", async () => {
    const first = await open(["Green."]);
    expect(first.agent.session).toBeUndefined();
    await first.agent.prompt("Which tea?");
    const { header, path = "" } = first.agent.session ?? { header: { id: "" } };
    expect(path.startsWith(join(home, "state/gyre/sessions"))).toBe(true);
    await first.agent.close();
    for (const session of [{ id: header.id }, { path }, "latest"] as const) {
      const { agent, model } = await open(["Still green."], { session });
      expect(agent.session?.header.id).toBe(header.id);
      await agent.prompt("And now?");
      expect(model.calls[0]?.messages[0]).toMatchObject({ role: "user", content: "Which tea?" });
      await agent.close();
    }
    const fork = await open(["A copy."], { session: { id: header.id, fork: true } });
    expect(fork.agent.session?.header.id).not.toBe(header.id);
    expect(fork.agent.state.messages).toHaveLength(8);
  });

  it("have one writer at a time", async () => {
    const path = join(home, "tea.jsonl");
    const first = await open(["Green."], { session: { path } });
    await first.agent.prompt("Which tea?");
    await expect(open([], { session: { path } })).rejects.toMatchObject({
      name: "SessionError",
      code: "locked",
    });
    await first.agent.close();
    const { agent } = await open([], { session: { path } });
    expect(agent.state.messages).toHaveLength(2);
  });

  it("are made where a path has none, and nowhere with none", async () => {
    const path = join(home, "tea.jsonl");
    const { agent } = await open(["Green."], { session: { path } });
    await agent.prompt("Which tea?");
    expect(existsSync(path)).toBe(true);
    const none = await open(["Green."], { session: "none" });
    await none.agent.prompt("Which tea?");
    expect(none.agent.session).toBeUndefined();
    expect(existsSync(join(home, "state/gyre/sessions"))).toBe(false);
    const latest = await open(["Green."], { session: "latest" });
    await latest.agent.prompt("Which tea?");
    expect(latest.agent.session).toBeDefined();
  });
});

describe("rewind", () => {
  it("takes back files and conversation, and goes on from there", async () => {
    write("tea.txt", "green\n");
    const { agent, model } = await open(
      [
        call("write", { path: "cup.txt", content: "full\n" }),
        "Poured.",
        call("shell", { command: "echo black > tea.txt; rm cup.txt" }),
        "Drunk.",
        "Fresh.",
      ],
      { permissions: { mode: "full" } },
    );
    await agent.prompt("Pour.");
    await agent.prompt("Drink.");
    expect(read("tea.txt")).toBe("black\n");
    const rewound = await agent.rewind();
    expect(rewound.prompt).toBe("Drink.");
    expect(rewound.files.map(({ path }) => path).toSorted()).toEqual(["cup.txt", "tea.txt"]);
    expect(rewound).toMatchObject({ left: [], failed: [] });
    expect([read("tea.txt"), read("cup.txt")]).toEqual(["green\n", "full\n"]);
    await agent.prompt("Again.");
    const sent = model.calls.at(-1)?.messages.map(({ role, content }) => [role, content]) ?? [];
    expect(sent.filter(([role]) => role === "user")).toEqual([
      ["user", "Pour."],
      ["user", "Again."],
    ]);
    const { header } = agent.session ?? { header: { id: "" } };
    await agent.close();
    const later = await open(["Hi."], { session: { id: header.id } });
    expect(JSON.stringify(later.agent.state.messages)).not.toContain("Drunk.");
    expect(JSON.stringify(later.agent.state.messages)).toContain("Fresh.");
  });

  it("takes back what an earlier process did", async () => {
    const first = await open([call("write", { path: "cup.txt", content: "full\n" }), "Poured."], {
      permissions: { mode: "auto-edit" },
    });
    await first.agent.prompt("Pour.");
    const { header } = first.agent.session ?? { header: { id: "" } };
    await first.agent.close();
    const { agent } = await open([], { session: { id: header.id } });
    expect((await agent.rewind()).files).toMatchObject([{ path: "cup.txt", after: null }]);
    expect(existsSync(join(cwd, "cup.txt"))).toBe(false);
    expect(agent.state.messages).toEqual([]);
  });

  it("leaves alone what was changed from outside, unless that is wanted", async () => {
    const { agent } = await open(
      [
        call("write", { path: "cup.txt", content: "full\n" }),
        "Poured.",
        call("edit", { path: "cup.txt", edits: [{ oldText: "full", newText: "empty" }] }),
        "Drunk.",
      ],
      { permissions: { mode: "full" } },
    );
    await agent.prompt("Pour.");
    await agent.prompt("Drink.");
    write("cup.txt", "broken\n");
    const { left } = await agent.rewind({ only: "files" });
    expect(left).toMatchObject([{ path: "cup.txt" }]);
    expect(read("cup.txt")).toBe("broken\n");
    const { files } = await agent.rewind({ only: "files", replaceConflicts: true });
    expect(files).toMatchObject([{ path: "cup.txt" }]);
    expect(read("cup.txt")).toBe("full\n");
    await agent.rewind({ prompts: 2, only: "conversation" });
    expect(agent.state.messages).toEqual([]);
    await expect(agent.rewind()).rejects.toMatchObject({
      code: "bad_option",
      message: "There are 0 prompts to take back, and no 1.",
    });
  });

  it("needs a session", async () => {
    const { agent } = await open(["Hi."], { session: "none" });
    await agent.prompt("Hi.");
    await expect(agent.rewind()).rejects.toThrow("There is no session to rewind.");
    await expect(agent.rewind({ only: "files" })).rejects.toThrow("none is recorded here");
  });
});

describe("ends", () => {
  it("on abort, also before its session is made", async () => {
    const controller = new AbortController();
    const abort: ScriptStep = () => {
      controller.abort();
      return stall();
    };
    const { agent, model } = await open([abort, "Hi."]);
    const first = agent.prompt("Wait.");
    agent.abort();
    expect(await first).toMatchObject({ stop: "aborted" });
    expect(model.requests).toBe(0);
    const run = agent.run("Wait.", { signal: controller.signal });
    expect(await run.result()).toMatchObject({ stop: "aborted" });
    expect(model.requests).toBe(1);
    expect((await agent.prompt("Hi.")).text).toBe("Hi.");
  });

  it("on the signal of its owner, which refuses all more", async () => {
    const controller = new AbortController();
    const { agent } = await open([stall()], { signal: controller.signal });
    const running = agent.prompt("Wait.");
    agent.subscribe(({ type }) => {
      if (type === "turn_start") controller.abort(new Error("The shop closes."));
    });
    expect(await running).toMatchObject({ stop: "aborted" });
    await expect(agent.prompt("More.")).rejects.toThrow("The shop closes.");
    await expect(open([], { signal: controller.signal })).rejects.toThrow("The shop closes.");
  });

  it("on close, which may be called twice and by await using", async () => {
    const { agent } = await open([stall()]);
    const running = agent.prompt("Wait.");
    await Promise.all([agent.close(), agent[Symbol.asyncDispose]()]);
    expect(await running).toMatchObject({ stop: "aborted" });
    await expect(agent.prompt("More.")).rejects.toThrow("The agent is closed.");
  });

  it("with what steering asks for", async () => {
    const steer: ScriptStep = () => {
      agent.steer("Make it black.");
      return [call("read", { path: "tea.txt" }), call("read", { path: "tea.txt" })];
    };
    write("tea.txt", "green\n");
    const { agent, model } = await open([steer, "Black."]);
    expect((await agent.prompt("Make tea.")).text).toBe("Black.");
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain("Make it black.");
  });

  it("one piece of work before the next begins", async () => {
    const { agent } = await open(["One.", "Two.", "Three."]);
    const first = agent.prompt("Count.");
    await expect(agent.prompt("Count.")).rejects.toThrow("The agent is at work.");
    expect(() => agent.run("Count.")).toThrow("The agent is at work.");
    agent.followUp("And on.");
    await agent.waitForIdle();
    expect((await first).text).toBe("Two.");
    expect((await agent.prompt("Count.")).text).toBe("Three.");
  });
});

describe("what cannot be meant is an error with a name", () => {
  it.each<[CodingAgentOptions, string]>([
    [{ cwd: "/no/such/folder" }, 'cwd is "/no/such/folder": there is no such folder.'],
    [
      { permissions: { mode: "yolo" as "full" } },
      'permissions.mode is "yolo", but must be one of "ask", "auto-edit", "auto", "plan", "full".',
    ],
    [
      { permissions: { allow: ["shel(ls)"] } },
      'A rule of permissions.allow, or of "allow" in the settings, "shel(ls)", is wrong: there is no tool "shel". Did you mean shell?',
    ],
    [{ model: "no-such-model" }, "no-such-model"],
    [{ tools: ["reed"] }, 'There is no tool "reed". Did you mean read?'],
    [
      { session: "last" as "latest" },
      'session is "last", which is no choice. Write "new", "latest"',
    ],
    [
      { session: { path: "a.jsonl", id: "ab" } as { path: string } },
      "session: a path is a file of its own: give it without id and storage.",
    ],
    [
      { sandbox: "docker" as "auto" },
      'createCodingAgent: sandbox is "docker", but must be one of "auto", "none".',
    ],
    [{ mcp: { tea: {} as { command: string } } }, "createCodingAgent: mcp: "],
    [
      { thinkingLevel: "deep" as "high" },
      'createCodingAgent: thinking is "deep", but must be one of',
    ],
    [
      { instructions: "a", settings: { instructions: "b" } },
      "settings.instructions is there as an option of its own as well: give one of them.",
    ],
    [
      { settings: { compactAtt: 5 } as object },
      '"compactAtt" is no setting. Did you mean "compactAt"?',
    ],
    [
      { permissionMode: "plan" } as object,
      'no option "permissionMode". Write permissions: { mode }.',
    ],
    [{ sessions: "new" } as object, 'no option "sessions". Did you mean "session"?'],
  ])("%j", async (options, message) => {
    const error = await open([], options).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: "CodingAgentError", code: "bad_option" });
    expect(String(error)).toContain(message);
  });

  it("a protocol without a model, no key, a session that is not there", async () => {
    const protocol = scriptedModel([]);
    await expect(createCodingAgent({ cwd, protocol })).rejects.toThrow(
      "A `protocol` needs a `model`",
    );
    const env = { HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home };
    await expect(createCodingAgent({ cwd, env })).rejects.toMatchObject({
      code: "no_key",
      message: expect.stringContaining("give a `model`"),
    });
    await expect(open([], { session: { id: "nothing" } })).rejects.toMatchObject({
      name: "SessionError",
      code: "not_found",
    });
  });
});
