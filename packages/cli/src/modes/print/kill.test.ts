import { type AgentMessage, type AgentToolResult, markSources } from "@gyre/agent";
import { openSession } from "@gyre/sessions";
import { afterAll, beforeAll, expect, it } from "vitest";
import { requestCheckFor } from "../../../../ai/src/providers/testing/request-checks.ts";
import {
  buildProgram,
  type Ended,
  type Program,
  sessionFiles,
  stripSandboxLine,
} from "../../testing/program.ts";
import {
  type Answer,
  type AnswerPart,
  type ScriptedService,
  scriptedService,
  type ServiceRequest,
} from "../../testing/scripted-service.ts";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";

// kill -9 at any moment. What was shown before it is in the session and in the next request;
// and there always is a next request, which the service takes.

const KILLS = countCases(6, 50, "GYRE_KILLS");
const SEED = pickSeed();
/** How many programs run at the same time. */
const LANES = 3;
/** A run is killed as often before its session is let come to its end. */
const MAX_KILLS_A_SESSION = 4;
const ROUNDS = 5;
const DONE = "All of it is done.";
/** About as long as a whole run takes on a quiet machine, and as much as it shows. */
const MAX_DELAY_MS = 600;
const MAX_LINE = 160;
const MS_A_KILL = 4_000;

let program: Program;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());

type Random = (below: number) => number;

