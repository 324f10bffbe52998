import { isRecord, type Model, type ModelName, nearNames, type ThinkingLevel } from "@gyre/ai";
import type { AgentMessage, AgentTool } from "../contract/types.ts";
import { isToolResult } from "../transcript/history.ts";

const PREFIX = "transfer_to_";

/**
 * An agent that may take a conversation over. An `Agent` with `handoffs` has a tool
 * `transfer_to_<name>` for each; once the model has called it, instructions, tools, model and
 * thinking level are those of the other, from the next turn on and in all runs that follow. The
 * result of that call in the transcript is the only record of it: an agent that is made with the
 * messages of another goes on as the one in charge.
 */
export interface Handoff {
  name: string;
  /** What it is for: the model reads it to decide. */
  description?: string;
  instructions?: string;
  tools?: readonly AgentTool[];
  /** Default: that of the agent that has the handoffs. */
  model?: Model | ModelName;
  /** Default: that of the agent that has the handoffs. */
  thinkingLevel?: ThinkingLevel;
  /** Names of those that it may transfer the conversation to. Default: all others, and the first. */
  to?: readonly string[];
}

/** The agents of one conversation, by name. */
export class Handoffs {
  readonly #byName = new Map<string, Handoff>();
  readonly first: Handoff;
  /** In charge right now. */
  active: Handoff;

  /** Throws on names that are not unique, and on a handoff to a name that there is not. */
  constructor(first: Handoff, others: readonly Handoff[]) {
    this.first = first;
    this.active = first;
    // Copies: what becomes of them in this conversation is not for another.
    for (const each of [first, ...others.map((other) => ({ ...other }))]) {
      if (this.#byName.has(each.name)) {
        throw new TypeError(
          `Two agents of \`handoffs\` are named "${each.name}". The first is "${first.name}", its \`name\`.`,
        );
      }
      this.#byName.set(each.name, each);
    }
    for (const { name, to = [] } of others) {
      for (const target of to) this.#get(target, `Agent "${name}" transfers to`);
    }
  }

  get others(): readonly Handoff[] {
    return [...this.#byName.values()].filter((each) => each !== this.first);
  }

  /** The agent in charge after a message, if it changes that. Throws where there is no such agent. */
  read(message: AgentMessage): Handoff | undefined {
    if (!isToolResult(message) || message.isError || !isRecord(message.details)) return undefined;
    const { handoff } = message.details;
    // A tool of the application may have a name that begins so.
    if (typeof handoff !== "string" || message.toolName !== `${PREFIX}${handoff}`) return undefined;
    return this.#get(handoff, "The transcript was transferred to");
  }

  /** The agent in charge after these messages. */
  find(messages: readonly AgentMessage[]): Handoff {
    for (let index = messages.length - 1; index >= 0; index--) {
      const found = this.read(messages[index] as AgentMessage);
      if (found) return found;
    }
    return this.first;
  }

  /** The tools by which the one in charge transfers it. */
  listTools(): AgentTool[] {
    const { name: own, to = [...this.#byName.keys()] } = this.active;
    return to.filter((name) => name !== own).map((name) => makeTool(this.#get(name, "")));
  }

  #get(name: string, where: string): Handoff {
    const found = this.#byName.get(name);
    if (found) return found;
    const names = [...this.#byName.keys()];
    const [near] = nearNames(name, names);
    const hint = near === undefined ? `There are ${names.join(", ")}.` : `Did you mean ${near}?`;
    throw new Error(`${where} "${name}", and no agent of \`handoffs\` has that name. ${hint}`);
  }
}

function makeTool({ name, description }: Handoff): AgentTool {
  const text = `Transfers the conversation to the agent "${name}", which goes on in your place.`;
  return {
    name: `${PREFIX}${name}`,
    description: description === undefined ? text : `${text} ${description}`,
    parameters: {
      type: "object",
      properties: { reason: { type: "string", description: "Why, in a sentence." } },
    },
    idempotent: true,
    presentation: { kind: "think" },
    execute: () => ({
      content: [
        {
          type: "text",
          text: `The conversation is with the agent "${name}" now: go on as this agent.`,
        },
      ],
      details: { handoff: name },
    }),
  };
}
