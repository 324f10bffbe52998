import { createHash, randomUUID } from "node:crypto";
import type { AgentTool } from "@gyre/agent";
import {
  type ClientAnswer,
  type ClientCall,
  type ClientToolSpec,
  type Runs,
  toAnswerKey,
  type ToolClientRow,
} from "@gyre/durable";
import { type Connection, invalidRequest, type Payload, ProtocolError } from "@gyre/protocol";
import type { SessionTools, ToolRegistration } from "../sessions/live-session.ts";
import { parseResult } from "../sessions/session-payloads.ts";
import { refuseOnError } from "./refusal.ts";
import type { SessionMirror } from "./session-mirror.ts";
import type { ToolLeases } from "./tool-leases.ts";

/** A little later than the end of a client's time. */
const SWEEP_LATE_MS = 50;

export interface DurableToolsOptions {
  readonly runs: Runs;
  /** The session. */
  readonly id: string;
  readonly view: SessionMirror;
  readonly leases: ToolLeases;
  /** Settles when all that was stored before is in the view. */
  readonly synchronize: () => Promise<void>;
  readonly onError: (error: unknown, where: string) => void;
}

/** A client that is connected to this server. */
interface HeldClient {
  readonly id: string;
  readonly holder: string;
  readonly connection: Connection;
  readonly keepsCalls: boolean;
  /** Calls that were sent, and are not answered. */
  readonly sent: Set<string>;
}

/**
 * The tools that clients register with a session of a store. Their calls are entries of the log,
 * from wherever the run executes; this server passes those on whose client is connected to it, and
 * puts the answers into the inbox. A client that comes back in time, here or at another server,
 * answers the calls that it was given.
 */
