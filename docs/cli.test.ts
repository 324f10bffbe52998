import { type ChildProcessByStdio, spawn } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { AgentEvent } from "@gyre/agent";
import { ERROR_CODES } from "@gyre/protocol";
import { toWireEvent } from "@gyre/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../packages/cli/src/core/exit-codes.ts";
import { EXIT_MEANINGS, RUN_GROUPS, typedCommands } from "../packages/cli/src/commands/help.ts";
import { COMMANDS } from "../packages/cli/src/core/options.ts";
import {
  buildProgram,
  jsonLines,
  type Program,
  TEST_KEY,
} from "../packages/cli/src/testing/program.ts";
import {
  type Answer,
  type ScriptedService,
  scriptedService,
} from "../packages/cli/src/testing/scripted-service.ts";
import { ENTRY_TYPES } from "../packages/sessions/src/format/body.ts";
import { compile, readAnswers, readFences, pages, root, readSnippets } from "./snippets.ts";

/** A program that takes longer is ended. */
const PROGRAM_MS = 100_000;
/** For all commands of a page. */
const PAGE_MS = 300_000;
/** The pages whose commands are run. */
const PAGES = ["docs/cli.md", "docs/sessions.md", "docs/rpc.md", "packages/cli/README.md"];
const EXECUTABLE = 0o755;

let program: Program;
/** Where `gyre` is. */
let bin: string;
let all: Map<string, string>;

beforeAll(async () => {
  program = await buildProgram();
  bin = join(dirname(program.entry), "..", "bin");
  mkdirSync(bin);
  const gyre = join(bin, "gyre");
  writeFileSync(gyre, `#!/bin/sh\nexec "${process.execPath}" "${program.entry}" "$@"\n`);
  chmodSync(gyre, EXECUTABLE);
  all = await pages();
});

afterAll(() => program.remove());

/** Commands of a page, and what the page says that they print. */
interface Block {
  /** Page and line, for people. */
  where: string;
  script: string;
  output: string;
  answers: Answer[];
  /** A program that they are not run without. */
  needs: string | undefined;
}

/**
 * The commands of a page that are run: `run` follows the language of their fence, or `run if`
 * and the name of a program that not everybody has. The `text` after it is what they print,
 * both streams together.
 */
