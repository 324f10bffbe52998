import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { call, cutOff, manualClock, type ScriptAnswer, stall, think } from "@gyre/ai/testing";
import {
  type Connection,
  ERROR_CODES,
  type Limits,
  LIMITS,
  ModelService,
  ProtocolError,
} from "@gyre/protocol";
import { httpStatus } from "@gyre/protocol/node";
import { SessionService } from "@gyre/server";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import * as limits from "../packages/protocol/src/frames/limits.ts";
import type { WireStreamOptions } from "../packages/protocol/src/models/request-payloads.ts";
import { createTestTool } from "../packages/server/src/testing/remote-world.ts";
import {
  ScriptedHost,
  type ScriptedHostOptions,
} from "../packages/server/src/testing/scripted-host.ts";
import {
  type ServedWorld,
  createServedWorld,
} from "../packages/server/src/testing/served-world.ts";
import { WebSocket } from "ws";
import { type Fence, readFences, root } from "./snippets.ts";

const PAGE = "docs/protocol.md";
/** The time that the page has in its examples, in milliseconds since 1970. */
const NOW = 1_760_000_000_000;
/** Stands for a line that does not come. */
const THE_END = "(the end)";

/** What the model of the examples says. */
const ANSWERS: Readonly<Record<string, ScriptAnswer>> = {
  "Which tea?": { parts: [think("Which one?", { signature: "c2ln" }), "Green."], chunkSize: 10 },
  "Write me a story.": ["Once", stall()],
  "Count to four.": { parts: ["1 2 3 4"], chunkSize: 2 },
};

let page: string;
let world: ServedWorld | undefined;

beforeAll(async () => {
  page = await readFile(join(root, PAGE), "utf8");
});

afterEach(async () => {
  await world?.close();
  world = undefined;
});

/** What the hosts of some examples do, by the name of the example. */
const HOSTS: Readonly<Record<string, Omit<ScriptedHostOptions, "script">>> = {
  "one-end": {
    agent: { retry: { maxRetries: 0 } },
    // A run that breaks off is continued by another one, for the same prompt.
    session: (agent) => ({
      prompt: async ({ text }) => {
        const { stop } = await agent.prompt(text);
        if (stop === "error") await agent.continue();
      },
    }),
  },
  permission: {
    session: () => {
      let mode = "ask";
      return {
        info: () => ({ mode }),
        update: async ({ modes }) => void (mode = modes?.permission ?? mode),
      };
    },
  },
  host: {
    session: {
      async request(name) {
        if (name === "find_files") return { payload: { paths: ["tea.txt"] } };
        throw new ProtocolError("not_implemented", `There is no "${name}" here.`);
      },
    },
  },
  pending: { tools: [createTestTool("asks")] },
  edited: {
    tools: [
      {
        name: "asks",
        description: "Sends it.",
        parameters: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
        execute: ({ to }) => `Sent to ${String(to)}.`,
      },
    ],
  },
  elsewhere: {
    onOpen: () => {
      throw new ProtocolError("session_busy", "Another process has it open.");
    },
  },
};

/** The server of an example, on a clock that stands still. */
async function serve(fence: Fence): Promise<ServedWorld> {
  const clock = manualClock(NOW);
  const { maxConnections, ...limits } = limitsIn(fence);
  let asked = 0;
  world = await createServedWorld({
    answer: (question, { messages }) => {
      const isAnswered = messages.at(-1)?.role === "toolResult";
      if (question === "How warm is it?" && !isAnswered) return call("thermometer", { at: "pot" });
      if (question === "May I?" && !isAnswered) return call("asks", {});
      if (question === "Send it." && !isAnswered) return call("asks", { to: "all" });
      if (question === "Does it break off?" && asked++ === 0) return ["Ye", cutOff()];
      return ANSWERS[question] ?? "80 degrees.";
    },
    scripted: { clock },
    host: { clock, ...HOSTS[readName(fence)] },
    limits,
    ...(maxConnections !== undefined && { maxConnections }),
    clock,
  });
  return world;
}

function readName({ note }: Fence): string {
  return note.split(" ", 1)[0] ?? "";
}

