import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { textOf, validateTranscript } from "@gyre/ai";
import type { RunRow, StoredEntry } from "../contract/store.ts";
import type { JournalLine } from "./journal.ts";
import type { PlannedTool } from "./plan.ts";
import { IDEMPOTENT } from "./scripted-agent.ts";

/** A promise that did not hold. */
export interface Finding {
  /** Such as "D5", or "end": the run did not end as it should. */
  readonly promise: string;
  readonly run: string;
  readonly text: string;
}

/** Something that was sent to a run, in order. */
export interface SentItem {
  readonly kind: "steering" | "followUp" | "abort";
  readonly text: string;
  /** `ended`: the run was over, and refused it. */
  readonly outcome: "sent" | "ended";
}

/** All that is known of a run after it has ended: what stores, watchers and tools have noted. */
export interface Evidence {
  readonly run: string;
  readonly row: RunRow | undefined;
  readonly log: readonly StoredEntry[];
  readonly messages: readonly AgentMessage[];
  /** What was seen, by number, while the run went on, and what the log says to the same numbers. */
  readonly seen: ReadonlyMap<number, string>;
  readonly stored: ReadonlyMap<number, string>;
  readonly sent: readonly SentItem[];
  /** Its watcher has seen the end. */
  readonly isOver: boolean;
  /** The lines of its session. */
  readonly journal: readonly JournalLine[];
}

type Line<At extends JournalLine["at"]> = Extract<JournalLine, { at: At }>;
type Report = (promise: string, text: string) => void;

interface Facts {
  readonly evidence: Evidence;
  readonly claims: readonly Line<"claim">[];
  readonly asks: readonly Line<"ask">[];
  readonly begins: readonly Line<"begin">[];
  readonly ends: readonly Line<"end">[];
  /** The number of the entry that the log ended with when an activation began. */
  readonly seqs: ReadonlyMap<number, number>;
  readonly results: readonly StoredResult[];
}

interface StoredResult {
  readonly seq: number;
  readonly call: string;
  readonly tool: string;
  readonly outcome: string;
  readonly text: string;
}

/** Holds a run to D1-D10 and D16. */
export function checkRun(evidence: Evidence): Finding[] {
  const findings: Finding[] = [];
  const report: Report = (promise, text) => findings.push({ promise, run: evidence.run, text });
  const facts = gatherFacts(evidence);
  checkEnd(facts, report);
  checkWatched(facts, report);
  checkFence(facts, report);
  checkNumbers(facts, report);
  checkTranscript(facts, report);
  checkEffects(facts, report);
  checkInterrupted(facts, report);
  checkRepeats(facts, report);
  checkRequests(facts, report);
  checkDeliveries(facts, report);
  return findings;
}

function gatherFacts(evidence: Evidence): Facts {
  const select = <At extends JournalLine["at"]>(at: At): Line<At>[] =>
    evidence.journal.filter((line): line is Line<At> => line.at === at);
  const claims = select("claim");
  return {
    evidence,
    claims,
    asks: select("ask"),
    begins: select("begin"),
    ends: select("end"),
    seqs: new Map(claims.map(({ token, seq }) => [token, seq])),
    results: evidence.log.filter(({ type }) => type === "result").map(readResult),
  };
}

function readResult({ id, data }: StoredEntry): StoredResult {
  const { toolCallId, toolName, outcome, result } = JSON.parse(data);
  const text = textOf({ content: result.content });
  return { seq: id, call: toolCallId, tool: toolName, outcome, text };
}

function checkEnd({ evidence: { row, sent } }: Facts, report: Report): void {
  const isAborted = sent.some(({ kind }) => kind === "abort");
  const isRight = row?.stop === "done" || (isAborted && row?.stop === "aborted");
  if (row?.status !== "ended" || !isRight) {
    report("end", `is ${row?.status ?? "not there"}, ${row?.stop ?? row?.error ?? "open"}`);
  }
}

/** D1, D21: what was seen is stored, and the end is seen. */
function checkWatched({ evidence }: Facts, report: Report): void {
  const { seen, stored, row, isOver } = evidence;
  if (row?.status !== "ended") return;
  if (!isOver) report("D21", `has ended, and its watcher has seen ${seen.size} of ${stored.size}`);
  for (const [seq, event] of seen) {
    if (stored.get(seq) !== event) report("D1", `what was seen as ${seq} is not in the log`);
  }
}

/** D2: once a session is claimed, nothing of the claims before is written. */
function checkFence({ evidence: { log }, claims }: Facts, report: Report): void {
  for (const { token, seq } of claims) {
    const stale = log.find((entry) => entry.id > seq && entry.token < token);
    if (stale) report("D2", `entry ${stale.id} is of claim ${stale.token}, after claim ${token}`);
  }
}