function readBlocks(page: string, name: string): Block[] {
  const fences = readFences(page);
  return fences.flatMap((fence, index) => {
    const { language, note, body, line } = fence;
    const [found, needs] = /^run(?: if (\S+))?$/.exec(note) ?? [];
    if (language !== "sh" || found === undefined) return [];
    const next = fences[index + 1];
    const output = next?.language === "text" ? next.body : "";
    return {
      where: `${name}:${line}`,
      script: body,
      output,
      answers: readAnswers(page, fence),
      needs,
    };
  });
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** A home with a folder to work in, and a service to ask. */
class Place {
  readonly cwd: string;
  readonly service: ScriptedService;
  readonly #home: string;

  constructor(home: string, service: ScriptedService) {
    this.#home = home;
    this.cwd = join(home, "work");
    this.service = service;
    mkdirSync(this.cwd);
  }

  start(file: string, args: readonly string[]): Child {
    const child = spawn(file, args, {
      cwd: this.cwd,
      env: {
        PATH: [bin, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter),
        HOME: this.#home,
        LANG: "C.UTF-8",
        ANTHROPIC_API_KEY: TEST_KEY,
        ANTHROPIC_BASE_URL: this.service.url,
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    const late = setTimeout(() => child.kill("SIGKILL"), PROGRAM_MS);
    child.once("close", () => clearTimeout(late));
    return child;
  }

  /** What a program prints, on both streams, without any input. */
  run(file: string, args: readonly string[]): Promise<string> {
    return new Promise((settle, fail) => {
      const child = this.start(file, args);
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      }
      child.once("error", fail);
      child.once("close", () => settle(output));
      child.stdin.end();
    });
  }

  /** The last line of a run in JSON. */
  async result(args: readonly string[], answers: readonly Answer[]): Promise<object> {
    this.service.play(answers);
    const output = await this.run("gyre", ["-p", "Tea?", "--output", "json", "--quiet", ...args]);
    return jsonLines(output.replaceAll(/^gyre: .*\n/gm, "")).at(-1) ?? {};
  }
}

async function withPlace<T>(work: (place: Place) => Promise<T>): Promise<T> {
  const service = await scriptedService();
  const home = await mkdtemp(join(dirname(program.entry), "..", "home-"));
  try {
    return await work(new Place(home, service));
  } finally {
    await service.close();
    await rm(home, { recursive: true, force: true });
  }
}

/** What is wrong with commands, which are run in order in one folder. */
function findProblems(blocks: readonly Block[]): Promise<string[]> {
  return withPlace(async (place) => {
    const wrong: string[] = [];
    for (const { answers, needs, output, where, script } of blocks) {
      if (needs !== undefined && (await place.run("sh", ["-c", `command -v ${needs}`])) === "") {
        continue;
      }
      const before = place.service.requests.length;
      place.service.play(answers);
      // One pipe for both streams: their order is that of a terminal.
      const printed = await place.run("bash", ["-c", `exec 2>&1\n${script}`]);
      if (!fits(printed, output)) {
        wrong.push(`${where} printed\n${printed}and the page says\n${output}`);
      }
      const asked = place.service.requests.length - before;
      if (asked !== answers.length) {
        wrong.push(`${where} asked ${asked} times, and has ${answers.length} answers`);
      }
    }
    return [...wrong, ...place.service.problems];
  });
}

/** Whether a text is what the page says, where `…` is anything on a line. */
function fits(text: string, shown: string): boolean {
  const parts = shown.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+?")}$`).test(text);
}

describe("the commands in the pages", () => {
  it.each(PAGES)(
    "of %s print what it says",
    async (name) => {
      expect(await findProblems(readBlocks(all.get(name) ?? "", name))).toEqual([]);
    },
    PAGE_MS,
  );

  it("are run and say what they print, or say why not", () => {
    const reason = /^(run|run if \S+|no-run .+)$/;
    const fences = PAGES.flatMap((name) => readFences(all.get(name) ?? ""));
    const commands = fences.filter(({ language }) => language === "sh");
    expect(commands.length).toBeGreaterThan(20);
    expect(commands.filter(({ note }) => !reason.test(note))).toEqual([]);
    const blocks = PAGES.flatMap((name) => readBlocks(all.get(name) ?? "", name));
    expect(blocks.filter(({ output }) => output === "").map(({ where }) => where)).toEqual([]);
  });

  it("would be found if they were wrong", async () => {
    const page = (script: string, output: string): Block[] =>
      readBlocks(
        `# Page\n\n\`\`\`sh run\n${script}\n\`\`\`\n\n\`\`\`text\n${output}\`\`\`\n`,
        "page.md",
      );
    expect(await findProblems(page("echo one", "one\n"))).toEqual([]);
    expect(await findProblems(page("echo one; echo two >&2", "one\n…o\n"))).toEqual([]);
    expect(await findProblems(page("echo one", "two\n"))).toHaveLength(1);
    expect(await findProblems(page("echo one; echo two", "one…\n"))).toHaveLength(1);
    const [unforeseen] = await findProblems(page("gyre -p Hi 2>/dev/null", ""));
    expect(unforeseen).toBe("page.md:3 asked 1 times, and has 0 answers");
  });
});

/** The rows of the tables below a heading, cell by cell. */
function readRows(page: string, heading: string): string[][] {
  const start = page.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`There is no heading "${heading}".`);
  const [section = ""] = page.slice(start + heading.length + 2).split(/^#+ /m, 1);
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  return lines.map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** Names in back-ticks; those with a `?` behind them need not be there. */
function namesIn(cell: string): { name: string; optional: boolean }[] {
  return [...cell.matchAll(/`([^`]+)`(\?)?/g)].map((match) => ({
    name: match[1] ?? "",
    optional: match[2] !== undefined,
  }));
}

function misfits(keys: readonly string[], listed: ReturnType<typeof namesIn>): string[] {
  const unlisted = keys.filter((key) => !listed.some(({ name }) => name === key));
  const missing = listed.filter(({ name, optional }) => !optional && !keys.includes(name));
  return [...unlisted, ...missing.map(({ name }) => `no ${name}`)];
}

describe("docs/cli.md", () => {
  const page = (): string => all.get("docs/cli.md") ?? "";

  it("lists the exit codes as the program has them", () => {
    const names = Object.keys(EXIT) as (keyof typeof EXIT)[];
    const [, , ...rows] = readRows(page(), "## Exit codes");
    expect(rows).toEqual(names.map((name) => [String(EXIT[name]), EXIT_MEANINGS[name]]));
  });

  it("lists every command, with what it takes", () => {
    const listed = readRows(page(), "## Commands").map(([command = ""]) => command);
    for (const [name, { takes }] of typedCommands()) {
      // The verbs of sessions have a table of their own.
      const rest = takes === undefined || name === "sessions" ? "" : ` ${takes}`;
      expect(listed).toContain(`\`gyre ${name}${rest.replaceAll("|", "\\|")}\``);
    }
  });

  it("names every option of a run", () => {
    const options = RUN_GROUPS.flatMap((group) => group.options);
    // `--config`, `--sandbox` and `--trust` are described where settings are.
    const described = page() + (all.get("docs/configuration.md") ?? "");
    expect(options.filter((name) => !described.includes(`--${name}`) && name !== "print")).toEqual(
      [],
    );
  });

  it("lists the fields of a result", async () => {
    const listed = readRows(page(), "### json").flatMap(([cell = ""]) => namesIn(cell));
    await withPlace(async (place) => {
      const schema = join(place.cwd, "schema.json");
      writeFileSync(schema, `{ "type": "string" }`);
      const look = { say: [{ call: "find", arguments: { pattern: "*" } }] };
      const typed = { say: [{ call: "final_answer", arguments: { answer: "green" } }] };
      const source = { type: "web_search_result_location", url: "https://t.example/", title: "T" };
      const results = [
        await place.result([], [{ say: [{ text: "Green.", citations: [source] }] }]),
        await place.result(["--schema", schema], [typed]),
        await place.result(["--max-turns", "1"], [look]),
        await place.result(["--no-session"], [{ status: 401 }]),
      ];
      for (const result of results) expect(misfits(Object.keys(result), listed)).toEqual([]);
      const seen = new Set(results.flatMap((result) => Object.keys(result)));
      expect(listed.filter(({ name }) => !seen.has(name))).toEqual([]);
      expect(results).toMatchObject([
        { exitCode: 0, sources: [{ url: "https://t.example/", title: "T" }] },
        { output: "green" },
        { limit: "maxTurns" },
        { exitCode: 41 },
      ]);
    });
  });

  it("lists the events and their fields", () => {
    const rows = readRows(page(), "### stream-json").map(([type = "", fields = ""]) => ({
      type: namesIn(type)[0]?.name,
      fields: namesIn(fields),
    }));
    for (const event of Object.values(EVENTS)) {
      const { type, payload } = toWireEvent(event);
      const row = rows.find((each) => each.type === type);
      expect(row, type).toBeDefined();
      expect([type, misfits(Object.keys(payload), row?.fields ?? [])]).toEqual([type, []]);
    }
  });
});

