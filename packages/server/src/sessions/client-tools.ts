import type { AgentTool, AgentToolResult } from "@gyre/agent";
import { invalidRequest, type Connection, type Payload, ProtocolError } from "@gyre/protocol";
import type { SessionTools, ToolRegistration } from "./live-session.ts";
import type { SessionAgent } from "./session-agent.ts";
import { parseResult, type ToolSpec } from "./session-payloads.ts";

/** How many calls of one client may run at a time. */
export const MAX_CLIENT_CALLS = 1000;

export interface ClientToolsOptions {
  /** The stream of the session. */
  stream: string;
  /** The current agent of the session. */
  getAgent: () => SessionAgent;
  isBusy: () => boolean;
  /** The tools of the agent have changed. */
  onChange: () => void;
}

/**
 * The tools that clients register with a session. They run in the client: the server sends the call
 * and gets its result. A client that reconnects under its name keeps its tools, also if its old
 * connection still seems to be open. The tools of a client that is gone fail at once; they stay in
 * the list while a run goes on, so that the model sees the same tools, and are removed after it.
 */
export class ClientTools implements SessionTools {
  readonly #options: ClientToolsOptions;
  /** By the name of the client; without one, by its connection. */
  readonly #clients = new Map<string | Connection, ToolClient>();
  #agent: SessionAgent;

  constructor(options: ClientToolsOptions) {
    this.#options = options;
    this.#agent = options.getAgent();
  }

