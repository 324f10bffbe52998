import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type AgentEvent, listCalls } from "@gyre/agent";
import {
  type Citation,
  errnoOf,
  errorMessage,
  textOf,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import { toWireEvent } from "@gyre/server";
import { findRuleFile } from "@gyre/coding/internal/permissions/rule-book";
import { sanitize } from "@gyre/tools";
import { type AnswerSchema, readAnswerSchema } from "./answer-schema.ts";
import { dollars } from "../../text/dollars.ts";
import {
  EXIT,
  type ExitCode,
  ExitError,
  toExitCode,
  OutputError,
  UsageError,
} from "../../core/exit-codes.ts";
import {
  type DeniedCall,
  type Harness,
  openHarness,
  type Outcome,
} from "@gyre/coding/internal/harness/harness";
import type { Io, Sink } from "../../core/io.ts";
import { OPTIONS, type Values } from "../../core/options.ts";
import { Progress } from "./progress.ts";
import { chooseSession, readSetup, type Setup } from "../../core/setup.ts";
import type { ArgumentFiles } from "../../core/argument-files.ts";
import { readInput } from "../../core/standard-input.ts";
import { modelValue } from "@gyre/coding/internal/text/choices";

const FORMATS = OPTIONS.output.complete;
type Format = (typeof FORMATS)[number];
const MS = 1000;

/** What the last line of `json` and `stream-json` says. */
interface Result {
  type: "result";
  ok: boolean;
  exitCode: ExitCode;
  /** The text of the last answer. */
  text: string;
  /** What its texts cite, as their service reports it. */
  sources?: readonly Pick<Citation, "url" | "title" | "fileId">[];
  /** With --schema: the answer that fits it. */
  output?: unknown;
  /** What went wrong, for people, and of which kind it is. */
  error?: { kind: string; message: string };
  stop: string;
  limit?: string;
  sessionId?: string;
  sessionFile?: string;
  model?: string;
  turns: number;
  usage: Usage;
  /** The same by what it was for: answers, summaries, sideQuestions, subAgents. */
  spending?: object;
  durationMs: number;
  denied: readonly DeniedCall[];
}

/**
 * `gyre -p`: one prompt, one answer, one exit code. stdout has the answer and nothing else;
 * all that is said beside it goes to stderr.
 */
export async function runPrint(args: readonly string[], values: Values, io: Io): Promise<ExitCode> {
  const format = parseFormat(values);
  const startedAt = performance.now();
  let isReported = false;
  const put = (line: object): void => {
    isReported ||= "ok" in line || "is_error" in line;
    io.stdout.write(`${JSON.stringify(line)}\n`);
  };
  try {
    return await printed(args, { format, values, io, startedAt, put });
  } catch (error) {
    // A reader of JSON gets the end of it, however early that is.
    if (format !== "text" && !isReported) {
      const result = earlyResult(error, performance.now() - startedAt);
      const { claudeResult } = await import("./claude-lines.ts");
      put(format === "claude" ? claudeResult(result) : result);
    }
    throw error;
  }
}

async function printed(args: readonly string[], asked: Asked): Promise<ExitCode> {
  const { values, io } = asked;
  const schema =
    values.schema === undefined ? undefined : readAnswerSchema(resolve(io.cwd, values.schema));
  const setup = await readSetup(values, io, { quietAboutShared: values.quiet ?? false });
  const stop = deadline(setup, io.signal);
  try {
    const { words, files } = await readFiles(args, io);
    const text = await readPrompt(words, files.length > 0, asked, stop.signal);
    return await answer(text, schema, { ...asked, setup, stop, files });
  } catch (error) {
    // What ended the waiting is what it ended with.
    if (stop.timedOut) throw new ExitError(EXIT.timeout, timeoutText(setup), { cause: error });
    throw error;
  } finally {
    stop.clear();
  }
}

interface Asked {
  format: Format;
  values: Values;
  io: Io;
  startedAt: number;
  /** Writes a line of JSON. */
  put: (line: object) => void;
}

interface Job extends Asked {
  /** Sent with the prompt. */
  files: readonly UserContent[];
  setup: Setup;
  stop: Deadline;
}

async function answer(text: string, schema: AnswerSchema | undefined, job: Job): Promise<ExitCode> {
  const { io, setup, values } = job;
  const chosen = await chooseSession(values, setup, io);
  try {
    const harness = await openHarness({
      ruleFile: findRuleFile(io.env),
      ...setup,
      ...chosen,
      env: io.env,
      approvals: "deny",
      onForeignCode: io.onForeignCode,
    });
    try {
      return await run(harness, text, schema, job);
    } finally {
      await harness.close();
    }
  } finally {
    await chosen.session?.close();
  }
}

async function run(
  harness: Harness,
  typed: string,
  output: AnswerSchema | undefined,
  job: Job,
): Promise<ExitCode> {
  const { files, format, io, put, setup, startedAt, stop, values } = job;
  const isAsked = typed !== "" || files.length > 0;
  if (!isAsked && !harness.isCutOff) {
    throw new UsageError("The session was not cut off: there is nothing to resume. Give a prompt.");
  }
  await harness.start();
  if (format === "stream-json") put(opening(harness));
  const claude =
    format === "claude" ? new (await import("./claude-lines.ts")).ClaudeLines(harness) : undefined;
  if (claude) put(await claude.opening(setup, io.env));
  const { denied } = harness;
  const progress = new Progress(io.stderr, { quiet: values.quiet ?? false, denied });
  harness.agent.subscribe((event: AgentEvent) => {
    progress.take(event);
    const line = claude?.event(event);
    if (line) put(line);
    if (format !== "stream-json") return;
    const { type, payload } = toWireEvent(event);
    put({ type, ...payload });
  });
  const abort = (): void => harness.agent.abort();
  stop.signal.addEventListener("abort", abort);
  if (stop.signal.aborted) throw createInterruption(io.signal);
  const text = typed.startsWith("/")
    ? await (
        await import("./prompt-command.ts")
      ).expandPrompt(typed, { harness, setup, env: io.env, signal: stop.signal })
    : typed;
  // Without a prompt, what was cut off is resumed.
  const outcome = isAsked
    ? await harness.prompt({ text, attachments: files, ...(output && { output: output.schema }) })
    : await harness.resume(output?.schema);
  if (output && "output" in outcome) outcome.output = output.unwrap(outcome.output);
  stop.signal.removeEventListener("abort", abort);
  const exitCode = chooseExitCode(outcome, harness, job);
  const error = describeError(outcome, exitCode, job);
  if (format === "text") {
    const text = output ? JSON.stringify(outcome.output) : await answerText(outcome);
    if (text) io.stdout.write(`${safeFor(io.stdout, text)}\n`);
  } else {
    const result = createResult(harness, outcome, exitCode, error, performance.now() - startedAt);
    put(claude?.result(result) ?? result);
  }
  progress.end(harness.mode);
  if (error) io.stderr.write(`gyre: ${safeFor(io.stderr, error.message)}\n`);
  return exitCode;
}

/** A terminal obeys what a model may have been made to write; a program gets the text as it is. */
function safeFor({ isTTY }: Sink, text: string): string {
  return isTTY ? sanitize(text) : text;
}

function opening({ agent, model, mode, session, toolset }: Harness): object {
  return {
    type: "session",
    ...(session && { sessionId: session.header.id, sessionFile: session.path }),
    model: modelValue(model),
    mode,
    cwd: toolset.env.workspace.root,
    tools: agent.state.tools.map(({ name }) => name),
  };
}

function createResult(
  { denied, model, session }: Harness,
  outcome: Outcome,
  exitCode: ExitCode,
  error: Result["error"],
  durationMs: number,
): Result {
  const { end, turns, usage, spending } = outcome;
  return {
    type: "result",
    ok: exitCode === EXIT.done,
    exitCode,
    text: finalText(outcome),
    ...listSources(outcome),
    ...("output" in outcome && { output: outcome.output }),
    ...(error && { error }),
    stop: end.stop,
    ...(end.limit && { limit: end.limit }),
    ...(session && { sessionId: session.header.id, sessionFile: session.path }),
    model: modelValue(model),
    turns,
    usage,
    ...(spending && { spending }),
    durationMs: Math.round(durationMs),
    denied,
  };
}

/** What people read: with the list of what it cites, where it cites something. */
async function answerText(outcome: Outcome): Promise<string> {
  const { content = [] } = outcome.end.finalMessage ?? {};
  if (!listSources(outcome).sources) return finalText(outcome);
  return (await import("../../text/service-tool-text.ts")).citedText(content);
}

function finalText({ end: { finalMessage } }: Outcome): string {
  return finalMessage ? textOf(finalMessage).trim() : "";
}

/** Each once, in the order in which they are cited. */
function listSources({ end: { finalMessage } }: Outcome): Pick<Result, "sources"> {
  const cited = (finalMessage?.content ?? []).flatMap((block) =>
    block.type === "text" ? (block.citations ?? []) : [],
  );
  const sources = new Map(
    cited.map(({ fileId, title, url }) => [
      JSON.stringify([url, title, fileId]),
      { ...(url && { url }), ...(title && { title }), ...(fileId && { fileId }) },
    ]),
  );
  return sources.size > 0 ? { sources: [...sources.values()] } : {};
}

function chooseExitCode(outcome: Outcome, harness: Harness, { io, stop }: Job): ExitCode {
  const { end, outputError } = outcome;
  if (stop.timedOut) return EXIT.timeout;
  if (stop.signal.aborted) return createInterruption(io.signal).exitCode;
  switch (end.stop) {
    case "done":
    case "terminated":
      if (outputError === undefined) return isCutShort(outcome) ? EXIT.limit : EXIT.done;
      return lastWasDenied(outcome, harness) ? EXIT.denied : EXIT.failed;
    case "limit":
      return lastWasDenied(outcome, harness) ? EXIT.denied : EXIT.limit;
    default:
      return end.finalMessage?.failure?.kind === "auth" ? EXIT.auth : EXIT.failed;
  }
}

/** Whether the answer ends where the model may write no more. */
function isCutShort({ end: { finalMessage } }: Outcome): boolean {
  return finalMessage?.stopReason === "length";
}

/**
 * Whether the last thing that the agent tried was not allowed: that is why it got no further.
 * What it tried over and over is at last not even asked about.
 */
function lastWasDenied({ end }: Outcome, { denied }: Harness): boolean {
  const calls = end.messages.flatMap((each) => (each.role === "assistant" ? listCalls(each) : []));
  const last = calls.at(-1);
  const refused = new Set(denied.map(({ toolCallId }) => toolCallId));
  return calls.some(
    ({ id, name, arguments: given }) =>
      refused.has(id) && name === last?.name && isDeepStrictEqual(given, last.arguments),
  );
}

function describeError(outcome: Outcome, exitCode: ExitCode, job: Job): Result["error"] {
  const { end, outputError, sessionError } = outcome;
  const { finalMessage } = end;
  const { signal } = job.io;
  if (signal.reason instanceof OutputError) return undefined;
  switch (exitCode) {
    case EXIT.done:
      return undefined;
    case EXIT.timeout:
      return { kind: "timeout", message: timeoutText(job.setup) };
    case EXIT.limit:
      return { kind: "limit", message: limitText(outcome, job) };
    case EXIT.denied:
      return {
        kind: "denied",
        message:
          "The run could not be finished: what it needs is not allowed. See --mode and --allow.",
      };
    default:
      break;
  }
  if (signal.aborted) return { kind: "interrupted", message: createInterruption(signal).message };
  if (sessionError !== undefined) return { kind: "session", message: sessionError };
  return {
    kind: finalMessage?.failure?.kind ?? (outputError === undefined ? "unknown" : "output"),
    message: finalMessage?.errorMessage ?? outputError ?? `The run ended early: ${end.stop}.`,
  };
}

function limitText(outcome: Outcome, { setup: { settings } }: Job): string {
  const { end, turns, usage } = outcome;
  if (isCutShort(outcome)) return "The answer is cut short: the model may write no more at once.";
  switch (end.limit) {
    case "maxTurns":
      return `The limit of ${settings.maxTurns} turns is reached (--max-turns).`;
    case "maxCostUsd":
      return `The limit of ${dollars(settings.maxCost ?? 0)} is reached: ${dollars(usage.cost?.total ?? 0)} (--max-cost).`;
    default:
      return `A limit is reached after ${turns} turns: ${end.limit}.`;
  }
}

interface Deadline {
  signal: AbortSignal;
  readonly timedOut: boolean;
  clear(): void;
}

/** Fires when the program is asked to end, and when its time is over. */
function deadline({ settings: { timeout } }: Setup, asked: AbortSignal): Deadline {
  const controller = new AbortController();
  let timedOut = false;
  const abort = (): void => controller.abort();
  asked.addEventListener("abort", abort);
  if (asked.aborted) abort();
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          abort();
        }, timeout * MS);
  return {
    signal: controller.signal,
    get timedOut() {
      return timedOut;
    },
    clear() {
      clearTimeout(timer);
      asked.removeEventListener("abort", abort);
    },
  };
}

