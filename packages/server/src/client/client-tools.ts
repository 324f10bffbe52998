import type { AgentTool, AgentToolResult, ToolHost } from "@gyre/agent";
import { errorMessage, isRecord, toJsonSchema, validateToolArguments } from "@gyre/ai";
import { type Payload, withoutUndefined } from "@gyre/protocol";

/** Sends a request on the stream of the session. */
export type Ask = (type: string, payload: Payload) => Promise<Payload>;

interface RunningCall {
  readonly controller: AbortController;
  /** An update is being sent; the next one waits for its answer. */
  isSending: boolean;
  /** The newest update that waits. */
  next: AgentToolResult | undefined;
}

/**
 * The tools that a client registers with its session: they run here, and the server gets results.
 * It is one to the server over all of its connections.
 */
export class RegisteredTools {
  readonly #ask: Ask;
  readonly #report: (error: unknown, where: string) => void;
  readonly #clientName: string = globalThis.crypto.randomUUID();
  readonly #calls = new Map<string, RunningCall>();
  /** Whether the server waits for calls whose connection is gone. */
  #keepsCalls = false;
  #tools: ReadonlyMap<string, AgentTool> = new Map();

  constructor(ask: Ask, report: (error: unknown, where: string) => void) {
    this.#ask = ask;
    this.#report = report;
  }

  /** Registers tools in place of those before. Throws on a schema that has no JSON form. */
  async register(tools: readonly AgentTool[]): Promise<void> {
    const before = this.#tools;
    const registered = new Map(tools.map((tool) => [tool.name, tool]));
    const payload = this.#createRegistration(tools);
    // Set before the request: calls may arrive before its answer.
    this.#tools = registered;
    try {
      await this.#register(payload);
    } catch (error) {
      if (this.#tools === registered) this.#tools = before;
      throw error;
    }
  }

  /** Removes all tools from the session, and answers no more calls. */
  async leave(): Promise<void> {
    if (this.#tools.size === 0) return;
    this.cancelAll();
    await this.register([]).catch((error: unknown) => this.#report(error, "removing tools"));
  }

  /**
   * Registers the tools again on a new connection. The calls of the old one have failed, or the
   * server waits for them.
   */
  reconnect(): void {
    if (!this.#keepsCalls) this.cancelAll();
    if (this.#tools.size === 0) return;
    const payload = this.#createRegistration([...this.#tools.values()]);
    this.#register(payload).catch((error: unknown) => {
      this.#report(error, "registering tools again");
    });
  }

  async #register(payload: Payload): Promise<void> {
    const { keepsCalls } = await this.#ask("tool_register", payload);
    this.#keepsCalls = keepsCalls === true;
  }

  /** Whether the session keeps the tools of a client that has left. */
  get staysRegistered(): boolean {
    return this.#keepsCalls && this.#tools.size > 0;
  }

  cancelAll(): void {
    for (const { controller } of this.#calls.values()) controller.abort();
    this.#calls.clear();
  }

  /** `tool_execute` and `tool_cancel`; whether it was one of these. */
  take(type: string, payload: Payload): boolean {
    const { call } = payload;
    if (type === "tool_execute" && typeof call === "string") void this.#run(call, payload);
    else if (type === "tool_cancel") this.#calls.get(String(call))?.controller.abort();
    else return false;
    return true;
  }

  #createRegistration(tools: readonly AgentTool[]): Payload {
    const calls = [...this.#calls.keys()];
    return { client: this.#clientName, tools: tools.map(toToolSpec), calls };
  }

  async #run(call: string, payload: Payload): Promise<void> {
    // It was sent again, as the connection that it came by is gone.
    if (this.#calls.has(call)) return;
    const running: RunningCall = {
      controller: new AbortController(),
      isSending: false,
      next: undefined,
    };
    this.#calls.set(call, running);
    const outcome = await this.#execute(call, payload, running);
    // The server has failed the calls of a connection that is gone.
    if (this.#calls.get(call) !== running) return;
    try {
      await this.#ask("tool_result", { call, ...outcome });
    } catch (error) {
      // Without an answer the call would wait for its timeout.
      await this.#ask("tool_result", { call, error: errorMessage(error) }).catch(() => {});
    } finally {
      // It is known until the server has its answer, so that it is not run again.
      if (this.#calls.get(call) === running) this.#calls.delete(call);
    }
  }

  async #execute(call: string, payload: Payload, running: RunningCall): Promise<Payload> {
    const { toolCallId, name, arguments: args } = payload;
    const tool = this.#tools.get(String(name));
    if (!tool) return { error: `There is no tool "${String(name)}" at the client.` };
    try {
      // The server has the schema as JSON; a library may make more of the arguments than that.
      const checked = await validateToolArguments(tool, isRecord(args) ? args : {});
      if (!checked.ok) return { error: checked.error };
      const given = await tool.execute(checked.value, {
        id: String(toolCallId),
        signal: running.controller.signal,
        update: (partial) => this.#sendUpdate(call, running, partial),
        host: ALONE,
        messages: [],
      });
      return { result: typeof given === "string" ? createTextResult(given) : given };
    } catch (error) {
      return { error: errorMessage(error) };
    }
  }

  /** Sends one update at a time; of those that a tool reports meanwhile, the newest follows. */
  #sendUpdate(call: string, running: RunningCall, result: AgentToolResult): void {
    if (this.#calls.get(call) !== running) return;
    if (running.isSending) {
      running.next = result;
      return;
    }
    running.isSending = true;
    const sendNext = (): void => {
      running.isSending = false;
      const { next } = running;
      running.next = undefined;
      if (next) this.#sendUpdate(call, running, next);
    };
    this.#ask("tool_update", { call, result }).then(sendNext, sendNext);
  }
}

/** A client tool cannot call other tools: the run is in another process. */
const ALONE: ToolHost = {
  call: (name) =>
    Promise.resolve({
      ...createTextResult(`Tool "${name}" was not run: a client tool cannot call others.`),
      isError: true,
    }),
};

function createTextResult(text: string): AgentToolResult {
  return { content: [{ type: "text", text }] };
}

function toToolSpec(tool: AgentTool): Payload {
  const { name, description, concurrent, timeoutMs } = tool;
  const parameters = toJsonSchema(tool.parameters);
  return withoutUndefined({ name, description, parameters, concurrent, timeoutMs });
}