/**
 * What differs from run to run, by the names that the page has for it. Their first place in
 * what comes says what they are.
 */
class Names {
  readonly #known = new Map<string, string>();

  constructor(known: Readonly<Record<string, string>>) {
    for (const [name, value] of Object.entries(known)) this.#known.set(name, value);
  }

  /** A line of the page as it is sent. */
  filled(shown: string): string {
    return shown.replaceAll(/\b[A-Z]{4,}\b/g, (name) => this.#known.get(name) ?? name);
  }

  /** Whether a line that came is the one of the page, where `…` is anything. */
  fits(came: string, shown: string): boolean {
    const line = inOrder(came);
    const found: string[] = [];
    const pattern = this.filled(shown)
      .split(/(…|\b(?:SESSION|EPOCH|CALL|STREAM|CONNECTION|CURSOR)\b)/)
      .map((part, at) => {
        if (at % 2 === 0) return part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
        if (part === "…") return ".+?";
        if (found.includes(part)) return `\\k<${part}>`;
        found.push(part);
        return `(?<${part}>[\\w-]+)`;
      });
    const match = new RegExp(`^${pattern.join("")}$`).exec(line);
    for (const name of found) {
      const value = match?.groups?.[name];
      if (value !== undefined) this.#known.set(name, value);
    }
    return match !== null;
  }
}

/** Lines as they come, of a socket or of a response. */
class Lines {
  readonly #waiting: string[] = [];
  #rest = "";
  #isOver = false;
  #wake = (): void => {};

  feed(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    this.#waiting.push(...lines);
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  async next(): Promise<string> {
    while (this.#waiting.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#waiting.shift() ?? THE_END;
  }
}

/** The fields of a frame, in the order that the page has them. */
const FIELDS = ["v", "type", "id", "ts", "stream", "seq", "from", "re", "payload"];

/** A frame with its fields in that order: which one they came in means nothing. */
function inOrder(line: string): string {
  if (!line.startsWith("{")) return line;
  const frame: Readonly<Record<string, unknown>> = JSON.parse(line);
  const names = [...FIELDS, ...Object.keys(frame).filter((name) => !FIELDS.includes(name))];
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, frame[name]])));
}

function readLines(socket: Socket): Lines {
  const lines = new Lines();
  socket.setEncoding("utf8").on("data", (text: string) => lines.feed(text));
  socket.on("close", () => lines.end());
  return lines;
}

/** The blocks of the page that are run, by what follows their language. */
function examples(language: string): Fence[] {
  return readFences(page).filter((fence) => fence.language === language && fence.note !== "");
}

/** `name key=value …`, as it follows the language of a block. */
function limitsIn({ note }: Fence): Partial<Limits> & { maxConnections?: number } {
  const pairs = note.split(" ").filter((pair) => /=\d+$/.test(pair));
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key = "", value = ""] = pair.split("=");
      return [key, Number(value)];
    }),
  );
}

/** A connection of an example. */
interface Client {
  lines: Lines;
  send(text: string): void;
  destroy(): void;
}

/** `\xFF` on the page is a byte that no UTF-8 has. */
function toBytes(text: string): Buffer {
  const parts = text.split("\\xFF").map((part) => Buffer.from(part));
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.of(0xff), part])));
}

function openTcp({ tcp }: ServedWorld): Client {
  const socket = connect({ host: tcp.host, port: tcp.port });
  return {
    lines: readLines(socket),
    send: (text) => void socket.write(Buffer.concat([toBytes(text), Buffer.from("\n")])),
    destroy: () => void socket.destroy(),
  };
}