  /** Replaces the tools of this client; new ones are added at the end. */
  register(connection: Connection, { tools: specs, clientName }: ToolRegistration): void {
    const key = clientName ?? connection;
    const before = this.#clients.get(key);
    this.#assertFree(specs, before);
    const client = before ?? new ToolClient(this.#options.stream);
    this.#clients.set(key, client);
    client.connect(connection);
    const { added, removed } = client.register(specs);
    this.#change(removed, added);
  }

  /** `tool_update` and `tool_result`. */
  settleCall(connection: Connection, type: string, payload: Payload): void {
    for (const client of this.#clients.values()) {
      const call = client.isOn(connection) && client.findCall(payload);
      if (call) return type === "tool_update" ? update(call, payload) : finish(call, payload);
    }
    throw new ProtocolError("tool_not_found", "No call of that name waits for an answer.");
  }

  /** Fails the calls of a client that went away. */
  disconnect(connection: Connection): void {
    for (const client of this.#clients.values()) {
      if (client.isOn(connection)) client.disconnect();
    }
    this.removeDisconnected();
  }

  /** Removes the tools of clients that are gone, unless a run needs them. */
  removeDisconnected(): void {
    if (this.#options.isBusy()) return;
    const left = [...this.#clients].filter(([, client]) => !client.isConnected);
    for (const [key] of left) this.#clients.delete(key);
    this.#change(new Set(left.flatMap(([, { tools }]) => tools)), []);
  }

  /** Registers the tools again if the session has a new agent. */
  registerWithNewAgent(): void {
    const agent = this.#options.getAgent();
    if (agent === this.#agent) return;
    this.#agent = agent;
    const registered = [...this.#clients.values()].flatMap(({ tools }) => tools);
    if (registered.length > 0) agent.setTools([...agent.state.tools, ...registered]);
  }

  /** Fails all calls and forgets all clients. */
  close(): void {
    for (const client of this.#clients.values()) client.disconnect();
    this.#clients.clear();
  }

  #change(removed: ReadonlySet<AgentTool>, added: readonly AgentTool[]): void {
    if (removed.size === 0 && added.length === 0) return;
    const agent = this.#options.getAgent();
    const kept = agent.state.tools.filter((tool) => !removed.has(tool));
    agent.setTools([...kept, ...added]);
    this.#options.onChange();
  }

  #assertFree(specs: readonly ToolSpec[], own: ToolClient | undefined): void {
    const registered = [...this.#clients.values()].flatMap((each) =>
      each === own ? [] : each.tools,
    );
    const mine = new Set(own?.tools);
    const others = this.#options.getAgent().state.tools.filter((tool) => !mine.has(tool));
    const taken = new Set([...others, ...registered].map(({ name }) => name));
    for (const { name } of specs) {
      if (taken.has(name)) throw invalidRequest(`There is a tool "${name}" already.`);
      taken.add(name);
    }
  }
}

interface ClientCall {
  readonly onUpdate: (partial: AgentToolResult) => void;
  readonly resolve: (result: AgentToolResult) => void;
  readonly reject: (error: Error) => void;
}

/** One client with tools, over its connections. */
class ToolClient {
  readonly #stream: string;
  readonly #registered = new Map<string, { print: string; tool: AgentTool }>();
  readonly #calls = new Map<string, ClientCall>();
  #connection: Connection | undefined;

  constructor(stream: string) {
    this.#stream = stream;
  }

  get tools(): AgentTool[] {
    return [...this.#registered.values()].map(({ tool }) => tool);
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  isOn(connection: Connection): boolean {
    return this.#connection === connection;
  }

  connect(connection: Connection): void {
    if (this.#connection === connection) return;
    this.disconnect();
    this.#connection = connection;
  }

  disconnect(): void {
    this.#connection = undefined;
    const away = new Error("The client of this tool went away; the call may have had effects.");
    for (const call of [...this.#calls.values()]) call.reject(away);
  }

  /** A tool that is registered again without a change stays the same object. */
  register(specs: readonly ToolSpec[]): { added: AgentTool[]; removed: Set<AgentTool> } {
    const removed = new Set(this.tools);
    const added: AgentTool[] = [];
    const before = new Map(this.#registered);
    this.#registered.clear();
    for (const spec of specs) {
      const print = JSON.stringify(spec);
      const known = before.get(spec.name);
      const same = known?.print === print ? known.tool : undefined;
      const tool = same ?? this.#createTool(spec);
      if (same) removed.delete(same);
      else added.push(tool);
      this.#registered.set(spec.name, { print, tool });
    }
    return { added, removed };
  }

  findCall({ call }: Payload): ClientCall | undefined {
    return typeof call === "string" ? this.#calls.get(call) : undefined;
  }

  #createTool(spec: ToolSpec): AgentTool {
    return {
      ...spec,
      execute: (args, { id, signal, update: onUpdate }) =>
        this.#execute({ toolCallId: id, name: spec.name, arguments: args }, signal, onUpdate),
    };
  }

  async #execute(
    payload: Payload,
    signal: AbortSignal,
    onUpdate: (partial: AgentToolResult) => void,
  ): Promise<AgentToolResult> {
    if (!this.#connection) throw new Error("The client of this tool is not connected.");
    if (this.#calls.size >= MAX_CLIENT_CALLS) {
      throw new Error(`The client of this tool has ${MAX_CLIENT_CALLS} calls to answer already.`);
    }
    signal.throwIfAborted();
    // Never used again: a late answer on another connection finds no call.
    const call = globalThis.crypto.randomUUID();
    const cancel = (): void => this.#send("tool_cancel", { call });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        this.#calls.set(call, { onUpdate, resolve, reject });
        this.#send("tool_execute", { call, ...payload });
      });
    } finally {
      signal.removeEventListener("abort", cancel);
      this.#calls.delete(call);
    }
  }

  /** Sends a frame without a number: it is for one client, and numbered events are for all. */
  #send(type: string, payload: Payload): void {
    this.#connection?.send({ type, stream: this.#stream, payload });
  }
}

function update(call: ClientCall, { result }: Payload): void {
  call.onUpdate(parseResult(result, "of a tool"));
}

function finish(call: ClientCall, { error, result }: Payload): void {
  if (typeof error === "string") return call.reject(new Error(error));
  try {
    call.resolve(parseResult(result, "of a tool"));
  } catch (problem) {
    call.reject(new Error("The client of this tool sent an invalid result."));
    throw problem;
  }
}