const MODEL = { provider: "tea", id: "green" };
const ANSWER = {
  role: "assistant",
  content: [],
  api: "tea",
  provider: "tea",
  model: "green",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
} as const;
const CALL = { toolCallId: "1", toolName: "brew" };
const FAILURE = { kind: "network", errorMessage: "No water." };

/** One of each; what is missing here does not compile. */
const EVENTS: { [T in AgentEvent["type"]]: Extract<AgentEvent, { type: T }> } = {
  agent_start: { type: "agent_start" },
  turn_start: { type: "turn_start" },
  message_start: { type: "message_start", message: { ...ANSWER, content: [] } },
  message_update: {
    type: "message_update",
    message: { ...ANSWER, content: [] },
    assistantMessageEvent: {
      type: "text_delta",
      contentIndex: 0,
      delta: "Green",
      partial: { ...ANSWER, content: [] },
    },
  },
  message_end: { type: "message_end", message: { ...ANSWER, content: [] } },
  tool_execution_start: { type: "tool_execution_start", ...CALL, args: {} },
  tool_execution_update: {
    type: "tool_execution_update",
    ...CALL,
    args: {},
    partialResult: { content: [] },
  },
  tool_execution_end: {
    type: "tool_execution_end",
    ...CALL,
    result: { content: [] },
    outcome: "ok",
    isError: false,
    durationMs: 1,
  },
  turn_end: { type: "turn_end", message: { ...ANSWER, content: [] }, toolResults: [] },
  waiting: { type: "waiting", phase: "call", toolName: "write", silentMs: 15_000 },
  retry: { type: "retry", attempt: 1, maxAttempts: 10, delayMs: 1, ...FAILURE },
  fallback: { type: "fallback", from: MODEL, to: MODEL, ...FAILURE },
  compaction: {
    type: "compaction",
    before: 2,
    after: 1,
    reason: "size",
    compaction: { from: 0, to: 1, message: { role: "user", content: "Tea.", timestamp: 0 } },
  },
  limit: { type: "limit", limit: "maxTurns", value: 1 },
  agent_end: {
    type: "agent_end",
    messages: [],
    stop: "limit",
    limit: "maxTurns",
    turns: 1,
    usage: {},
    undelivered: [],
    pending: [],
  },
};

