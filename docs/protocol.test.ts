import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { call, manualClock, type ScriptAnswer, stall, think } from "@gyre/ai";
import { ERROR_CODES, type Limits, LIMITS, ModelService } from "@gyre/protocol";
import { statusOf } from "@gyre/protocol/node";
import { SessionService } from "@gyre/server";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Connection } from "../packages/protocol/src/connection.ts";
import * as limits from "../packages/protocol/src/limits.ts";
import type { WireStreamOptions } from "../packages/protocol/src/request-payloads.ts";
import { ScriptedHost } from "../packages/server/src/testing/scripted-host.ts";
import { type ServedWorld, servedWorld } from "../packages/server/src/testing/served-world.ts";
import { type Fence, fencesOf, root } from "./snippets.ts";

const PAGE = "docs/protocol.md";
/** The time that the page has in its examples, in milliseconds since 1970. */
const NOW = 1_760_000_000_000;
/** Stands for a line that does not come. */
const THE_END = "(the end)";

/** What the model of the examples says. */
const ANSWERS: Readonly<Record<string, ScriptAnswer>> = {
  "Which tea?": { parts: [think("Which one?", { signature: "c2ln" }), "Green."], chunkSize: 10 },
  "Tell me a story.": ["Once", stall()],
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

/** The server of the examples, on a clock that stands still. */
async function serve(changed: Partial<Limits> = {}): Promise<ServedWorld> {
  const clock = manualClock(NOW);
  world = await servedWorld({
    answer: (question, { messages }) => {
      const isAnswered = messages.at(-1)?.role === "toolResult";
      if (question === "How warm is it?" && !isAnswered) return call("thermometer", { at: "pot" });
      return ANSWERS[question] ?? "80 degrees.";
    },
    scripted: { clock },
    host: { clock },
    limits: changed,
    clock,
  });
  return world;
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
  fits(line: string, shown: string): boolean {
    const found: string[] = [];
    const pattern = this.filled(shown)
      .split(/(…|\b(?:SESSION|EPOCH|CALL|STREAM|CONNECTION)\b)/)
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

function linesOf(socket: Socket): Lines {
  const lines = new Lines();
  socket.setEncoding("utf8").on("data", (text: string) => lines.feed(text));
  socket.on("close", () => lines.end());
  return lines;
}

/** The blocks of the page that are run, by what follows their language. */
function examples(language: string): Fence[] {
  return fencesOf(page).filter((fence) => fence.language === language && fence.note !== "");
}

/** `name key=value …`, as it follows the language of a block. */
function limitsIn({ note }: Fence): Partial<Limits> {
  const pairs = note.split(" ").slice(1);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key = "", value = ""] = pair.split("=");
      return [key, Number(value)];
    }),
  );
}

/** Plays a block of frames over TCP. Gives the lines that came and are not as the page has them. */
async function problemsOf(fence: Fence): Promise<string[]> {
  const { tcp, token } = await serve(limitsIn(fence));
  const names = new Names({ TOKEN: token });
  const open = (): Socket => connect({ host: tcp.host, port: tcp.port });
  let socket = open();
  let lines = linesOf(socket);
  const wrong: string[] = [];
  let isSkipping = false;
  for (const shown of fence.body.trimEnd().split("\n")) {
    const text = shown.slice("-> ".length);
    if (shown.startsWith("-> ")) socket.write(`${names.filled(text)}\n`);
    else if (shown.startsWith("-- ")) {
      socket.destroy();
      socket = open();
      lines = linesOf(socket);
    } else if (text === "…") isSkipping = true;
    else {
      let line = await lines.next();
      while (isSkipping && line !== THE_END && !names.fits(line, text)) line = await lines.next();
      if (!names.fits(line, text)) wrong.push(`<- ${line}`);
      isSkipping = false;
    }
  }
  socket.destroy();
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
function groupsOf(body: string): { kind: string; lines: string[] }[] {
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
async function httpProblemsOf(fence: Fence): Promise<string[]> {
  const { http, token } = await serve();
  const names = new Names({ TOKEN: token });
  const wrong: string[] = [];
  let response: Response | undefined;
  let events: AsyncGenerator<string> | undefined;
  for (const { kind, lines } of groupsOf(fence.body)) {
    if (kind === "->") {
      response = await ask(http.url, lines.map((line) => names.filled(line)));
      continue;
    }
    if (!response) throw new Error("An answer without a request.");
    const said = kind === "<<" && events ? events : answerLines(response, lines);
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) events ??= said;
    for (const shown of lines) {
      const { value: line = "" } = await said.next();
      if (!names.fits(line, shown)) wrong.push(`${kind} ${line}`);
    }
  }
  return wrong;
}

describe("the examples of docs/protocol.md are what a server says", () => {
  it.each(["models", "resume", "snapshot", "abort", "session", "lent", "refused"])(
    "over TCP: %s",
    async (name) => {
      const fence = examples("jsonl").find(({ note }) => note.split(" ")[0] === name);
      if (!fence) throw new Error(`There is no example "${name}".`);
      expect(await problemsOf(fence)).toEqual([]);
    },
  );

  it.each(["stream", "connection"])("over HTTP: %s", async (name) => {
    const fence = examples("http").find(({ note }) => note === name);
    if (!fence) throw new Error(`There is no example "${name}".`);
    expect(await httpProblemsOf(fence)).toEqual([]);
  });

  it("and all of them are played", () => {
    expect([...examples("jsonl"), ...examples("http")]).toHaveLength(9);
  });
});
