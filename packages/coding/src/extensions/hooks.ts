import {
  type AgentToolResult,
  ANSWER_TOOL,
  DeniedError,
  type Middleware,
  type ToolInvocation,
} from "@gyre/agent";
import { validateToolArguments, errorMessage } from "@gyre/ai";
import type { Advice, HookAnswer, HookEvent, HookInput } from "@gyre/tools";
import { namesOfTool } from "../settings/hooks.ts";

/** How often hooks may keep the agent from stopping, for one prompt. */
export const MAX_STOPS_IN_A_ROW = 5;

/** What is run at an event: a program of the settings, or a function of a plugin. */
export interface Hook {
  event: HookEvent;
  /** In a message, at its beginning. */
  name: string;
  matches: (names: readonly string[]) => boolean;
  /** Undefined where `signal` fired. Rejects with a message for the user; what it was about goes on. */
  run: (input: HookInput, signal: AbortSignal) => Promise<HookAnswer | undefined>;
}

/** What holds for a conversation when an event comes. */
export type HookFacts = Pick<HookInput, "session_id" | "transcript_path" | "cwd">;

export interface HookDesk {
  facts: () => HookFacts;
  /** Called with lines for the user. */
  warn: (text: string) => void;
  /** Called with each call that a hook refused. */
  denied: (call: ToolInvocation, reason: string) => void;
}

/** A hook did not let the prompt through. */
export class PromptBlockedError extends Error {
  readonly code = "prompt_blocked";
}

/**
 * The hooks of a conversation. Those of an event run one after the other, in order; the
 * first that blocks ends it. One that fails is reported to the user and passed over.
 */
export class Hooks {
  readonly #hooks: readonly Hook[];
  readonly #desk: HookDesk;
  /** What hooks said of calls on their way to permissions. */
  readonly #advice = new WeakMap<ToolInvocation, Advice>();
  #isStarted = false;
  /** For the first prompt that is let through. */
  #opening: string[] = [];
  #stops = 0;

  constructor(hooks: readonly Hook[], desk: HookDesk) {
    this.#hooks = hooks;
    this.#desk = desk;
  }