function random(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A job of some rounds, each of some calls at once; it goes on from whatever the request says. */
function nextAnswer({ body }: ServiceRequest, pick: Random): Answer {
  const messages = body["messages"] as { role: string; content: { type: string }[] }[];
  const round = messages.filter(({ content }) =>
    content.some(({ type }) => type === "tool_use"),
  ).length;
  if (round >= ROUNDS) return { say: DONE };
  const calls: AnswerPart[] = [
    { call: "find", arguments: { pattern: `*.${round}` } },
    { call: "grep", arguments: { pattern: `word${round}` } },
    { call: "write", arguments: { path: `file${round}.txt`, content: `word${round}\n` } },
    { call: "read", arguments: { path: `file${Math.max(0, round - 1)}.txt` } },
    { call: "find", arguments: { pattern: `**/*${round}*` } },
  ];
  if (pick(4) === 0) {
    calls.push({ call: "shell", arguments: { command: `echo some text in ${round}` } });
  }
  return {
    say: [
      ...(pick(2) === 0 ? [{ thinking: `It is round ${round}.` }] : []),
      { text: `I do round ${round} now, step by step.` },
      ...calls.slice(pick(3)),
    ],
    deltaChars: 6,
    ...(pick(2) === 0 && { paceMs: 1 }),
  };
}

/** What the ends of were shown. */
interface Shown {
  messages: AgentMessage[];
  results: { id: string; result: AgentToolResult; isError: boolean }[];
}

/** Reads the lines that are whole; the last one may have been cut by the kill. */
function addShown(shown: Shown, stdout: string): void {
  for (const line of stdout.split("\n").slice(0, -1)) {
    const event = JSON.parse(line) as {
      type: string;
      message: AgentMessage;
      toolCallId: string;
      result: AgentToolResult;
      isError: boolean;
    };
    if (event.type === "message_end") shown.messages.push(event.message);
    else if (event.type === "tool_execution_end") {
      const { isError, result, toolCallId: id } = event;
      shown.results.push({ id, result, isError });
    }
  }
}

/** As it is after its way through JSON. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

/** The file has it all, in the order in which it was shown. */
async function checkFile(file: string, shown: Shown): Promise<void> {
  const session = await openSession(file, { readOnly: true });
  const context = await session.context();
  const kept = context.messages.map((message) => JSON.stringify(plain(message)));
  let from = 0;
  for (const message of shown.messages) {
    const at = kept.indexOf(JSON.stringify(message), from);
    if (at === -1) {
      expect.fail(
        `shown, and not in the file: ${JSON.stringify(message)}\nthere is:\n${kept.join("\n")}`,
      );
    }
    from = at + 1;
  }
  for (const { id, result } of shown.results) {
    const message = context.messages.find(
      (each) => each.role === "toolResult" && each.toolCallId === id,
    );
    const unfinished = context.unfinished(id);
    const recorded = typeof unfinished === "object" && "content" in unfinished && unfinished;
    const kept = message && "content" in message ? message : recorded || undefined;
    expect(plain(kept?.content), `the result of ${id}`).toEqual(result.content);
  }
  await session.close();
}

interface WireBlock {
  type: string;
  text?: string;
  id?: string;
  tool_use_id?: string;
  content?: { text?: string }[] | string;
  is_error?: boolean;
}

/** The request has it all. That it is one that the service takes is checked by the service. */
function checkRequest(request: ServiceRequest, shown: Shown): void {
  const messages = request.body["messages"] as { role: string; content: WireBlock[] }[];
  const blocks = messages.flatMap(({ content }) => content);
  const texts = new Set(blocks.map(({ text }) => text));
  const calls = new Set(blocks.map(({ id }) => id));
  for (const message of shown.messages) {
    if (message.role !== "user" && message.role !== "assistant") continue;
    const { content } = message;
    for (const block of typeof content === "string" ? [{ type: "text", text: content }] : content) {
      if ("text" in block && block.text.trim() !== "") expect(texts).toContain(block.text);
      if (block.type === "toolCall" && "id" in block) expect(calls).toContain(block.id);
    }
  }
  for (const { id, isError, result } of shown.results) {
    const sent = blocks.find(({ tool_use_id }) => tool_use_id === id);
    const { content = [] } = sent ?? {};
    const text = typeof content === "string" ? [content] : content.map(({ text }) => text);
    const marked = markSources({ role: "user", content: result.content, timestamp: 0 });
    const { content: parts } = marked;
    const given =
      typeof parts === "string" ? [parts] : parts.map((part) => ("text" in part ? part.text : ""));
    expect(text, `the result of ${id}`).toEqual(given);
    expect(sent?.is_error ?? false).toBe(isError);
  }
}

interface Count {
  kills: number;
  sessions: number;
  /** Runs that were over before their kill. */
  late: number;
  /** Kills before anything was shown. */
  early: number;
  messages: number;
  results: number;
}

/** One session: killed some times, gone on with each time, and in the end let finish. */
async function liveOnce(pick: Random, count: Count): Promise<void> {
  const check = requestCheckFor({ api: "anthropic-messages", provider: "anthropic" });
  let isLast = false;
  const service = await scriptedService(
    (request) => (isLast ? { say: DONE } : nextAnswer(request, pick)),
    { check: ({ body }) => check(body) },
  );
  const shown: Shown = { messages: [], results: [] };
  let home: string | undefined;
  let finished: Ended | undefined;
  for (let kills = pick(MAX_KILLS_A_SESSION) + 1; kills >= 0; kills--) {
    isLast = kills === 0;
    const file: string | undefined = home === undefined ? undefined : sessionFiles(home)[0];
    if (file !== undefined) await checkFile(file, shown);
    else expect(shown.messages, "nothing is written, but this was shown").toEqual([]);
    const ended = await runAndKill(pick, service, home, file !== undefined, !isLast);
    home = ended.home;
    addShown(shown, ended.stdout);
    const [request] = ended.requests;
    if (request) checkRequest(request, beforeThat(shown, ended));
    if (ended.signal === "SIGKILL") {
      count.kills++;
      if (ended.stdout === "") count.early++;
    } else {
      finished = ended;
      expect([ended.code, stripSandboxLine(ended), service.problems]).toEqual([0, "", []]);
      if (!isLast) count.late++;
    }
  }
  expect(service.problems).toEqual([]);
  expect(finished?.stdout).toContain(DONE);
  await checkFile(sessionFiles(finished?.home ?? "")[0] ?? "", shown);
  count.sessions++;
  count.messages += shown.messages.length;
  count.results += shown.results.length;
  await service.close();
}

/** What was shown before this run. */
function beforeThat(shown: Shown, { stdout }: Ended): Shown {
  const now: Shown = { messages: [], results: [] };
  addShown(now, stdout);
  return {
    messages: shown.messages.slice(0, shown.messages.length - now.messages.length),
    results: shown.results.slice(0, shown.results.length - now.results.length),
  };
}

async function runAndKill(
  pick: Random,
  service: ScriptedService,
  home: string | undefined,
  goesOn: boolean,
  kill: boolean,
): Promise<Ended> {
  const args = ["-p", goesOn ? "Go on." : "Do it.", "--mode", "full", "--output", "stream-json"];
  const byLine = pick(3) > 0 ? pick(MAX_LINE) + 1 : undefined;
  const run = await program.start(goesOn ? [...args, "--continue"] : args, {
    service,
    ...(home !== undefined && { home }),
    ...(kill &&
      byLine !== undefined && {
        onStdout: (stdout, run) => stdout.split("\n").length > byLine && run.kill("SIGKILL"),
      }),
  });
  const timer =
    kill && byLine === undefined
      ? setTimeout(() => run.kill("SIGKILL"), pick(MAX_DELAY_MS))
      : undefined;
  const ended = await run.end;
  clearTimeout(timer);
  return ended;
}

it(
  `loses nothing that was shown in ${KILLS} kills (seed ${SEED})`,
  { tags: "long", timeout: 120_000 + KILLS * MS_A_KILL },
  async () => {
    const count: Count = { kills: 0, sessions: 0, late: 0, early: 0, messages: 0, results: 0 };
    const failures: unknown[] = [];
    const lane = async (nth: number): Promise<void> => {
      const pick = random(SEED + nth);
      while (count.kills < KILLS && failures.length === 0) {
        await liveOnce(pick, count).catch((error: unknown) => failures.push(error));
      }
    };
    await Promise.all(Array.from({ length: LANES }, (_, nth) => lane(nth)));
    console.log(`seed ${SEED}: ${JSON.stringify(count)}`);
    if (failures.length > 0) throw failures[0];
    expect(count.messages).toBeGreaterThan(KILLS);
  },
);