async function openWebSocket({ http, token }: ServedWorld): Promise<Client> {
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${http.url.replace(/^http/, "ws")}/api/ws`, ["gyre.v1"], {
    headers,
  });
  const lines = new Lines();
  socket.on("message", (data: Buffer) => lines.feed(`${data.toString()}\n`));
  socket.on("close", (code) => {
    lines.feed(`(closed with ${code})\n`);
    lines.end();
  });
  await once(socket, "open");
  return {
    lines,
    send: (text) => socket.send(toBytes(text), { binary: false }),
    destroy: () => socket.terminate(),
  };
}

/** Plays a block of frames. Gives the lines that came and are not as the page has them. */
async function findProblems(fence: Fence): Promise<string[]> {
  const served = await serve(fence);
  const names = new Names({ TOKEN: served.token });
  const isWebSocket = fence.note.includes("over=websocket");
  const open = async (): Promise<Client> => (isWebSocket ? openWebSocket(served) : openTcp(served));
  let client = await open();
  const left: Client[] = [];
  const wrong: string[] = [];
  let isSkipping = false;
  for (const shown of fence.body.trimEnd().split("\n")) {
    const text = shown.slice("-> ".length);
    const { lines } = client;
    if (shown.startsWith("-> ")) client.send(names.filled(text));
    else if (shown.startsWith("-- ")) {
      client.destroy();
      client = await open();
    } else if (shown.startsWith("-+ ")) {
      left.push(client);
      client = await (text.includes("WebSocket") ? openWebSocket(served) : open());
    } else if (shown.startsWith("-! ")) {
      await served.sessions.close();
    } else if (text === "…") isSkipping = true;
    else {
      let line = await lines.next();
      while (isSkipping && line !== THE_END && !names.fits(line, text)) line = await lines.next();
      if (!names.fits(line, text)) wrong.push(`<- ${line}`);
      isSkipping = false;
    }
  }
  for (const each of [...left, client]) each.destroy();
  return wrong;
}

/** A request of the page: its first line, its headers, an empty line, its body. */
async function ask(url: string, lines: readonly string[]): Promise<Response> {
  const [method, path = ""] = lines[0]?.split(" ") ?? [];
  const blank = lines.indexOf("");
  const head = blank < 0 ? lines.slice(1) : lines.slice(1, blank);
  const headers = head.map((line): [string, string] => {
    const [name = "", ...rest] = line.split(": ");
    return [name, rest.join(": ")];
  });
  const body = blank < 0 ? {} : { body: lines.slice(blank + 1).join("\n") };
  return fetch(url + path, { method: method ?? "GET", headers, ...body });
}

/** What comes of a response: its status, those headers that the page names, its body. */
async function* answerLines(response: Response, shown: readonly string[]): AsyncGenerator<string> {
  yield String(response.status);
  for (const line of shown.slice(1)) {
    const [name = ""] = line.split(": ");
    if (line === "") break;
    yield `${name}: ${response.headers.get(name) ?? "none"}`;
  }
  yield "";
  const lines = new Lines();
  void read(response, lines);
  for (;;) yield await lines.next();
}

async function read({ body }: Response, lines: Lines): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) {
    lines.feed(decoder.decode(piece.value, { stream: true }));
  }
  // A body of JSON has no end of line.
  lines.feed("\n");
  lines.end();
}

/** Lines of one kind that stand together. */
function groupLines(body: string): { kind: string; lines: string[] }[] {
  const groups: { kind: string; lines: string[] }[] = [];
  for (const line of body.trimEnd().split("\n")) {
    const kind = line.slice(0, 2);
    const last = groups.at(-1);
    if (last?.kind === kind) last.lines.push(line.slice(3));
    else groups.push({ kind, lines: [line.slice(3)] });
  }
  return groups;
}

/** Plays a block of requests. `<<` is what comes later on the response that is still open. */
async function findHttpProblems(fence: Fence): Promise<string[]> {
  const { http, token } = await serve(fence);
  const names = new Names({ TOKEN: token });
  const wrong: string[] = [];
  let response: Response | undefined;
  let events: AsyncGenerator<string> | undefined;
  for (const { kind, lines } of groupLines(fence.body)) {
    if (kind === "->") {
      response = await ask(
        http.url,
        lines.map((line) => names.filled(line)),
      );
      continue;
    }
    if (!response) throw new Error("An answer without a request.");
    const received = kind === "<<" && events ? events : answerLines(response, lines);
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) events ??= received;
    for (const shown of lines) {
      const { value: line = "" } = await received.next();
      if (!names.fits(line, shown)) wrong.push(`${kind} ${line}`);
    }
  }
  return wrong;
}

describe("the examples of docs/protocol.md are what a server says", () => {
  it.each([
    "models",
    "resume",
    "snapshot",
    "abort",
    "session",
    "pages",
    "amend",
    "client-tools",
    "refused",
    "numbers",
    "after",
    "one-end",
    "permission",
    "waiting",
    "pending",
    "edited",
    "closed",
    "elsewhere",
    "full",
    "unfit",
    "stopping",
    "not-utf8",
    "not-utf8-websocket",
  ])("frames: %s", async (name) => {
    const fence = examples("jsonl").find((each) => readName(each) === name);
    if (!fence) throw new Error(`There is no example "${name}".`);
    expect(await findProblems(fence)).toEqual([]);
  });

  it.each(["stream", "connection", "full"])("over HTTP: %s", async (name) => {
    const fence = examples("http").find((each) => readName(each) === name);
    if (!fence) throw new Error(`There is no example "${name}".`);
    expect(await findHttpProblems(fence)).toEqual([]);
  });

  it("and all of them are played", () => {
    expect([...examples("jsonl"), ...examples("http")]).toHaveLength(29);
  });
});

/** The rows of the tables below a heading, cell by cell. */
function readRows(text: string, heading: string): string[][] {
  const [, section] = text.split(`\n${heading}\n`);
  if (section === undefined) throw new Error(`There is no heading "${heading}".`);
  const [own = ""] = section.replaceAll(/^```[\s\S]*?^```/gm, "").split(/^#+ /m, 1);
  const lines = own.split("\n").filter((line) => line.startsWith("|"));
  const cells = lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return cells.filter(([first = ""]) => !/^-+$/.test(first));
}

/** What stands in back-ticks. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
}

/** The names in the first column of a table. */
function firstNames(heading: string, text: string = page): string[] {
  return readRows(text, heading).flatMap(([cell = ""]) => namesIn(cell));
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  s: 1000,
  KiB: 1024,
  MiB: 1024 * 1024,
  Mi: 1024 * 1024,
};

/** `16 MiB`, `1,000`, `30 s`; times are in milliseconds. */
function amountIn(cell: string): number {
  const [count = "", unit = ""] = cell.split(" ");
  return Number(count.replaceAll(",", "")) * (UNITS[unit] ?? Number.NaN);
}

/** One of each; what is missing here does not compile. */
const OPTIONS: Record<keyof WireStreamOptions, true> = {
  temperature: true,
  maxTokens: true,
  sessionId: true,
  thinkingLevel: true,
  thinkingBudgets: true,
  cacheRetention: true,
  toolChoice: true,
  maxRetryDelayMs: true,
  timeoutMs: true,
  metadata: true,
  topP: true,
  topK: true,
  minP: true,
  seed: true,
  stopSequences: true,
  presencePenalty: true,
  frequencyPenalty: true,
  parallelToolCalls: true,
  strictTools: true,
  verbosity: true,
  userId: true,
  logprobs: true,
  cacheBreakpoints: true,
  outputFormat: true,
  serviceTools: true,
  providerOptions: true,
};

function noClient(): Connection {
  throw new Error("There is no connection here.");
}

describe("the tables of docs/protocol.md", () => {
  it("list every error code, with its status over HTTP", () => {
    const [, ...rows] = readRows(page, "## Errors");
    expect(rows.map((row) => row.slice(0, 2))).toEqual(
      ERROR_CODES.map((code) => [`\`${code}\``, String(httpStatus(code))]),
    );
  });

  it("list every limit as it is", () => {
    const rows = readRows(page, "## Limits").slice(1);
    const listed = rows.map(([name = "", value = ""]) => [namesIn(name)[0], amountIn(value)]);
    const known = Object.entries(limits).filter(([, value]) => typeof value === "number");
    expect(listed).toEqual(expect.arrayContaining(known));
    expect(listed).toHaveLength(known.length);
    const described = rows.flatMap(([, , words = ""]) => namesIn(words));
    expect(described).toEqual(expect.arrayContaining(Object.keys(LIMITS)));
  });

  it("list every request to models, and what travels of the options", () => {
    const model = servedModels();
    expect(new Set(firstNames("### Requests to models"))).toEqual(new Set(model));
    const [, options = ""] = /^- `options`: ([\s\S]*?)^\n/m.exec(page) ?? [];
    const known = Object.keys(OPTIONS);
    expect(namesIn(options).filter((name) => known.includes(name))).toEqual(known);
  });

  it("list every request to sessions, as docs/rpc.md does", async () => {
    const registering = firstNames("### Registering client tools");
    const asking = firstNames("### Requests to sessions");
    expect(new Set([...asking, ...registering])).toEqual(new Set(servedSessions()));
    const rpc = await readFile(join(root, "docs/rpc.md"), "utf8");
    const connection = firstNames("## A connection");
    expect(firstNames("## Frames", rpc)).toEqual([...connection, ...asking]);
  });

  it("would be found if they were wrong", () => {
    expect([amountIn("16 MiB"), amountIn("1,000"), amountIn("30 s")]).toEqual([
      16_777_216, 1000, 30_000,
    ]);
    expect(amountIn("16 things")).toBeNaN();
    expect(() => readRows(page, "## No such heading")).toThrow("no heading");
  });
});

