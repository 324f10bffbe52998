import { type Case, createRatio, type Line } from "../measure/lines.ts";
import { median } from "../measure/measure.ts";
import { memoryMb } from "../program/processes.ts";
import { Delays, type Kind, LoadProcess, PIECE_CHARS } from "./load.ts";

/**
 * A server of models over WebSockets and its clients, each in a process of its own, and
 * beside them, in turns within the same minutes, a bare `ws` server and its clients.
 */

/** Shorter, for a quick look. */
const SECONDS = Number(process.env["GYRE_WIRE_SECONDS"] ?? 60);
/** The time is cut into so many turns; the two wires take theirs one after the other. */
const TURNS = 12;
const CONNECTIONS = 10;
/** As many as one connection may have. */
const STREAMS_A_CONNECTION = 100;
const STREAMS = CONNECTIONS * STREAMS_A_CONNECTION;
/** Deltas a second on each stream. */
const RATE = 20;
/** Full before a third of the shortest run is over, so that memory can be seen to be flat. */
const LOAD_TAIL_EVENTS = 64;
/** What comes late, after the last of a turn was sent. */
const DRAIN_DEADLINE_MS = 20_000;
const LOOK_MS = 20;

const KINDS: readonly Kind[] = ["floor", "gyre"];

/** Both ends of one wire. */
class Wire {
  readonly server: LoadProcess;
  readonly clients: LoadProcess;
  /** Pieces of text that were sent, and what became of them. */
  sent = 0;
  got = 0;
  wrong = 0;

  private constructor(server: LoadProcess, clients: LoadProcess) {
    this.server = server;
    this.clients = clients;
  }

  static async start(kind: Kind, tailEvents: number): Promise<Wire> {
    const server = new LoadProcess("./server.js", [kind, String(tailEvents)]);
    const { port, token } = await server.ask<{ port: number; token: string }>("place");
    return new Wire(server, new LoadProcess("./clients.js", [kind, String(port), token]));
  }

  async open(connections: number, each: number): Promise<void> {
    await this.clients.ask("open", connections, each);
    while ((await this.server.ask<number>("speaking")) < connections * each) await later(LOOK_MS);
  }

  /** A turn at some rate on each stream; all that was sent has come when it ends. */
  async turn(rate: number, ms: number, into: Delays): Promise<void> {
    await this.#hear(this.server.ask<number>("pace", rate, ms), into);
  }

  async burst(pieces: number): Promise<void> {
    await this.#hear(this.server.ask<number>("burst", pieces), new Delays());
  }

  /** How many streams ended with another text than was sent. */
  async changed(): Promise<number> {
    const texts = this.clients.ask<string[]>("texts");
    const digests = await this.server.ask<string[]>("end");
    const got = await texts;
    return digests.filter((digest, nth) => digest !== got[nth]).length;
  }

  async cpuMs(): Promise<{ server: number; clients: number }> {
    const [server, clients] = [this.server, this.clients].map((end) => end.ask<number>("cpuMs"));
    return { server: (await server) ?? 0, clients: (await clients) ?? 0 };
  }

  end(): void {
    this.clients.end();
    this.server.end();
  }

  async #hear(speaking: Promise<number>, into: Delays): Promise<void> {
    this.sent += await speaking;
    const deadline = performance.now() + DRAIN_DEADLINE_MS;
    while (this.got < this.sent && performance.now() < deadline) {
      const look = await this.clients.ask<Look>("look");
      for (const [delayMs, times] of look.delays) into.add(delayMs, times);
      this.got = look.pieces;
      this.wrong = look.wrong;
      if (this.got < this.sent) await later(LOOK_MS);
    }
  }
}

