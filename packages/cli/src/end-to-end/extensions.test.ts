import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scriptedModel } from "@gyre/ai/testing";
import type { ToolEnv } from "@gyre/tools";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CommandRegistry } from "@gyre/coding/internal/extensions/command-registry";
import { EXIT } from "../core/exit-codes.ts";
import { extensionsFor } from "@gyre/coding/internal/extensions/extensions";
import { AbortableAgent } from "@gyre/coding/internal/extensions/abortable-agent";
import {
  buildProgram,
  type Ended,
  jsonLines,
  type Program,
  sessionFiles,
  stripSandboxLine,
} from "../testing/program.ts";
import {
  type Script,
  type ScriptedService,
  scriptedService,
  type ServiceRequest,
} from "../testing/scripted-service.ts";

// The program as a process, with plugins and hooks that are real files and programs.

let program: Program;
let home: string;
let service: ScriptedService | undefined;

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
beforeEach(() => {
  home = mkdtempSync(join(dirname(program.entry), "..", "home-"));
});
afterEach(async () => {
  const problems = service?.problems ?? [];
  await service?.close();
  service = undefined;
  if (problems.length > 0) throw new Error(problems.join("\n"));
});

function write(path: string, content: unknown): void {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}

const USER = "config/gyre/config.json";
const PROJECT = "work/.gyre/config.json";

async function gyre(script: Script, args: readonly string[], stdin?: string): Promise<Ended> {
  service ??= await scriptedService();
  service.play(script);
  const ended = await program.gyre(args, {
    home,
    service,
    ...(stdin !== undefined && { stdin }),
  });
  return { ...ended, stderr: stripSandboxLine(ended) };
}

/** The tools that a model was offered. */
function toolNames(request: ServiceRequest | undefined): string[] {
  const tools: unknown = request?.body["tools"];
  return Array.isArray(tools) ? tools.map((tool: { name: string }) => tool.name) : [];
}

function formatMessages(request: ServiceRequest | undefined): string {
  return JSON.stringify(request?.body["messages"]);
}

const ADDER = `export function registerTools(registry, api) {
  registry.register({
    name: "add",
    description: "Adds two numbers.",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    access: () => ({ kind: "none", targets: [], summary: "Add" }),
    execute: ({ a, b }) => String(a + b),
  });
  api.command({ name: "sum", about: "add numbers", run: (rest) => "Sum: " + rest });
}`;

const ADD: Script = [{ say: [{ call: "add", arguments: { a: 1, b: 2 } }] }, { say: "It is 3." }];

