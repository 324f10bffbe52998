import { Agent, type AgentEvent, type AgentOptions, type AgentTool, approval } from "@gyre/agent";
import { type ScriptFunction, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import type { HostedSession, SessionHost, SessionInfo } from "../sessions/session-host.ts";

export interface ScriptedHostOptions {
  script?: readonly ScriptStep[] | ScriptFunction;
  tools?: readonly AgentTool[];
  agent?: AgentOptions;
  /** More of what a session can do. */
  session?: Partial<HostedSession> | ((agent: Agent) => Partial<HostedSession>);
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
  readonly #options: ScriptedHostOptions;

  constructor(options: ScriptedHostOptions = {}) {
    this.#options = options;
  }

  create(): Promise<HostedSession> {
    return Promise.resolve(this.#make(`s_${this.agents.length + 1}`));
  }

  async open(id: string): Promise<HostedSession | undefined> {
    this.#options.onOpen?.(id);
    return id === "kept" ? this.#make(id) : undefined;
  }

  list(): Promise<readonly SessionInfo[]> {
    return Promise.resolve([{ id: "kept", title: "An old one" }]);
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