function servedModels(): string[] {
  const client = { stream: () => noClient() as never };
  const service = new ModelService({ client, models: () => [] });
  return [...service.connect(noClient).handlers.keys()];
}

function servedSessions(): string[] {
  return [...new SessionService(new ScriptedHost()).connect(noClient).handlers.keys()];
}

/** What a row of the last table names: code, and tests with their titles. */
interface Clause {
  clause: string;
  code: string[];
  tests: { file: string; titles: string[] }[];
}

function readClauses(text: string): Clause[] {
  const [, ...rows] = readRows(text, "## From clause to test");
  return rows.map(([clause = "", code = "", shown = ""]) => ({
    clause,
    code: [...code.matchAll(/\]\(([^)]+)\)/g)].map((match) => match[1] ?? ""),
    tests: shown.split("; [").map((part) => ({
      file: /\]\(([^)]+)\)/.exec(part)?.[1] ?? "",
      titles: [...part.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? ""),
    })),
  }));
}

async function problemsIn(clauses: readonly Clause[]): Promise<string[]> {
  const folder = join(root, dirname(PAGE));
  const wrong: string[] = [];
  for (const { clause, code, tests } of clauses) {
    const files = [...code, ...tests.map(({ file }) => file)];
    const missing = files.filter((file) => file === "" || !existsSync(join(folder, file)));
    wrong.push(...missing.map((file) => `${clause}: there is no ${file}`));
    if (code.length === 0) wrong.push(`${clause}: no code`);
    for (const { file, titles } of tests.filter((test) => !missing.includes(test.file))) {
      if (titles.length === 0) wrong.push(`${clause}: no test in ${file}`);
      const source = await readFile(join(folder, file), "utf8");
      const unknown = titles.filter((title) => !source.includes(title));
      wrong.push(...unknown.map((title) => `${clause}: no "${title}" in ${file}`));
    }
  }
  return wrong;
}

describe("from clause to test", () => {
  it("names code and tests that are there", async () => {
    const clauses = readClauses(page);
    expect(clauses.length).toBeGreaterThan(45);
    expect(await problemsIn(clauses)).toEqual([]);
  });

  it("would be found if it were wrong", async () => {
    const row = (code: string, shown: string): Clause[] =>
      readClauses(
        `\n## From clause to test\n\n| a | b | c |\n|---|---|---|\n| One | ${code} | ${shown} |\n`,
      );
    const code = "[x](../packages/protocol/src/frames/envelope.ts)";
    const file = "[y](../packages/protocol/src/frames/envelope.test.ts)";
    expect(await problemsIn(row(code, `${file}: "ignores unknown fields"`))).toEqual([]);
    expect(await problemsIn(row(code, `${file}: "ignores known fields"`))).toHaveLength(1);
    expect(await problemsIn(row(code, file))).toHaveLength(1);
    expect(await problemsIn(row("", `${file}: "ignores unknown fields"`))).toHaveLength(1);
    expect(await problemsIn(row(code, '[z](no.test.ts): "one"'))).toHaveLength(1);
  });
});