/** Why the program was asked to end. */
function createInterruption({ reason }: AbortSignal): ExitError {
  return reason instanceof ExitError ? reason : new ExitError(EXIT.interrupted, "Interrupted.");
}

function timeoutText({ settings }: Setup): string {
  return `The time is over: ${settings.timeout} s (--timeout).`;
}

const KINDS: Readonly<Record<ExitCode, string>> = {
  [EXIT.usage]: "usage",
  [EXIT.auth]: "auth",
  [EXIT.timeout]: "timeout",
  [EXIT.interrupted]: "interrupted",
};

/** For what went wrong before there was anything to run. */
function earlyResult(error: unknown, durationMs: number): Result {
  const exitCode = toExitCode(error);
  const message = errorMessage(error);
  // Whether a hook did not let the prompt through.
  const isBlocked = errnoOf(error) === "prompt_blocked";
  return {
    type: "result",
    ok: false,
    exitCode,
    text: "",
    error: { kind: isBlocked ? "blocked" : (KINDS[exitCode] ?? "unknown"), message },
    stop: "error",
    turns: 0,
    usage: {},
    durationMs: Math.round(durationMs),
    denied: [],
  };
}

/** Files are read where some are named. */
async function readFiles(args: readonly string[], { cwd }: Io): Promise<ArgumentFiles> {
  if (!args.some((word) => word.startsWith("@"))) return { words: args, files: [] };
  const { readArgumentFiles } = await import("../../core/argument-files.ts");
  return readArgumentFiles(args, cwd);
}

/** What was asked: the command line, and after it what was piped in. */
async function readPrompt(
  args: readonly string[],
  hasFiles: boolean,
  { io, values }: Asked,
  signal: AbortSignal,
): Promise<string> {
  const asked = args.join(" ");
  const piped = io.stdin.isTTY ? "" : await readInput(io, signal, asked !== "");
  const text = [asked, piped].filter((part) => part.trim() !== "").join("\n\n");
  const isResumed = values.continue || values.resume !== undefined || values.history !== undefined;
  if (text === "" && !isResumed && !hasFiles) {
    throw new UsageError('There is no prompt. Give one: gyre -p "...", or pipe it in.');
  }
  return text;
}

function parseFormat({ output = "text" }: Values): Format {
  const format = FORMATS.find((known) => known === output);
  if (format) return format;
  throw new UsageError(`--output "${output}" is none of: ${FORMATS.join(", ")}.`);
}