describe("plugins", () => {
  it("of the user's file are there at once, with tools that a model can call", async () => {
    write("config/gyre/tools/add.mjs", ADDER);
    write(USER, { plugins: ["./tools/add.mjs"] });
    const { code, stdout, stderr, requests } = await gyre(ADD, ["-p", "1 + 2?", "--quiet"]);
    expect({ code, stdout, stderr }).toEqual({ code: EXIT.done, stdout: "It is 3.\n", stderr: "" });
    expect(toolNames(requests[0]).at(-1)).toBe("add");
    expect(formatMessages(requests[1])).toContain('"3"');
  });

  it("that do not declare what their tools do are asked about, and rules may name them", async () => {
    write("config/gyre/add.mjs", ADDER.replace(/access: .*\n/, ""));
    write(USER, { plugins: ["./add.mjs"] });
    const denied = await gyre(ADD, ["-p", "1 + 2?", "--output", "json"]);
    expect(jsonLines(denied.stdout)[0]).toMatchObject({ denied: [{ tool: "add" }] });
    const allowed = await gyre(ADD, ["-p", "1 + 2?", "--allow", "add", "--output", "json"]);
    expect(jsonLines(allowed.stdout)[0]).toMatchObject({ denied: [] });
  });

  it("that fail are named on stderr; the rest works, and the program ends", async () => {
    write("config/gyre/add.mjs", ADDER);
    write("config/gyre/bad.mjs", `export function registerTools() { throw new Error("Oh no."); }`);
    write(
      "config/gyre/busy.mjs",
      `setInterval(() => {}, 1000); export function registerTools(_r, api) { api.log("I stay."); }`,
    );
    write(USER, { plugins: ["./bad.mjs", "./busy.mjs", "./add.mjs", "absent"] });
    const { code, stderr, requests } = await gyre(ADD, ["-p", "1 + 2?", "--quiet"]);
    expect(code).toBe(EXIT.done);
    expect(toolNames(requests[0])).toContain("add");
    const folder = join(home, "config/gyre");
    expect(stderr.split("\n")).toEqual([
      `gyre: The plugin ${folder}/bad.mjs is left out: Oh no.`,
      "gyre: busy: I stay.",
      expect.stringContaining(
        `gyre: The plugin ${folder}/node_modules/absent is left out: there is`,
      ),
      "",
    ]);
  });

  it("of a project are used once trusted, until any file of them changes", async () => {
    write("work/.gyre/add.mjs", `export * from "./lib.mjs";`);
    write("work/.gyre/lib.mjs", ADDER);
    write(PROJECT, { plugins: ["./add.mjs"] });
    const tools = async (...args: string[]): Promise<{ names: string[]; stderr: string }> => {
      const { requests, stderr } = await gyre(
        [{ say: "Hello." }],
        ["-p", "Hi", "--quiet", ...args],
      );
      return { names: toolNames(requests[0]), stderr };
    };
    const before = await tools();
    expect(before.names).not.toContain("add");
    expect(before.stderr).toContain("its folder is not trusted");

    const trusting = await gyre([], ["trust"]);
    expect(trusting.stdout).toContain("run with all your rights, outside of the sandbox.");
    expect(trusting.stdout).toContain("  .gyre/add.mjs\n  .gyre/lib.mjs\n");
    expect((await tools()).names).toContain("add");

    write("work/.gyre/lib.mjs", `${ADDER}\n// changed`);
    const after = await tools();
    expect(after.names).not.toContain("add");
    expect(after.stderr).toContain("it, or what it runs, has changed since it was trusted");
    expect((await tools("--trust")).names).toContain("add");
  });

  it("in TypeScript are loaded where Node can, and named elsewhere", async () => {
    const typed = ADDER.replace("(registry, api)", "(registry: any, api: any): void");
    write("config/gyre/add.ts", typed);
    write(USER, { plugins: ["./add.ts"] });
    const { requests, stderr } = await gyre([{ say: "Hello." }], ["-p", "Hi", "--quiet"]);
    const isRun = "typescript" in process.features;
    expect(toolNames(requests[0]).includes("add")).toBe(isRun);
    if (!isRun) expect(stderr).toContain("it is TypeScript, which Node 20");
  });

  it("a package that a user's file names is not taken from the project", async () => {
    write("work/node_modules/evil/package.json", { name: "evil", main: "main.js", type: "module" });
    write("work/node_modules/evil/main.js", ADDER);
    write(USER, { plugins: ["evil"] });
    const { requests, stderr } = await gyre([{ say: "Hello." }], ["-p", "Hi", "--quiet"]);
    expect(toolNames(requests[0])).not.toContain("add");
    expect(stderr).toContain('there is no package "evil"');
  });

  it("a session goes on without the tools of one that is gone", async () => {
    write("config/gyre/add.mjs", ADDER);
    write(USER, { plugins: ["./add.mjs"] });
    await gyre(ADD, ["-p", "1 + 2?", "--quiet"]);
    const again = await gyre([{ say: "Yes." }], ["-p", "Sure?", "--continue", "--quiet"]);
    expect(toolNames(again.requests[0])).toContain("add");
    expect(again.stderr).toBe("");
    write(USER, {});
    const { code, stderr, requests } = await gyre([{ say: "Yes." }], ["-p", "Sure?", "--continue"]);
    expect(code).toBe(EXIT.done);
    expect(stderr).toContain('There is no tool "add": it goes on without.');
    expect(toolNames(requests[0])).not.toContain("add");
  });
});

const SHELL: Script = [
  { say: [{ call: "write", arguments: { path: "a.txt", content: "a" } }] },
  { say: "Done." },
];

