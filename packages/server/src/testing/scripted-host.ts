import { Agent, type AgentEvent, type AgentOptions, type AgentTool, approval } from "@gyre/agent";
import { type ScriptFunction, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import type {
  HostedSession,
  SessionAmendment,
  SessionHost,
  SessionInfo,
} from "../sessions/session-host.ts";

export interface ScriptedHostOptions {
  script?: readonly ScriptStep[] | ScriptFunction;
  tools?: readonly AgentTool[];
  agent?: AgentOptions;
  /** More of what a session can do. */
  session?: Partial<HostedSession> | ((agent: Agent) => Partial<HostedSession>);
  /** Called before what is stored of a session is changed. */
  onAmend?: (id: string) => void | Promise<void>;
  /** Called before a stored session is opened; throws why it cannot be. */
  onOpen?: (id: string) => void;
  clock?: AgentOptions["clock"];
}

/** A host of agents that follow a script. Tools named "asks" wait for an approval. */
export class ScriptedHost implements SessionHost {
  readonly agents: Agent[] = [];
  /** What each agent did, in process. */
  readonly events: AgentEvent[][] = [];
  readonly closed: string[] = [];
  /** What is stored. */
  readonly stored: Map<string, SessionInfo> = new Map<string, SessionInfo>([
    ["kept", { id: "kept", title: "An old one" }],
  ]);
  search?: NonNullable<SessionHost["search"]>;
  readonly #options: ScriptedHostOptions;

  constructor(options: ScriptedHostOptions = {}) {
    this.#options = options;
  }

  create(): Promise<HostedSession> {
    return Promise.resolve(this.#make(`s_${this.agents.length + 1}`));
  }

  async open(id: string): Promise<HostedSession | undefined> {
    this.#options.onOpen?.(id);
    return this.stored.has(id) ? this.#make(id) : undefined;
  }

  list(): Promise<readonly SessionInfo[]> {
    return Promise.resolve([...this.stored.values()]);
  }

  async amend(id: string, changes: SessionAmendment): Promise<boolean> {
    await this.#options.onAmend?.(id);
    const info = this.stored.get(id);
    if (info) this.stored.set(id, { ...info, ...changes });
    return info !== undefined;
  }

  async fork(id: string, { at }: { at?: number }): Promise<string | undefined> {
    if (!this.stored.has(id)) return undefined;
    const made = `f_${this.stored.size}`;
    this.stored.set(made, { id: made, from: id, ...(at !== undefined && { at }) });
    return made;
  }

  #make(id: string): HostedSession {
    const { script = [], tools = [], agent: more, session, clock } = this.#options;
    const model = scriptedModel(script, clock ? { clock } : {});
    const agent = new Agent({
      protocol: model,
      middleware: [approval(({ tool }) => (tool.name === "asks" ? "suspend" : "allow"))],
      ...(clock && { clock }),
      model: model.model,
      tools,
      ...more,
    });
    const events: AgentEvent[] = [];
    agent.subscribe((event) => void events.push(structuredClone(event)));
    this.agents.push(agent);
    this.events.push(events);
    return {
      id,
      agent,
      close: async () => {
        this.closed.push(id);
      },
      ...(typeof session === "function" ? session(agent) : session),
    };
  }
}
