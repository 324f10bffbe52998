import type { AgentEvent, AgentTool } from "@gyre/agent";
import { manualClock } from "@gyre/ai/testing";
import {
  type Connect,
  type Transport,
  type TransportHandler,
  createTransportPair,
  WireClient,
  type WireClientOptions,
  WireServer,
  type WireServerOptions,
} from "@gyre/protocol";
import { SessionService, type SessionServiceOptions } from "../sessions/session-service.ts";
import { ScriptedHost, type ScriptedHostOptions } from "./scripted-host.ts";

/** A server with sessions in this process, and clients of it. */
export interface RemoteWorld {
  host: ScriptedHost;
  server: WireServer;
  errors: unknown[];
  /** A client of its own; `cuts`: after how many frames each of its connections breaks. */
  client: (cuts?: readonly number[]) => CutClient;
}

export interface CutClient {
  client: WireClient;
  /** Breaks the connection that there is. */
  cut: () => void;
  /** While it is held there is no new connection. */
  hold: () => void;
  release: () => void;
  connections: () => number;
}

export function createRemoteWorld(
  options: ScriptedHostOptions = {},
  more: SessionServiceOptions & WireServerOptions = {},
): RemoteWorld {
  const host = new ScriptedHost(options);
  const errors: unknown[] = [];
  const all = { onError: (error: unknown) => void errors.push(error), ...more };
  const server = new WireServer([new SessionService(host, all)], all);
  return { host, server, errors, client: (cuts) => createCutClient(server, cuts) };
}

function createCutClient(server: WireServer, cuts: readonly number[] = []): CutClient {
  const left = [...cuts];
  let made = 0;
  let current: CutTransport | undefined;
  let gate: Promise<void> = Promise.resolve();
  let release: () => void = () => {};
  const connect: Connect = async () => {
    await gate;
    made++;
    const [near, far] = createTransportPair();
    server.serve(far);
    current = new CutTransport(near, left.shift() ?? Infinity);
    return current;
  };
  return {
    client: new WireClient({ connect, ...skipDelays() }),
    cut: () => current?.cut(),
    hold: () => {
      gate = new Promise((resolve) => (release = resolve));
    },
    release: () => release(),
    connections: () => made,
  };
}

/** Time stands still, except for the delays before a client reconnects. */
function skipDelays(): Pick<WireClientOptions, "clock" | "random" | "onState"> {
  const clock = manualClock();
  return {
    clock,
    random: () => 0,
    onState: (state) => {
      if (state.type === "waiting") void clock.advance(state.delayMs);
    },
  };
}

/** Breaks after so many frames, either way; the one that breaks it is lost. */
class CutTransport implements Transport {
  readonly #inner: Transport;
  #left: number;
  #handler: TransportHandler | undefined;
  #isCut = false;

  constructor(inner: Transport, left: number) {
    this.#inner = inner;
    this.#left = left;
  }

  send(...[frame]: Parameters<Transport["send"]>): void | Promise<void> {
    return this.#passes() ? this.#inner.send(frame) : undefined;
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#inner.receive({
      onFrame: (frame) => {
        if (this.#passes()) handler.onFrame(frame);
      },
      onFault: (error) => handler.onFault(error),
      onClose: () => this.cut(),
    });
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    void this.#inner.close();
    this.#handler?.onClose(new Error("cut"));
  }

  #passes(): boolean {
    if (this.#isCut) return false;
    if (this.#left-- > 0) return true;
    this.cut();
    return false;
  }
}

export function createTestTool(
  name: string,
  execute: AgentTool["execute"] = () => name,
): AgentTool {
  return { name, description: `It is ${name}.`, parameters: { type: "object" }, execute };
}

/** Events in a form to compare: without partial messages, which are live. */
export function toComparable(events: readonly AgentEvent[]): unknown[] {
  const plain = events.map((event) => {
    if (event.type === "message_start") return { ...event, message: event.message.role };
    if (event.type !== "message_update") return event;
    const { partial: _, ...rest } = { partial: undefined, ...event.assistantMessageEvent };
    return rest;
  });
  return JSON.parse(JSON.stringify(plain)) as unknown[];
}