describe("hooks", () => {
  it("PreToolUse with exit 2 keeps a tool from running, by a name that others have for it", async () => {
    const command = 'grep -q \'"path":"a.txt"\' && echo "not a.txt" >&2 && exit 2';
    write(USER, { hooks: { PreToolUse: [{ matcher: "Write", command }] } });
    const { stdout, requests } = await gyre(SHELL, [
      ...["-p", "Write it", "--mode", "full", "--output", "json"],
    ]);
    expect(formatMessages(requests[1])).toContain("Denied by a hook: not a.txt");
    expect(jsonLines(stdout)[0]).toMatchObject({
      denied: [{ tool: "write", reason: "not a.txt" }],
    });
  });

  it("UserPromptSubmit with exit 2: the prompt is not sent, and the program fails", async () => {
    write(USER, { hooks: { UserPromptSubmit: [{ command: "echo 'no secrets' >&2; exit 2" }] } });
    const { code, stdout, stderr, requests } = await gyre([], ["-p", "My key is 1234"]);
    expect({ code, stdout, stderr }).toEqual({
      code: EXIT.failed,
      stdout: "",
      stderr: "gyre: The prompt was not sent: no secrets\n",
    });
    expect(requests).toEqual([]);
    const json = await gyre([], ["-p", "My key is 1234", "--output", "json"]);
    expect(jsonLines(json.stdout)).toMatchObject([
      { ok: false, error: { kind: "blocked", message: "The prompt was not sent: no secrets" } },
    ]);
  });

  it("SessionStart and UserPromptSubmit add to the message, and leave the rest as it is", async () => {
    const plain = await gyre([{ say: "Hi." }], ["-p", "Hello", "--quiet"]);
    write(USER, {
      hooks: {
        SessionStart: [
          { matcher: "startup", command: "echo The branch is main." },
          { matcher: "resume", command: "echo Welcome back." },
        ],
        UserPromptSubmit: [{ hooks: [{ type: "command", command: "echo It is late." }] }],
      },
    });
    const { requests, stderr } = await gyre([{ say: "Hi." }], ["-p", "Hello", "--quiet"]);
    expect(stderr).toBe("");
    expect(requests[0]?.body["system"]).toEqual(plain.requests[0]?.body["system"]);
    expect(requests[0]?.body["tools"]).toEqual(plain.requests[0]?.body["tools"]);
    const sent = formatMessages(requests[0]);
    expect(sent).toContain("Hello\\n\\n<hook");
    expect(sent).toContain("The branch is main.");
    expect(sent).toContain("It is late.");
    const again = await gyre([{ say: "Hi." }], ["-p", "More", "--continue", "--quiet"]);
    expect(formatMessages(again.requests[0])).toContain("Welcome back.");
  });

  it("Stop with exit 2 gives the agent more to do", async () => {
    const command = 'grep -q \'"stop_hook_active":true\' || { echo "Run the tests." >&2; exit 2; }';
    write(USER, { hooks: { Stop: [{ command }] } });
    const { code, stdout, requests } = await gyre(
      [{ say: "Done." }, { say: "They pass." }],
      ["-p", "Fix it", "--quiet"],
    );
    expect({ code, stdout }).toEqual({ code: EXIT.done, stdout: "They pass.\n" });
    expect(formatMessages(requests[1])).toContain("Run the tests.");
  });

  it("get the session, and run in the folder of the project", async () => {
    write("work/.git/HEAD", "");
    write("work/.gyre/hooks/note.sh", "cat > note.json; env | sort > env.txt\n");
    write(PROJECT, { hooks: { PostToolUse: [{ command: "sh .gyre/hooks/note.sh" }] } });
    mkdirSync(join(home, "work/inner"), { recursive: true });
    const { stderr } = await gyre(SHELL, [
      ...["-p", "Write it", "--mode", "auto-edit", "--quiet", "--trust", "--cwd", "inner"],
    ]);
    expect(stderr).toBe("");
    expect(JSON.parse(readFileSync(join(home, "work/note.json"), "utf8"))).toMatchObject({
      transcript_path: sessionFiles(home)[0],
      cwd: join(home, "work/inner"),
      hook_event_name: "PostToolUse",
      tool_name: "write",
      tool_input: { path: "a.txt", content: "a" },
      tool_response: { isError: false },
    });
    const env = readFileSync(join(home, "work/env.txt"), "utf8");
    expect(env).toContain(`GYRE_PROJECT_DIR=${join(home, "work")}\n`);
    expect(env).toContain(`CLAUDE_PROJECT_DIR=${join(home, "work")}\n`);
    expect(env).not.toContain("ANTHROPIC_API_KEY");
  });

  it("of a project are not run before it is trusted, nor after a script of theirs has changed", async () => {
    write("work/.gyre/hooks/start.sh", "touch started\n");
    write(PROJECT, { hooks: { SessionStart: [{ command: "sh .gyre/hooks/start.sh" }] } });
    const isRun = async (): Promise<boolean> => {
      await gyre([{ say: "Hi." }], ["-p", "Hello", "--quiet"]);
      const mark = join(home, "work/started");
      const isThere = existsSync(mark);
      rmSync(mark, { force: true });
      return isThere;
    };
    expect(await isRun()).toBe(false);
    await gyre([], ["trust"]);
    expect(await isRun()).toBe(true);
    write("work/.gyre/hooks/start.sh", "touch started # changed\n");
    expect(await isRun()).toBe(false);
  });

  it("that fail or take too long are reported, and it goes on", async () => {
    write(USER, {
      hooks: {
        UserPromptSubmit: [{ command: "exit 3" }, { command: "sleep 60", timeout: 0.05 }],
        Notification: [{ command: "never" }],
      },
    });
    const { code, stderr } = await gyre([{ say: "Hi." }], ["-p", "Hello", "--quiet"]);
    expect(code).toBe(EXIT.done);
    expect(stderr.split("\n")).toEqual([
      "gyre: hooks: there are none for Notification: passed over.",
      'gyre: The UserPromptSubmit hook "exit 3" ended with 3',
      'gyre: The UserPromptSubmit hook "sleep 60" was ended: it took more than 0.05 s',
      "",
    ]);
  });

  it("that are wrong in a file are an error, with their place", async () => {
    write(USER, { hooks: { PreToolUse: [{ matcher: "(", command: "x" }] } });
    const { code, stderr } = await gyre([], ["-p", "Hello"]);
    expect(code).toBe(EXIT.usage);
    expect(stderr).toContain('config.json: hooks: PreToolUse[0] has a "matcher" that is no');
  });

  it("a signal ends one that runs, and the program", async () => {
    write(USER, { hooks: { UserPromptSubmit: [{ command: "echo > started; sleep 60" }] } });
    service = await scriptedService();
    const run = await program.start(["-p", "Hello", "--quiet"], { home, service });
    await expect.poll(() => existsSync(join(run.cwd, "started"))).toBe(true);
    run.kill("SIGINT");
    expect(await run.end).toMatchObject({ code: EXIT.interrupted, requests: [] });
  });
});

