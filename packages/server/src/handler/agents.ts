import type { AgentOptions, Middleware } from "@gyre/agent";
import { type Identity, invalidRequest } from "@gyre/protocol";
import type { SessionAgent } from "../sessions/session-agent.ts";
import type { SessionOptions } from "../sessions/session-host.ts";

/** What an agent continues from, and what stores what it does: options for `new Agent`. */
export interface StoredConversation extends Pick<
  AgentOptions,
  | "messages"
  | "pending"
  | "interrupted"
  | "compaction"
  | "queued"
  | "unfinished"
  | "sink"
  | "onQueueChange"
> {
  /** An agent with middleware of its own has this behind it: `[mine, ...stored.middleware]`. */
  readonly middleware: readonly Middleware[];
}

/** A session whose agent is to be made. */
export interface AgentSession {
  readonly id: string;
  /** The name of the agent that the client chose; "default" where there is one factory. */
  readonly agent: string;
  /** What the client gave with `session_create`: a claim of its user's. The same when it is opened again. */
  readonly options: SessionOptions;
  /** The user that made the session, also when another user opens it again. */
  readonly identity: Identity;
  /** For `new Agent({ ...stored, model, tools })`. */
  readonly stored: StoredConversation;
}

/** Makes the agent of a session: when it is made, and when it is opened again. */
export type AgentFactory = (session: AgentSession) => SessionAgent | Promise<SessionAgent>;

/** One factory, or several by the name that clients choose with `agent`; the first is the default. */
export type AgentFactories = AgentFactory | Readonly<Record<string, AgentFactory>>;

const ONLY = "default";

/** Agents by name. */
export class AgentChoice {
  readonly #factories: ReadonlyMap<string, AgentFactory>;

  constructor(agents: AgentFactories) {
    const all = typeof agents === "function" ? { [ONLY]: agents } : agents;
    this.#factories = new Map(Object.entries(all ?? {}));
    if (this.#factories.size > 0) return;
    throw new TypeError(
      "There is no agent: write agents: ({ stored }) => new Agent({ ...stored, model }).",
    );
  }

  /** Throws `invalid_request` for a name that there is not. */
  find(asked: unknown): { name: string; make: AgentFactory } {
    const [first = ONLY] = this.#factories.keys();
    const name = asked ?? first;
    const make = typeof name === "string" ? this.#factories.get(name) : undefined;
    if (make && typeof name === "string") return { name, make };
    const names = [...this.#factories.keys()].join(", ");
    throw invalidRequest(`There is no agent ${JSON.stringify(asked)} here: there are ${names}.`);
  }
}