/** D3: 1 to n. */
function checkNumbers({ evidence: { log } }: Facts, report: Report): void {
  const wrong = log.findIndex(({ id }, index) => id !== index + 1);
  if (wrong >= 0) report("D3", `entry ${wrong + 1} is number ${log[wrong]?.id}`);
}

/** D4: every call has one result in its place. */
function checkTranscript({ evidence: { messages }, results }: Facts, report: Report): void {
  // A response that was aborted before its first part is kept, and not sent.
  const sent = messages
    .filter(isLlmMessage)
    .filter((message) => message.role !== "assistant" || message.content.length > 0);
  for (const problem of validateTranscript(sent)) {
    report("D4", JSON.stringify(problem));
  }
  const calls = results.map(({ call }) => call);
  if (new Set(calls).size < calls.length) report("D4", `results of ${calls.join()}`);
}

/** D5, D8: what is not idempotent begins once; what is has the same key each time. */
function checkEffects({ begins }: Facts, report: Report): void {
  const keys = new Map<string, string>();
  for (const { call, tool, key } of begins) {
    const before = keys.get(call);
    keys.set(call, key);
    if (before === undefined) continue;
    if (!IDEMPOTENT.has(tool as PlannedTool)) report("D5", `${tool} ${call} has begun twice`);
    if (before !== key) report("D8", `${tool} ${call} has the keys ${before} and ${key}`);
  }
}

/** D6, D7: a call that had begun is answered with what it gave, or as interrupted; no other is. */
function checkInterrupted(
  { evidence: { log }, begins, ends, results }: Facts,
  report: Report,
): void {
  const answered = new Set(results.map(({ call }) => call));
  for (const { call, tool } of begins) {
    if (!answered.has(call)) report("D6", `${tool} ${call} has begun and has no result`);
  }
  const nonces = new Map(ends.map(({ nonce, call }) => [nonce, call]));
  const stored = new Set(
    log
      .filter(({ type }) => type === "begin")
      .map(({ data }): string => JSON.parse(data).toolCallId),
  );
  for (const { call, tool, outcome, text } of results) {
    if (outcome === "ok" && nonces.get(text) !== call && text !== `recovered ${call}`) {
      report("D6", `${tool} ${call} has a result that it did not give`);
    }
    if (outcome === "interrupted" && !stored.has(call)) {
      report("D7", `${tool} ${call} is interrupted and had not begun`);
    }
  }
}

/** D9: an activation that finds a result does not run its call. */
function checkRepeats({ begins, results, seqs }: Facts, report: Report): void {
  const known = new Map(results.map(({ call, seq }) => [call, seq]));
  for (const { call, tool, token } of begins) {
    const seq = known.get(call);
    if (seq !== undefined && seq <= (seqs.get(token) ?? 0)) {
      report("D9", `${tool} ${call} runs again, with its result in the log`);
    }
  }
}

/** D10: an answer that is stored is not asked for again; an activation asks once for each. */
function checkRequests({ evidence, asks, seqs, claims }: Facts, report: Report): void {
  const answers = evidence.log.filter(
    ({ type, data }) => type === "message" && JSON.parse(data).message?.role === "assistant",
  );
  const asked = new Set<string>();
  for (const { index, token } of asks) {
    const seq = answers[index]?.id;
    if (seq !== undefined && seq <= (seqs.get(token) ?? 0)) {
      report("D10", `answer ${index + 1} is asked for again, and is in the log`);
    }
    const name = `${token} ${index}`;
    if (asked.has(name)) report("D10", `answer ${index + 1} is asked for twice by one worker`);
    asked.add(name);
  }
  const most = answers.length + Math.max(0, claims.length - 1);
  const isAborted = evidence.sent.some(({ kind }) => kind === "abort");
  if (asks.length > most + (isAborted ? 1 : 0)) {
    report("D10", `${asks.length} requests for ${answers.length} answers, ${claims.length} claims`);
  }
}

/** D16: what was sent is delivered once and in order. */
function checkDeliveries({ evidence }: Facts, report: Report): void {
  const { messages, sent } = evidence;
  const delivered = messages
    .filter(({ role }) => role === "user")
    .map((message) => (isLlmMessage(message) ? textOf(message) : ""));
  const isAborted = sent.some(({ kind }) => kind === "abort");
  for (const kind of ["steering", "followUp"] as const) {
    const own = sent.filter((item) => item.kind === kind);
    const texts = new Set(own.map(({ text }) => text));
    const arrived = delivered.filter((text) => texts.has(text));
    const expected = own.filter(({ outcome }) => outcome === "sent").map(({ text }) => text);
    const isRight = isAborted
      ? arrived.every((text, index) => text === expected[index])
      : arrived.join("\n") === expected.join("\n");
    if (!isRight) {
      report("D16", `${kind} sent ${expected.join()}, delivered ${arrived.join() || "none"}`);
    }
  }
}