describe("docs/sessions.md", () => {
  const page = (): string => all.get("docs/sessions.md") ?? "";
  const firstNames = (heading: string): (string | undefined)[] =>
    readRows(page(), heading).map(([cell = ""]) => namesIn(cell)[0]?.name);

  it("lists what can be done to a session", () => {
    const [verbs = ""] = COMMANDS.sessions.takes.slice(1).split(" ");
    const listed = firstNames("## On the command line");
    for (const verb of verbs.split("|")) {
      expect(listed).toContain(`gyre sessions ${verb} ${verb === "import" ? "FILE" : "ID"}`);
    }
  });

  it("lists the types of entries", () => {
    const listed = firstNames("### Entries").filter((name) => name !== undefined);
    expect(new Set(listed)).toEqual(new Set(["type", ...ENTRY_TYPES]));
  });
});

/** Frames of a program, in order, as they come. */
class Frames {
  readonly #lines: string[] = [];
  #rest = "";
  #isOver = false;
  #wake: () => void = () => {};

  constructor(output: Readable) {
    output.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      this.#lines.push(...lines);
      this.#wake();
    });
    output.once("close", () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** The next one; nothing at the end. */
  async next(): Promise<string | undefined> {
    while (this.#lines.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#lines.shift();
  }
}

describe("docs/rpc.md", () => {
  const page = (): string => all.get("docs/rpc.md") ?? "";

  it("has a conversation as the program has it", async () => {
    const conversation = readFences(page()).find(({ note }) => note === "conversation");
    if (!conversation) throw new Error("There is no conversation.");
    await withPlace(async (place) => {
      place.service.play(readAnswers(page(), conversation));
      const child = place.start("gyre", ["rpc"]);
      const frames = new Frames(child.stdout);
      const code = new Promise((settle) => child.once("close", settle));
      let session = "";
      for (const line of conversation.body.trimEnd().split("\n")) {
        const text = line.slice("-> ".length);
        if (line.startsWith("-> ")) {
          child.stdin.write(`${text.replaceAll("SESSION", session)}\n`);
          continue;
        }
        const frame = (await frames.next()) ?? "the end";
        session ||= /"session":"(\w+)"/.exec(frame)?.[1] ?? "";
        if (!fits(frame, text.replaceAll("SESSION", session))) expect(frame).toBe(text);
      }
      expect([await frames.next(), await code]).toEqual([undefined, EXIT.done]);
      expect(place.service.problems).toEqual([]);
    });
  });

  it(
    "has a client that works",
    async () => {
      const fences = readFences(page());
      const fence = fences.find(({ language }) => language === "ts");
      const [client] = readSnippets(page(), "docs/rpc.md");
      if (!fence || !client) throw new Error("There is no client.");
      await mkdir(join(root, ".tmp"), { recursive: true });
      const folder = await mkdtemp(join(root, ".tmp", "docs-rpc-"));
      try {
        const { problems, programs } = await compile([client], folder);
        expect(problems).toEqual([]);
        await withPlace(async (place) => {
          place.service.play(readAnswers(page(), fence));
          expect(await place.run(process.execPath, [programs.get(client) ?? ""])).toBe(
            client.output,
          );
        });
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    PAGE_MS,
  );

  it("lists requests that are served", async () => {
    const rows = readRows(page(), "## Frames").filter((row) => row.length === 3);
    const requests = rows.slice(2).flatMap(([cell = ""]) => namesIn(cell));
    expect(requests.length).toBeGreaterThan(15);
    const [, unserved = ""] = /Not served yet \(`not_implemented`\): ([^.]*)\./.exec(page()) ?? [];
    await withPlace(async (place) => {
      const child = place.start("gyre", ["rpc"]);
      const frames = new Frames(child.stdout);
      const answerTo = async (type: string): Promise<string> => {
        const payload = type === "hello" ? { versions: [1] } : {};
        child.stdin.write(`${JSON.stringify({ v: 1, type, id: type, payload })}\n`);
        return (await frames.next()) ?? "the end";
      };
      const known = requests.filter(({ name }) => name !== "goodbye");
      for (const { name } of known) {
        expect(await answerTo(name)).not.toMatch(/There is no frame|not_implemented/);
      }
      for (const { name } of namesIn(unserved)) {
        expect(await answerTo(name)).toContain('"code":"not_implemented"');
      }
      expect(await answerTo("brew")).toContain("There is no frame");
      expect(await answerTo("goodbye")).toContain('"type":"goodbye"');
    });
  });

  it("lists the codes of errors", () => {
    const [, codes = ""] = /`code` is one of: ([^.]*)\./.exec(page()) ?? [];
    expect(namesIn(codes).map(({ name }) => name)).toEqual([...ERROR_CODES]);
  });
});