  /** Around tools, directly before permissions, which are to ask `advice`. */
  get middleware(): Middleware {
    // The way to give a typed answer is no tool, and does nothing.
    return {
      tool: (call, next) => (call.tool.name === ANSWER_TOOL ? next() : this.#call(call, next)),
    };
  }

  /** What hooks said of a call: it counts as a rule. */
  advice(call: ToolInvocation): Advice | undefined {
    return this.#advice.get(call);
  }

  /**
   * The prompt as it is sent, with what hooks have to add behind it. Rejects with
   * `PromptBlockedError` if one says no.
   */
  async prompt(
    prompt: string,
    source: NonNullable<HookInput["source"]>,
    signal: AbortSignal,
  ): Promise<string> {
    this.#stops = 0;
    if (!this.#isStarted) {
      this.#isStarted = true;
      const start = await this.#run("SessionStart", { source }, [source], signal);
      signal.throwIfAborted();
      if (start.block !== undefined) {
        this.#desk.warn(`${start.by}: a session cannot be kept from starting: ${start.block}`);
      }
      if (start.context !== undefined) this.#opening = [wrapped("SessionStart", start.context)];
    }
    const reply = await this.#run("UserPromptSubmit", { prompt }, [], signal);
    signal.throwIfAborted();
    if (reply.block !== undefined) {
      throw new PromptBlockedError(`The prompt was not sent: ${reply.block}`);
    }
    const added = this.#opening;
    this.#opening = [];
    if (reply.context !== undefined) added.push(wrapped("UserPromptSubmit", reply.context));
    return [prompt, ...added].join("\n\n");
  }

  /** Why the agent has to go on, if a hook wants that: a text for the model. */
  async stop(signal: AbortSignal): Promise<string | undefined> {
    const input = { stop_hook_active: this.#stops > 0 };
    const { block, by } = await this.#run("Stop", input, [], signal);
    if (block === undefined || signal.aborted) return undefined;
    if (this.#stops >= MAX_STOPS_IN_A_ROW) {
      this.#desk.warn(`${by} wanted it to go on ${MAX_STOPS_IN_A_ROW} times in a row: it stops.`);
      return undefined;
    }
    this.#stops++;
    return wrapped("Stop", block);
  }

  /** Runs the hooks before a compaction. False: a hook wants it put off. */
  async compact(trigger: NonNullable<HookInput["trigger"]>, signal: AbortSignal): Promise<boolean> {
    const { block, by } = await this.#run("PreCompact", { trigger }, [trigger], signal);
    if (block === undefined) return true;
    this.#desk.warn(`${by} puts the compaction off, as long as there is room: ${block}`);
    return false;
  }

  async #call(
    call: ToolInvocation,
    next: (changed?: ToolInvocation) => Promise<AgentToolResult>,
  ): Promise<AgentToolResult> {
    const names = namesOfTool(call.tool.name);
    const about = { tool_name: call.tool.name, tool_use_id: call.toolCall.id };
    const before = await this.#run(
      "PreToolUse",
      { ...about, tool_input: call.args },
      names,
      call.signal,
    );
    call.signal.throwIfAborted();
    if (before.block !== undefined) throw this.#refused(call, before.block);
    const made = await this.#changed(call, before);
    const result = withContext("PreToolUse", await next(made), before);
    if (result.isError) return result;
    const after = await this.#run(
      "PostToolUse",
      { ...about, tool_input: made.args, tool_response: shown(result) },
      names,
      call.signal,
    );
    return withContext("PostToolUse", result, after);
  }

  /** The call as hooks want it: what it would do is then for permissions to judge. */
  async #changed(call: ToolInvocation, answer: Answer): Promise<ToolInvocation> {
    const { input, permission, reason, by } = answer;
    if (!input && !permission) return call;
    const made = { ...call };
    if (input) {
      const checked = await validateToolArguments(call.tool, structuredClone(input));
      if (!checked.ok) throw this.#refused(call, `${by} changed it so: ${checked.error}`);
      made.args = checked.value;
    }
    if (permission) {
      const does = permission === "allow" ? "allows it" : "wants it asked about";
      const why = reason === undefined ? "." : `: ${reason}`;
      this.#advice.set(made, { effect: permission, reason: `${by} ${does}${why}` });
    }
    return made;
  }

  #refused(call: ToolInvocation, reason: string): Error {
    this.#desk.denied(call, reason);
    return new DeniedError(reason, `Denied by a hook: ${reason}`);
  }

  async #run(
    event: HookEvent,
    about: Partial<HookInput>,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<Answer> {
    let all: Answer = { by: "" };
    for (const hook of this.#hooks) {
      if (hook.event !== event || !hook.matches(names)) continue;
      const input: HookInput = { ...this.#desk.facts(), hook_event_name: event, ...about };
      // A later hook gets what an earlier one has changed.
      if (all.input) input.tool_input = all.input;
      const answer = await this.#ask(hook, input, signal);
      if (signal.aborted) break;
      if (answer) all = joined(all, answer, hook.name);
      if (all.block !== undefined) break;
    }
    return all;
  }

  async #ask(hook: Hook, input: HookInput, signal: AbortSignal): Promise<HookAnswer | undefined> {
    try {
      const answer = await hook.run(input, signal);
      if (answer?.message !== undefined) this.#desk.warn(`${hook.name}: ${answer.message}`);
      return answer;
    } catch (error) {
      if (!signal.aborted) this.#desk.warn(errorMessage(error));
      return undefined;
    }
  }
}

/** What the hooks of an event want together. */
interface Answer extends HookAnswer {
  /** The last that wanted something. */
  by: string;
}

function joined(all: Answer, answer: HookAnswer, by: string): Answer {
  const context = [all.context, answer.context].filter((text) => text !== undefined).join("\n\n");
  const { permission = answer.permission } = all;
  return {
    ...all,
    ...answer,
    by,
    ...(context !== "" && { context }),
    // A hook that wants a person asked takes precedence over one that does not.
    ...(permission && { permission: answer.permission === "ask" ? "ask" : permission }),
  };
}

function wrapped(event: HookEvent, text: string): string {
  return `<hook event="${event}">\n${text}\n</hook>`;
}

/** The result with what hooks have to say of it behind it. */
function withContext(
  event: HookEvent,
  result: AgentToolResult,
  { block, context }: Answer,
): AgentToolResult {
  const texts = [block, context].filter((text) => text !== undefined);
  if (texts.length === 0) return result;
  // On a line of its own, where blocks are put together.
  const text = `\n${wrapped(event, texts.join("\n\n"))}`;
  return { ...result, content: [...result.content, { type: "text", text }] };
}

/** A result as a hook gets it: without the contents of pictures and files. */
function shown({ content, isError = false }: AgentToolResult): unknown {
  const parts = content.map((part) => {
    if (part.type === "image") return { type: part.type, mimeType: part.mimeType };
    if (part.type !== "file" || part.source.type !== "base64") return part;
    const { source: _, ...rest } = part;
    return rest;
  });
  return { content: parts, isError };
}
