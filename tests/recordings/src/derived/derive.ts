import { isDeepStrictEqual } from "node:util";
import type { AssistantContent, AssistantMessage, Clock } from "@gyre/ai";
import { systemClock } from "@gyre/ai";
import { play, type Played } from "../responses/ask.ts";
import { type Boundary, findBoundaries, endsResponse } from "../responses/bodies.ts";
import { errorEvent, unknownEvent } from "./foreign-events.ts";
import { readBody, type Case, buildHeaders, type Recordings } from "../responses/manifest.ts";
import { Random } from "./random.ts";

/** Positions beyond this are not each cut at: what matters has come many times by then. */
const MAX_CUT_POSITION = 8_192;
/** Of all cases, one in so many goes over a real connection. */
export const LOOPBACK_EVERY = 100;
const MAX_PIECE_BYTES = 64;

/** One way to change the bytes of a recording, or the way they arrive. */
type Change =
  | { kind: "cut"; at: number }
  | { kind: "bytes" }
  | { kind: "random"; seed: number }
  | { kind: "truncate" | "error" | "unknown"; boundary: number };

/** A recording with all that its derived cases need. */
export interface Subject {
  one: Case;
  body: Uint8Array;
  boundaries: Boundary[];
  /** The first boundary at which the response is whole; none: it never is. */
  wholeAt: number;
  changes: Change[];
}

/** Recordings of streams; those of errors and of other protocols have nothing to cut. */
export function selectSubjects(recordings: Recordings): Subject[] {
  return recordings.cases
    .filter(({ api }) => api !== "http-error" && api !== "mcp")
    .map((one) => {
      const body = readBody(recordings, one);
      const boundaries = findBoundaries(one, body);
      const whole = boundaries.findIndex(({ payload }) => endsResponse(one, payload));
      return {
        one,
        body,
        boundaries,
        wholeAt: whole < 0 ? boundaries.length : whole,
        changes: [],
      };
    });
}

/**
 * Gives each subject its changes, `count` in all: every change at an event's end, every
 * body in single bytes, then cuts at positions spread evenly over all of them, and
 * random cuts for what is left to do.
 */
export function spread(subjects: readonly Subject[], count: number, seed: number): void {
  for (const subject of subjects) {
    subject.changes.push({ kind: "bytes" });
    for (let boundary = 0; boundary < subject.boundaries.length; boundary++) {
      subject.changes.push({ kind: "truncate", boundary });
      if (boundary >= subject.wholeAt || !subject.one.expected.ok) continue;
      subject.changes.push({ kind: "error", boundary }, { kind: "unknown", boundary });
    }
  }
  const room = count - subjects.reduce((sum, { changes }) => sum + changes.length, 0);
  const positions = subjects.map(({ body }) => Math.min(body.length - 1, MAX_CUT_POSITION));
  const all = positions.reduce((sum, each) => sum + each, 0);
  const share = Math.min(1, room / all);
  for (const [index, subject] of subjects.entries()) {
    const has = positions[index] ?? 0;
    const cuts = Math.floor(has * share);
    for (let cut = 0; cut < cuts; cut++) {
      subject.changes.push({ kind: "cut", at: 1 + Math.floor((cut * has) / cuts) });
    }
  }
  const random = new Random(seed);
  const given = subjects.reduce((sum, { changes }) => sum + changes.length, 0);
  for (let left = count - given; left > 0; left--) {
    const subject = subjects[left % subjects.length];
    subject?.changes.push({ kind: "random", seed: random.below(2 ** 31) });
  }
}

/** A clock that stands still, so that two messages can be compared. */
const still: Clock = { ...systemClock, now: () => 0 };

/** Pieces of a body over a connection; tests that want the real one give a server's. */
export type Carry = (
  one: Case,
  pieces: readonly Uint8Array[],
  run: (baseUrl: string, fetch?: typeof globalThis.fetch) => Promise<Played>,
) => Promise<Played>;

/** A fetch that answers with these pieces, without a network. */
export const inProcess: Carry = (one, pieces, run) =>
  run("http://127.0.0.1:1/recorded", () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    const init = { status: one.http_status, headers: buildHeaders(one) };
    return Promise.resolve(new Response(body, init));
  });