describe("plugins' hooks, middleware and listeners", () => {
  it("work as those of settings do", async () => {
    write(
      "config/gyre/all.mjs",
      `export function registerTools(_registry, api) {
        api.hook("PreToolUse", ({ tool_name, tool_input }) =>
          tool_name === "write" ? { input: { ...tool_input, path: "b.txt" } } : undefined);
        api.hook("UserPromptSubmit", () => { throw new Error("It broke."); });
        api.middleware({ tool: async (call, next) => {
          const result = await next();
          return { ...result, content: [...result.content, { type: "text", text: "(seen)" }] };
        } });
        api.on("agent_end", ({ turns }) => api.log(turns + " turns"));
        api.on("turn_start", () => { throw new Error("Not so."); });
      }`,
    );
    write(USER, { plugins: ["./all.mjs"] });
    const { stderr, requests } = await gyre(SHELL, [
      "-p",
      "Write",
      "--mode",
      "auto-edit",
      "--quiet",
    ]);
    expect(readFileSync(join(home, "work/b.txt"), "utf8")).toBe("a");
    expect(formatMessages(requests[1])).toContain("(seen)");
    expect(stderr.split("\n")).toEqual([
      "gyre: The UserPromptSubmit hook of all failed: It broke.",
      'gyre: all: its listener of "turn_start" failed: Not so.',
      'gyre: all: its listener of "turn_start" failed: Not so.',
      "gyre: all: 2 turns",
      "",
    ]);
  });
});

