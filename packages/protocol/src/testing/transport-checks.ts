import { systemClock } from "@gyre/ai";
import type { Envelope } from "../frames/envelope.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";

/** Two ends of a transport, and what can be done to the way between them. */
export interface TransportEnds {
  one: Transport;
  other: Transport;
  /** Puts a text that may be no frame on the way from `one` to `other`. */
  inject?: (text: string) => void | Promise<void>;
  /** Breaks the way without a word. */
  cut?: () => void | Promise<void>;
  /** Nothing gets through while it is stalled. */
  stall?: (isStalled: boolean) => void;
  /** Frees what is left. */
  end?: () => Promise<void>;
}

export interface TransportTraits {
  /** Opens a fresh pair of ends, with `maxFrameBytes` as the limit of both. */
  open: (maxFrameBytes: number) => Promise<TransportEnds>;
  /** What it does not have: a limit of its own for frames, or one of the hooks. */
  lacks?: readonly ("limit" | "inject" | "cut" | "stall")[];
  /** A frame that is too large ends it; else it is skipped. */
  endsAtTooLarge?: boolean;
}

/** One promise of a transport. `run` rejects where it is broken. */
export interface TransportCheck {
  title: string;
  run: () => Promise<void>;
}

const LIMIT_BYTES = 2 * 1024 * 1024;
const MEGABYTE = 1_000_000;
const MANY_FRAMES = 500;
const STALL_FRAME_CHARS = 256 * 1024;
/** Operating systems buffer some megabytes by themselves, but never this much. */
const MAX_STALLED_FRAMES = 256;
/** A promise that is pending after so many turns of the event loop is one to wait for. */
const PATIENT_TURNS = 50;
/** Each is of another width in UTF-8, or would end a line for a careless reader. */
const LETTERS = ["a", "é", "€", "😀", "\u2028", "\u0085", "\n", "\r", '"', "\0"];

/**
 * What every transport keeps, as checks for any test runner:
 * `for (const { title, run } of transportChecks({ open })) it(title, run)`.
 * Real time is not used; a check that hangs is for the runner to end.
 */
export function transportChecks({
  open,
  lacks = [],
  endsAtTooLarge = false,
}: TransportTraits): TransportCheck[] {
  const checks: TransportCheck[] = [];
  const add = (title: string, check: Check): void => {
    checks.push({ title, run: () => withEnds(open, check) });
  };
  const both = (title: string, check: Check): void => {
    add(`${title} (there)`, check);
    add(`${title} (back)`, (ends) => check({ ...ends, one: ends.other, other: ends.one }));
  };
  both("frames arrive in order, whole and once", inOrder);
  both("a frame of 1 MB arrives", oneMegabyte);
  both("close: what was sent before arrives, then both ends are notified once", close);
  add("close: twice is once, and frames after it are dropped", closeTwice);
  add("close: of both ends at once", closeBoth);
  if (!lacks.includes("limit")) {
    both("too_large: is thrown by send, and the next frame arrives", sendTooLarge);
  }
  if (!lacks.includes("stall")) {
    both("a slow reader makes its sender wait, and gets everything", slowReader);
  }
  if (!lacks.includes("inject")) {
    add("invalid_request: garbage between frames is reported, and the next frame arrives", garbage);
    if (endsAtTooLarge)
      add("too_large: a frame above the limit is reported, and ends the connection", endTooLarge);
    else add("too_large: a frame above the limit is reported and skipped", skipTooLarge);
  }
  if (!lacks.includes("cut")) {
    add("a connection that is cut ends on both sides, and no caller waits for it", cut);
  }
  return checks;
}

async function inOrder({ one, other }: HeardEnds): Promise<void> {
  const frames = Array.from({ length: MANY_FRAMES }, (_, at) => textFrame(at, (at * 37) % 1500));
  for (const frame of frames) await one.transport.send(frame);
  await other.until(() => other.frames.length >= frames.length);
  same(other.frames, frames);
  same(other.faults, []);
}

async function oneMegabyte({ one, other }: HeardEnds): Promise<void> {
  const frame = bigFrame(1, MEGABYTE);
  await one.transport.send(frame);
  await other.until(() => other.frames.length > 0);
  same(other.frames, [frame]);
}

async function close({ one, other }: HeardEnds): Promise<void> {
  const frames = Array.from({ length: 20 }, (_, at) => textFrame(at, 1000));
  for (const frame of frames) void one.transport.send(frame);
  await one.transport.close();
  await other.until(() => other.ends > 0);
  await one.until(() => one.ends > 0);
  await turns();
  same(other.frames, frames);
  same([one.ends, other.ends], [1, 1]);
}

async function closeTwice({ one, other }: HeardEnds): Promise<void> {
  await one.transport.close();
  await one.transport.close();
  await other.until(() => other.ends > 0);
  await one.transport.send(textFrame(1, 1));
  await other.transport.send(textFrame(1, 1));
  await other.transport.close();
  await turns();
  same([one.ends, other.ends, one.frames.length, other.frames.length], [1, 1, 0, 0]);
}

async function closeBoth({ one, other }: HeardEnds): Promise<void> {
  await Promise.all([one.transport.close(), other.transport.close()]);
  await one.until(() => one.ends > 0);
  await other.until(() => other.ends > 0);
  await turns();
  same([one.ends, other.ends], [1, 1]);
}

async function sendTooLarge({ one, other }: HeardEnds): Promise<void> {
  const frame = bigFrame(1, LIMIT_BYTES);
  let code: unknown;
  try {
    await one.transport.send(frame);
  } catch (error) {
    code = error instanceof ProtocolError ? error.code : error;
  }
  same(code, "too_large");
  await one.transport.send(textFrame(2, 10));
  await other.until(() => other.frames.length > 0);
  same(other.frames, [textFrame(2, 10)]);
}