interface Look {
  delays: [delayMs: number, times: number][];
  pieces: number;
  wrong: number;
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Both<T> = Record<Kind, T>;

async function both<T>(make: (kind: Kind) => Promise<T> | T): Promise<Both<T>> {
  return { floor: await make("floor"), gyre: await make("gyre") };
}

async function withBoth<T>(work: (wires: Both<Wire>) => Promise<T>): Promise<T> {
  const wires = await both((kind) => Wire.start(kind, LOAD_TAIL_EVENTS));
  try {
    for (const kind of KINDS) await wires[kind].open(CONNECTIONS, STREAMS_A_CONNECTION);
    // For the compilers to settle.
    for (const kind of KINDS) await wires[kind].turn(RATE, WARM_UP_MS, new Delays());
    return await work(wires);
  } finally {
    for (const kind of KINDS) wires[kind].end();
  }
}

const WARM_UP_MS = 3_000;
const ms = (value: number): string => `${value.toFixed(1)} ms`;

const load: Case = {
  name: "wire-load",
  run: () =>
    withBoth(async (wires) => {
      const p50 = await both((): number[] => []);
      const p99 = await both((): number[] => []);
      const cpu = await both((kind) => wires[kind].cpuMs());
      const bytes = await both((kind) => wires[kind].server.ask<number>("bytesWritten"));
      const sent = await both((kind) => wires[kind].sent);
      const rss: number[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        for (const kind of KINDS) {
          const delays = new Delays();
          await wires[kind].turn(RATE, (SECONDS / TURNS) * 1_000, delays);
          p50[kind].push(delays.percentile(0.5));
          p99[kind].push(delays.percentile(0.99));
        }
        if (turn === TURNS / 3 - 1 || turn === TURNS - 1) rss.push(await settledMb(wires.gyre));
      }
      const after = await both((kind) => wires[kind].cpuMs());
      const written = await both((kind) => wires[kind].server.ask<number>("bytesWritten"));
      const per = (kind: Kind, value: number): number => value / (wires[kind].sent - sent[kind]);
      const cost = (kind: Kind, end: "server" | "clients"): number =>
        per(kind, (after[kind][end] - cpu[kind][end]) * 1_000);
      const server = await both((kind) => cost(kind, "server"));
      const clients = await both((kind) => cost(kind, "clients"));
      const size = await both((kind) => per(kind, written[kind] - bytes[kind]));
      const [third = Number.NaN, last = Number.NaN] = rss;
      const changed = await wires.gyre.changed();
      const { got, wrong } = wires.gyre;
      const lost = wires.gyre.sent - got + wrong + changed;
      const deltas = `${((STREAMS * RATE) / 1_000).toFixed(0)}k deltas/s on ${STREAMS} streams`;
      const usual = (values: Both<number[]>): Promise<Both<number>> =>
        both((kind) => median(values[kind]));
      return [
        createRatio(`${deltas}, ${SECONDS} s: delay, p99`, await usual(p99), ms, 2),
        createRatio("the same, p50", await usual(p50), ms, 2),
        line(`the same, lost, doubled or changed, of ${wires.gyre.sent}`, lost, 0, ""),
        {
          what: "the same, memory of the server (RSS, tidied up): at a third | at the end",
          floor: `${third.toFixed(0)} MB`,
          gyre: `${last.toFixed(0)} MB`,
          measured: last / third,
          limit: 1.25,
          unit: "x",
        },
        createRatio("the same, CPU of the server a delta", server, us, 4),
        createRatio("the same, CPU of the clients a delta", clients, us, 4),
        createRatio(`bytes on the wire for a delta of ${PIECE_CHARS}`, size, whole, 1.1),
      ];
    }),
};

/** What the server takes once it has collected: what it had no need to is no growth. */
async function settledMb(wire: Wire): Promise<number> {
  await wire.server.ask("memory");
  return memoryMb(wire.server.pid, "Rss");
}

const us = (value: number): string => `${value.toFixed(1)} us`;
const whole = (value: number): string => value.toFixed(0);

function line(what: string, measured: number, limit: number, unit: string): Line {
  const shown = measured.toFixed(measured < 10 && unit !== "" ? 1 : 0);
  return { what, gyre: `${shown}${unit}`, measured, limit, unit };
}

const MAX_P99_MS = 50;
const STEP = 1.2;
const MAX_STEPS = 24;
const STEP_MS: number = Math.max(1_000, (SECONDS / 15) * 1_000);
/** A step that another process on the machine disturbed is given another try. */
const TRIES = 3;

const ramp: Case = {
  name: "wire-ramp",
  run: () =>
    withBoth(async (wires) => {
      const held = await both(() => 0);
      const over = new Set<Kind>();
      for (let step = 0, rate = RATE; step < MAX_STEPS && over.size < 2; step++, rate *= STEP) {
        for (const kind of KINDS) {
          if (over.has(kind)) continue;
          if (await holds(wires[kind], rate)) held[kind] = (rate * STREAMS) / 1_000;
          else over.add(kind);
        }
      }
      const what = `most deltas a second with p99 below ${MAX_P99_MS} ms, ${STREAMS} streams`;
      const line = createRatio(what, held, (thousands) => `${thousands.toFixed(0)}k`, 3);
      return [{ ...line, measured: held.floor / held.gyre }];
    }),
};

async function holds(wire: Wire, rate: number): Promise<boolean> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const delays = new Delays();
    await wire.turn(rate, STEP_MS, delays);
    if (delays.percentile(0.99) <= MAX_P99_MS) return true;
  }
  return false;
}

const KB = 1_000;
const TAIL_EVENTS = 4_096;
/** Before the first delta come the start of the message and that of its text. */
const TAIL_PIECES = TAIL_EVENTS - 2;
const RESUMES = 20;
const IDLE_CONNECTIONS = 500;

async function withOne<T>(work: (wire: Wire) => Promise<T>): Promise<T> {
  const wire = await Wire.start("gyre", TAIL_EVENTS);
  try {
    return await work(wire);
  } finally {
    wire.end();
  }
}

const idle: Case = {
  name: "wire-memory",
  run: () =>
    withOne(async (wire) => {
      const memory = (): Promise<number> => wire.server.ask<number>("memory");
      const atFirst = await memory();
      await wire.clients.ask("idle", IDLE_CONNECTIONS);
      const connected = await memory();
      await wire.open(1, STREAMS_A_CONNECTION);
      const streaming = await memory();
      await wire.burst(TAIL_PIECES);
      const full = await memory();
      const each = (bytes: number, count: number): number => bytes / count / KB;
      const stream = `a stream whose tail of ${TAIL_EVENTS} events is full, memory`;
      return [
        line("an idle connection, memory", each(connected - atFirst, IDLE_CONNECTIONS), 50, " KB"),
        line(
          "an idle stream, memory",
          each(streaming - connected, STREAMS_A_CONNECTION),
          25,
          " KB",
        ),
        line(stream, each(full - streaming, STREAMS_A_CONNECTION), 1_000, " KB"),
      ];
    }),
};

const resume: Case = {
  name: "wire-resume",
  run: () =>
    withOne(async (wire) => {
      await wire.clients.ask("leave");
      while ((await wire.server.ask<number>("speaking")) === 0) await later(LOOK_MS);
      await wire.server.ask("burst", TAIL_PIECES);
      const times: number[] = [];
      for (let nth = 0; nth < RESUMES; nth++) {
        times.push(await wire.clients.ask<number>("resumeMs", TAIL_EVENTS));
      }
      const first = ms(times[0] ?? Number.NaN);
      const what = `from no connection to the last of ${TAIL_EVENTS} missed events, median (first ${first})`;
      return [line(what, median(times), 100, " ms")];
    }),
};

export const wireCases: readonly Case[] = [load, ramp, idle, resume];