export class DurableTools implements SessionTools {
  readonly #options: DurableToolsOptions;
  readonly #held = new Map<string, HeldClient>();
  #changes = 0;
  #sweepTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DurableToolsOptions) {
    this.#options = options;
  }

  register(connection: Connection, registration: ToolRegistration): Promise<Payload> {
    return refuseOnError(() => this.#register(connection, registration));
  }

  /** A client that knows the name of a call has got it from a server, this one or another. */
  settleCall(_connection: Connection, type: string, payload: Payload): Promise<void> {
    return refuseOnError(() => this.#settle(type, payload));
  }

  disconnect(connection: Connection): void {
    for (const client of [...this.#held.values()]) {
      if (client.connection === connection) this.#leave(client);
    }
  }

  /** Clients come back, to another server. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#sweepTimer);
    for (const { holder } of this.#held.values()) this.#options.leases.remove(holder);
    this.#held.clear();
  }

  /** Reads the tools of all clients where they have changed. */
  async load(changes: number): Promise<void> {
    if (changes === this.#changes) return;
    await this.#read();
    this.#changes = changes;
  }

  /** A call is in the log. */
  pass(call: ClientCall): void {
    const client = this.#held.get(call.client);
    if (!client || client.sent.has(call.call)) return;
    // The run does not wait for calls that an earlier connection had.
    if (client.holder !== call.holder && !client.keepsCalls) return;
    const { call: name, toolCallId, name: tool, arguments: args } = call;
    client.sent.add(name);
    this.#send(client, "tool_execute", { call: name, toolCallId, name: tool, arguments: args });
  }

  /** The run does not wait for a call any more: it was canceled, or is over. */
  cancel({ call, client: id }: ClientCall): void {
    const client = this.#held.get(id);
    if (client?.sent.delete(call)) this.#send(client, "tool_cancel", { call });
  }

  async #register(connection: Connection, given: ToolRegistration): Promise<Payload> {
    const { runs, id: session, leases } = this.#options;
    const { tools, calls } = given;
    const id = this.#identify(connection, given.clientName);
    const before = this.#held.get(id);
    this.#assertFree(tools, id);
    const client: HeldClient = {
      ...{ id, connection, holder: randomUUID(), keepsCalls: calls !== undefined },
      sent: new Set(calls ?? (before?.connection === connection ? before.sent : [])),
    };
    // Before it is stored: a call may come at once.
    this.#hold(client);
    const isGone = tools.length === 0 && client.sent.size === 0;
    const { holder, keepsCalls } = client;
    try {
      const outcome = await runs.store.toolClients.register({
        ...{ session, client: id, holder, keepsCalls, tools, graceMs: leases.graceMs },
      });
      if (outcome === "not found") throw invalidRequest(`There is no session "${session}".`);
      if (outcome !== "registered") throw nameTaken(outcome.taken);
      if (isGone) await runs.store.toolClients.remove({ session, client: id, holder });
    } catch (error) {
      if (this.#held.get(id) === client) this.#release(client);
      if (before && !connection.isClosed) this.#hold(before);
      throw error;
    }
    if (isGone) this.#release(client);
    await this.#options.synchronize();
    await this.#catchUp(client);
    return { keepsCalls: true };
  }

  /** Calls that the client has not got are sent; those that are over, and that it has, are canceled. */
  async #catchUp(client: HeldClient): Promise<void> {
    const { view, runs } = this.#options;
    const open = view.listClientCalls().filter((call) => call.client === client.id);
    for (const call of [...client.sent]) {
      if (open.some((each) => each.call === call)) continue;
      client.sent.delete(call);
      this.#send(client, "tool_cancel", { call });
    }
    for (const call of open) {
      if (client.sent.has(call.call)) continue;
      const isAnswered = await runs.store.hasItem(call.run, toAnswerKey(call.call));
      if (!isAnswered) this.pass(call);
    }
  }

  /** What is stored, and read by others, is no secret of the client. */
  #identify(connection: Connection, name: string | undefined): string {
    if (name !== undefined) return createHash("sha256").update(name).digest("hex").slice(0, 32);
    const known = [...this.#held.values()].find((each) => each.connection === connection);
    return known?.id ?? randomUUID();
  }

  #assertFree(tools: readonly ClientToolSpec[], client: string): void {
    const taken = new Set(this.#options.view.listToolNames(client));
    for (const { name } of tools) {
      if (taken.has(name)) throw nameTaken(name);
      taken.add(name);
    }
  }

  #hold(client: HeldClient): void {
    const before = this.#held.get(client.id);
    if (before) this.#release(before);
    this.#held.set(client.id, client);
    this.#options.leases.add(client.holder);
  }

  #release(client: HeldClient): void {
    this.#held.delete(client.id);
    this.#options.leases.remove(client.holder);
  }

  /** One that answers only on the connection that it was asked on is gone with it. */
  #leave(client: HeldClient): void {
    this.#release(client);
    if (client.keepsCalls) return;
    const { runs, id: session, onError } = this.#options;
    const { id, holder } = client;
    runs.store.toolClients
      .remove({ session, client: id, holder })
      .catch((error: unknown) => onError(error, "removing client tools"));
  }

  async #settle(type: string, payload: Payload): Promise<void> {
    const { view } = this.#options;
    const name = String(payload["call"]);
    if (!view.findClientCall(name)) await this.#options.synchronize();
    const call = view.findClientCall(name);
    if (!call) throw notWaiting();
    if (type === "tool_update") {
      const { toolCallId, name: toolName, arguments: args } = call;
      const partialResult = parseResult(payload["result"], "of a tool");
      view.showUpdate({ toolCallId, toolName, args: { ...args }, partialResult });
      return;
    }
    try {
      await this.#answer(call, readAnswer(name, payload));
    } catch (error) {
      if (error instanceof ProtocolError && error.code === "invalid_request") {
        await this.#answer(call, {
          ...{ call: name, error: "The client of this tool sent an invalid result." },
        });
      }
      throw error;
    }
    this.#held.get(call.client)?.sent.delete(name);
  }

  /** The first answer counts; it is the same one, where it is sent again. */
  async #answer({ run, call }: ClientCall, answer: ClientAnswer): Promise<void> {
    const { store } = this.#options.runs;
    const data = JSON.stringify(answer);
    const outcome = await store.send({ run, kind: "answer", data, key: toAnswerKey(call) });
    if (outcome !== "sent" && outcome !== "known") throw notWaiting();
  }

  async #read(): Promise<void> {
    const { runs, id, view } = this.#options;
    const rows = await runs.store.toolClients.read(id);
    view.setClientTools(rows.map(readTools));
    this.#sweepLater(rows);
  }

  /** Any server that follows the session removes clients whose time is over. */
  #sweepLater(rows: readonly ToolClientRow[]): void {
    clearTimeout(this.#sweepTimer);
    if (rows.length === 0 || this.#isClosed) return;
    const { runs, id, onError } = this.#options;
    const leftMs = Math.min(...rows.map((row) => row.leftMs));
    this.#sweepTimer = setTimeout(() => {
      runs.store.toolClients
        .sweep(id)
        .then(() => this.#read())
        .catch((error: unknown) => {
          if (!this.#isClosed) onError(error, "removing client tools");
        });
    }, leftMs + SWEEP_LATE_MS).unref();
  }

  /** Sends a frame without a number: it is for one client, and numbered events are for all. */
  #send({ connection }: HeldClient, type: string, payload: Payload): void {
    connection.send({ type, stream: this.#options.id, payload });
  }
}

function readTools({ client, tools }: ToolClientRow): {
  client: string;
  tools: readonly Pick<AgentTool, "name" | "description">[];
} {
  const specs: ClientToolSpec[] = JSON.parse(tools);
  return { client, tools: specs.map(({ name, description }) => ({ name, description })) };
}

function readAnswer(call: string, { error, result }: Payload): ClientAnswer {
  if (typeof error === "string") return { call, error };
  return { call, result: parseResult(result, "of a tool") };
}

function nameTaken(name: string): ProtocolError {
  return invalidRequest(`There is a tool "${name}" already.`);
}

function notWaiting(): ProtocolError {
  return new ProtocolError("tool_not_found", "No call of that name waits for an answer.");
}
