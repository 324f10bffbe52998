import type { ThinkingLevel } from "@gyre/ai";
import type { AgentMessage, AgentTool } from "../contract/types.ts";
import { type Handoff, Handoffs } from "./handoff.ts";
import { ModelSource } from "./model-source.ts";
import type { AgentOptions } from "./options.ts";

/**
 * What an agent is beside its transcript: instructions, tools, model and thinking level. Where it
 * has `handoffs`, these are those of the agent that the conversation is with.
 */
export class Profile {
  readonly models: ModelSource;
  systemPrompt: string;
  tools: readonly AgentTool[];
  thinkingLevel: ThinkingLevel;
  readonly handoffs: Handoffs | undefined;

  constructor(options: AgentOptions) {
    const { name = "main", handoffs } = options;
    this.models = new ModelSource(options);
    this.systemPrompt = options.instructions ?? "";
    this.tools = options.tools ?? [];
    this.thinkingLevel = options.thinkingLevel ?? "off";
    this.handoffs = handoffs && new Handoffs({ name }, handoffs);
  }

  /** The name of the agent in charge, where there are several. */
  get activeAgent(): string | undefined {
    return this.handoffs?.active.name;
  }

  /** These tools, and those by which the agent in charge transfers the conversation. */
  withTransfers(tools: readonly AgentTool[]): readonly AgentTool[] {
    return this.handoffs ? [...tools, ...this.handoffs.listTools()] : tools;
  }

  /** Reads from a transcript which agent the conversation is with. */
  findInCharge(messages: readonly AgentMessage[]): void {
    const handoffs = this.handoffs;
    if (handoffs) putInCharge(this, handoffs, handoffs.find(messages));
  }

  /** Lets a message of the transcript transfer the conversation. */
  follow(message: AgentMessage): void {
    const handoffs = this.handoffs;
    const next = handoffs?.read(message);
    if (handoffs && next) putInCharge(this, handoffs, next);
  }

  asHandoff(options: Pick<Handoff, "name" | "description" | "to">): Handoff {
    const { systemPrompt, tools, thinkingLevel, models } = this;
    return {
      ...options,
      instructions: systemPrompt,
      tools,
      ...(models.model && { model: models.model }),
      thinkingLevel,
    };
  }

  /** What a copy of the agent is made of, as it is now. */
  toOptions(): AgentOptions {
    const handoffs = this.handoffs;
    if (handoffs) keep(this, handoffs);
    return {
      ...this.models.options,
      ...(handoffs
        ? { ...handoffs.first, handoffs: handoffs.others }
        : this.asHandoff({ name: "main" })),
    };
  }
}

/** Remembers what the agent in charge is now, for when the conversation is transferred back. */
function keep(profile: Profile, { active, first }: Handoffs): void {
  const now = profile.asHandoff(active);
  if (active !== first) {
    if (!active.model && now.model === first.model) delete now.model;
    if (!active.thinkingLevel && now.thinkingLevel === first.thinkingLevel) {
      delete now.thinkingLevel;
    }
  }
  Object.assign(active, now);
}

function putInCharge(profile: Profile, handoffs: Handoffs, next: Handoff): void {
  if (next === handoffs.active) return;
  const { first } = handoffs;
  keep(profile, handoffs);
  handoffs.active = next;
  profile.systemPrompt = next.instructions ?? "";
  profile.tools = next.tools ?? [];
  profile.models.model = next.model ?? first.model;
  profile.thinkingLevel = next.thinkingLevel ?? first.thinkingLevel ?? "off";
}