/** What all cases of a subject are compared with: the body as it is, in one piece. */
export function baseline(subject: Subject): Promise<Played> {
  return deliver(subject.one, [subject.body], inProcess);
}

function deliver(one: Case, pieces: readonly Uint8Array[], carry: Carry): Promise<Played> {
  return carry(one, pieces, (baseUrl, fetch) => play(one, baseUrl, fetch, still));
}

/** Plays one changed recording; answers what is wrong, or nothing. */
export async function check(
  subject: Subject,
  change: Change,
  base: Played,
  carry: Carry,
): Promise<string | undefined> {
  const { one } = subject;
  const played = await deliver(one, cutBody(subject, change), carry);
  const wrong = judge(subject, change, base, played);
  return wrong && `${one.id} ${JSON.stringify(change)}: ${wrong}`;
}

function cutBody({ body, boundaries, one }: Subject, change: Change): Uint8Array[] {
  switch (change.kind) {
    case "cut":
      return [body.subarray(0, change.at), body.subarray(change.at)];
    case "bytes":
      return Array.from(body, (_, at) => body.subarray(at, at + 1));
    case "random":
      return randomPieces(body, new Random(change.seed));
    default: {
      const at = boundaries[change.boundary]?.at ?? 0;
      const before = body.subarray(0, at);
      if (change.kind === "truncate") return [before];
      const foreign = change.kind === "error" ? errorEvent(one) : unknownEvent(one);
      return [before, foreign, body.subarray(at)];
    }
  }
}

function randomPieces(body: Uint8Array, random: Random): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < body.length;) {
    const length = 1 + random.below(MAX_PIECE_BYTES);
    pieces.push(body.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

function judge(
  { boundaries, one, wholeAt }: Subject,
  change: Change,
  base: Played,
  played: Played,
): string | undefined {
  switch (change.kind) {
    case "cut":
    case "bytes":
    case "random":
      return isDeepStrictEqual(played, base) ? undefined : "the events are not the same";
    case "unknown": {
      const { report: _, ...message } = played.message;
      const { report: __, ...expected } = base.message;
      if (!isDeepStrictEqual(message, expected)) return "an unknown event changed the message";
      return undefined;
    }
    case "error":
      return isKept(played.message, base.message) ?? explainFailure(played, "overloaded");
    case "truncate": {
      const lost = isKept(played.message, base.message);
      if (lost !== undefined) return lost;
      if (change.boundary >= wholeAt) {
        // An array that is not closed is not whole, whatever it holds.
        const cut = played.message.failure?.kind === "incomplete" && one.framing !== "json-array";
        return cut && one.expected.ok ? "is whole, and did not end so" : undefined;
      }
      // What follows the service's own error changes nothing any more.
      if (!one.expected.ok && played.message.failure?.kind !== "incomplete") {
        return played.message.stopReason === "error" ? undefined : "ended well in the middle";
      }
      return change.boundary < boundaries.length ? explainFailure(played, "incomplete") : undefined;
    }
  }
}

/** Exactly one error, of this kind, and it is the end. */
function explainFailure({ events, message }: Played, kind: string): string | undefined {
  const ends = events.filter((event) => /^(done|error)$/.test((event as { type: string }).type));
  if (ends.length !== 1) return `${ends.length} ends`;
  if (message.stopReason !== "error") return `ended with ${message.stopReason}`;
  return message.failure?.kind === kind ? undefined : `is ${message.failure?.kind}, not ${kind}`;
}

/** What came before the failure is there as it was: each block the same, or the beginning of it. */
function isKept(part: AssistantMessage, whole: AssistantMessage): string | undefined {
  for (const [index, block] of part.content.entries()) {
    if (!isBeginning(block, whole.content[index])) return `block ${index} is not what came`;
  }
  return undefined;
}

function isBeginning(part: AssistantContent, whole: AssistantContent | undefined): boolean {
  if (part.type === "text" && whole?.type === "text") return whole.text.startsWith(part.text);
  if (part.type === "thinking" && whole?.type === "thinking") {
    return whole.thinking.startsWith(part.thinking);
  }
  if (part.type === "toolCall" && whole?.type === "toolCall") return part.name === whole.name;
  return part.type === whole?.type;
}