async function garbage({ one, other, inject }: HeardEnds): Promise<void> {
  if (!inject) throw missing("inject");
  await one.transport.send(textFrame(1, 10));
  await other.until(() => other.frames.length === 1);
  for (const text of ["nope", "[]", '{"v":1}', '"\\ud800"']) await inject(text);
  await other.until(() => other.faults.length === 4);
  await one.transport.send(textFrame(2, 10));
  await other.until(() => other.frames.length === 2);
  same(other.frames, [textFrame(1, 10), textFrame(2, 10)]);
  same(new Set(other.faults), new Set(["invalid_request"]));
  same(other.ends, 0);
}

const TOO_LARGE = `{"v":1,"type":"x","id":"m","payload":{"text":"${"x".repeat(LIMIT_BYTES)}"}}`;

async function endTooLarge({ other, inject }: HeardEnds): Promise<void> {
  if (!inject) throw missing("inject");
  await inject(TOO_LARGE);
  await other.until(() => other.ends > 0);
  same([other.faults, other.frames], [["too_large"], []]);
}

async function skipTooLarge({ one, other, inject }: HeardEnds): Promise<void> {
  if (!inject) throw missing("inject");
  await inject(TOO_LARGE);
  await other.until(() => other.faults.length > 0);
  await one.transport.send(textFrame(2, 10));
  await other.until(() => other.frames.length > 0);
  same([other.faults, other.frames, other.ends], [["too_large"], [textFrame(2, 10)], 0]);
}

async function cut({ one, other, cut: cutWay, stall }: HeardEnds): Promise<void> {
  if (!cutWay) throw missing("cut");
  stall?.(true);
  const waits: (void | Promise<void>)[] = [];
  for (let at = 0; at < 8; at++) {
    waits.push(one.transport.send(bigFrame(at, STALL_FRAME_CHARS)));
    waits.push(other.transport.send(bigFrame(at, STALL_FRAME_CHARS)));
  }
  await cutWay();
  await one.until(() => one.ends > 0);
  await other.until(() => other.ends > 0);
  for (const wait of waits) await wait;
  await one.transport.send(textFrame(1, 1));
  await Promise.all([one.transport.close(), other.transport.close()]);
  same([one.ends, other.ends], [1, 1]);
}

async function slowReader({ one, other, stall }: HeardEnds): Promise<void> {
  if (!stall) throw missing("stall");
  stall(true);
  const frames: Envelope[] = [];
  let lag: Promise<void> | undefined;
  while (!lag) {
    if (frames.length > MAX_STALLED_FRAMES) {
      throw new Error(`${frames.length} frames went out, and no sender was asked to wait.`);
    }
    const frame = bigFrame(frames.length, STALL_FRAME_CHARS);
    frames.push(frame);
    const wait = one.transport.send(frame);
    if (wait && (await isPending(wait))) lag = wait;
  }
  stall(false);
  await lag;
  await other.until(() => other.frames.length >= frames.length);
  same(other.frames, frames);
}

/** An end, and what was heard there. */
class HeardEnd {
  readonly transport: Transport;
  readonly frames: Envelope[] = [];
  readonly faults: string[] = [];
  ends = 0;
  #waiting: (() => void)[] = [];

  constructor(transport: Transport) {
    this.transport = transport;
    transport.receive({
      onFrame: (frame) => this.#note(() => this.frames.push(frame)),
      onFault: ({ code }) => this.#note(() => this.faults.push(code)),
      onClose: () => this.#note(() => this.ends++),
    });
  }

  /** Settles when it is so. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #note(what: () => unknown): void {
    what();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

type HeardEnds = Omit<TransportEnds, "one" | "other"> & { one: HeardEnd; other: HeardEnd };

type Check = (ends: HeardEnds) => Promise<void>;

async function withEnds(open: TransportTraits["open"], check: Check): Promise<void> {
  const ends = await open(LIMIT_BYTES);
  try {
    await check({ ...ends, one: new HeardEnd(ends.one), other: new HeardEnd(ends.other) });
  } finally {
    ends.stall?.(false);
    await Promise.all([ends.one.close(), ends.other.close()]);
    await ends.end?.();
  }
}

function missing(hook: string): Error {
  return new Error(`"${hook}" is needed for this check. Say in "lacks" that there is none.`);
}

function textFrame(at: number, chars: number): Envelope {
  const text = Array.from({ length: chars }, (_, i) => LETTERS[(at + i) % LETTERS.length]).join("");
  return { v: 1, type: "x", id: `m_${at}`, ts: at, stream: "s", seq: at + 1, payload: { text } };
}

function bigFrame(at: number, chars: number): Envelope {
  return { ...textFrame(at, 0), payload: { text: "x".repeat(chars) } };
}

async function turns(count = PATIENT_TURNS): Promise<void> {
  for (let at = 0; at < count; at++) await systemClock.turn();
}

async function isPending(wait: Promise<void>): Promise<boolean> {
  return Promise.race([wait.then(() => false), turns().then(() => true)]);
}

function same(found: unknown, wanted: unknown): void {
  const [one, other] = [shown(found), shown(wanted)];
  if (one === other) return;
  let at = 0;
  while (one[at] === other[at]) at++;
  const from = Math.max(0, at - 40);
  throw new Error(
    `Found ${one.slice(from, at + 80)}, wanted ${other.slice(from, at + 80)} (at character ${at}).`,
  );
}

function shown(value: unknown): string {
  return JSON.stringify(value instanceof Set ? [...value] : value) ?? "nothing";
}