describe("commands", () => {
  it("of plugins do not take the names of ours", () => {
    const registry = new CommandRegistry(["model"]);
    const run = (): string => "";
    expect(() => registry.add({ name: "model", about: "mine", run })).toThrow(
      'There is a command "/model" already.',
    );
  });

  it("of plugins are there in an editor", async () => {
    write("config/gyre/add.mjs", ADDER);
    write(USER, { plugins: ["./add.mjs"] });
    service = await scriptedService();
    const run = await program.start(["acp"], { home, service, stdin: "open" });
    const send = (id: number, method: string, params: object): void =>
      void run.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    send(1, "initialize", { protocolVersion: 1, clientCapabilities: {} });
    await run.shows('"id":1,');
    send(2, "session/new", { cwd: run.cwd, mcpServers: [] });
    await run.shows('"name":"sum","description":"add numbers"');
    const made = jsonLines(run.stdout.slice(0, run.stdout.lastIndexOf("\n") + 1)).find(
      ({ id }) => id === 2,
    );
    const { sessionId } = Object(made?.["result"]) as { sessionId: string };
    send(3, "session/prompt", { sessionId, prompt: [{ type: "text", text: "/sum 1 2" }] });
    await run.shows("Sum: 1 2");
    run.stdin?.end();
    expect((await run.end).requests).toEqual([]);
  });
});

it("nothing of this is loaded where nothing is configured", () => {
  const findChunk = (file: string): string | undefined =>
    program.chunks.find(({ moduleIds }) => moduleIds.some((id) => id.endsWith(`/src/${file}`)))
      ?.fileName;
  const byName = new Map(program.chunks.map((chunk) => [chunk.fileName, chunk]));
  // All that a run loads without asking: the entry, print, and what they import.
  const loaded = new Set<string>();
  const visit = (name: string | undefined): void => {
    const chunk = name === undefined ? undefined : byName.get(name);
    if (!chunk || loaded.has(chunk.fileName)) return;
    loaded.add(chunk.fileName);
    for (const other of chunk.imports) visit(other);
  };
  for (const file of ["main.ts", "modes/print/print.ts", "harness/harness.ts", "settings/load.ts"])
    visit(findChunk(file));
  expect(loaded.size).toBeGreaterThan(0);
  for (const file of [
    "extensions/extensions.ts",
    "extensions/plugins.ts",
    "extensions/hooks.ts",
    "extensions/hook-run.ts",
    "settings/files-that-run.ts",
  ]) {
    expect(findChunk(file)).toBeDefined();
    expect(loaded).not.toContain(findChunk(file));
  }
});

it("PreCompact runs before the context is compacted, and may put it off", async () => {
  const warnings: string[] = [];
  mkdirSync(join(home, "work"), { recursive: true });
  const extensions = await extensionsFor({
    settings: {
      hooks: {
        PreCompact: [
          { matcher: "auto", command: "cat > compacted.json; echo no >&2; exit 2" },
          { matcher: "manual", command: "exit 2" },
        ],
      },
    },
    cwd: join(home, "work"),
    env: { PATH: process.env["PATH"] },
    warn: (text) => void warnings.push(text),
    denied: () => undefined,
  });
  const words = "word ".repeat(2000);
  const script = scriptedModel([words, words, words, words]);
  const agent = new AbortableAgent({
    protocol: script,
    context: {
      triggerTokens: 3000,
      keepTurns: 1,
      beforeCompaction: (signal, trigger) => extensions.compact(signal, trigger),
    },
    model: script.model,
  });
  extensions.attach({
    agent,
    toolset: { env: { spoolFolder: home } as ToolEnv },
    session: () => undefined,
    isResumed: false,
  });
  let compactions = 0;
  agent.subscribe(({ type }) => void (compactions += type === "compaction" ? 1 : 0));
  for (const text of ["one", "two", "three", "four"]) await agent.prompt(text);
  expect(compactions).toBe(0);
  expect(JSON.parse(readFileSync(join(home, "work/compacted.json"), "utf8"))).toMatchObject({
    hook_event_name: "PreCompact",
    trigger: "auto",
  });
  expect(warnings[0]).toContain("puts the compaction off, as long as there is room: no");
});
