import {
  type AgentEnd,
  type AgentListener,
  AgentRun,
  type AgentState,
  type CompactOptions,
  type MessageInput,
} from "@gyre/agent";
import type { AnySchema, InferArguments, Model } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { PermissionMode } from "@gyre/tools";
import type {
  CodingAgent,
  CodingContinueOptions,
  CodingPromptOptions,
  RewindOptions,
  Rewound,
} from "./coding-agent.ts";
import { CodingAgentError } from "./core/errors.ts";
import { type Prompt, promptText, readPrompts } from "./file-history/prompts.ts";
import type { Skill } from "./guidance/skills.ts";
import type { DeniedCall } from "./harness/denied-call.ts";
import type { AgentHarness, HarnessOutcome } from "./harness/harness.ts";
import { isMode, MODE_NAMES } from "./text/choices.ts";

/** What a coding agent has of its owner. */
export interface Owner {
  /** Ends all work, now and later. */
  signal?: AbortSignal;
  /** Closes the session that the agent was opened with. */
  closeSession: () => Promise<void>;
}

/** What it does now: nothing else can start meanwhile. */
interface Work {
  controller: AbortController;
  settled: Promise<unknown>;
}

/** A harness as a program has it: one piece of work at a time. */
export class HarnessAgent implements CodingAgent {
  readonly #harness: AgentHarness;
  readonly #owner: Owner;
  readonly #abort = (): void => this.abort();
  #work: Work | undefined;
  #closing: Promise<void> | undefined;

  constructor(harness: AgentHarness, owner: Owner) {
    this.#harness = harness;
    this.#owner = owner;
    owner.signal?.addEventListener("abort", this.#abort, { once: true });
  }

  get state(): AgentState {
    return this.#harness.agent.state;
  }

  get isRunning(): boolean {
    return this.#work !== undefined || this.#harness.agent.isRunning;
  }

  get session(): Session | undefined {
    return this.#harness.session;
  }

  get model(): Model {
    return this.#harness.model;
  }

  get mode(): PermissionMode {
    return this.#harness.mode;
  }

  get denied(): readonly DeniedCall[] {
    return this.#harness.denied;
  }

  get skills(): readonly Skill[] {
    return this.#harness.skills;
  }

  prompt(text: string, options?: CodingPromptOptions): Promise<AgentEnd>;
  prompt<const S extends AnySchema>(
    text: string,
    options: CodingPromptOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>>>;
  async prompt(
    text: string,
    { signal: own, ...request }: CodingPromptOptions & { output?: AnySchema } = {},
  ): Promise<AgentEnd<unknown>> {
    return this.#occupy(async (signal) =>
      toEnd(await this.#harness.prompt({ text, ...request }, { signal: anySignal(signal, own) })),
    );
  }

  run(text: string, options?: CodingPromptOptions): AgentRun;
  run<const S extends AnySchema>(
    text: string,
    options: CodingPromptOptions & { output: S },
  ): AgentRun<InferArguments<S>>;
  run(text: string, options: CodingPromptOptions & { output?: AnySchema } = {}): unknown {
    this.#assertFree();
    const run = new AgentRun<unknown>();
    const unsubscribe = this.subscribe((event) => {
      // The end is that of the last run, and comes once the agent is free again.
      if (event.type !== "agent_end") run.push(event);
    });
    const { output, ...rest } = options;
    const ending: Promise<AgentEnd<unknown>> = output
      ? this.prompt(text, { ...rest, output })
      : this.prompt(text, rest);
    ending.finally(unsubscribe).then(
      (end) => run.push(end),
      (error: unknown) => run.fail(error),
    );
    return run;
  }

  continue(options?: CodingContinueOptions): Promise<AgentEnd>;
  continue<const S extends AnySchema>(
    options: CodingContinueOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>>>;
  async continue({
    output,
    signal: own,
    ...rest
  }: CodingContinueOptions & { output?: AnySchema } = {}): Promise<AgentEnd<unknown>> {
    return this.#occupy(async (signal) =>
      toEnd(await this.#harness.resume(output, { ...rest, signal: anySignal(signal, own) })),
    );
  }

  steer(message: string | MessageInput): string {
    return this.#harness.agent.steer(message);
  }

  followUp(message: string | MessageInput): string {
    return this.#harness.agent.followUp(message);
  }

  abort(): void {
    // It may not have come to the agent yet.
    this.#work?.controller.abort();
    this.#harness.agent.abort();
  }

  subscribe(listener: AgentListener): () => void {
    return this.#harness.agent.subscribe(listener);
  }

  async waitForIdle(): Promise<void> {
    // How that ended is reported to those who asked for it.
    await Promise.allSettled([this.#work?.settled]);
    await this.#harness.agent.waitForIdle();
  }

  async compact({ signal: own, ...rest }: CompactOptions = {}): Promise<
    { before: number; after: number } | undefined
  > {
    return this.#occupy(async (signal) =>
      this.#harness.agent.compact({ ...rest, signal: anySignal(signal, own) }),
    );
  }

  setModel(name: string): Promise<Model> {
    return this.#harness.setModel(name);
  }

  setMode(mode: PermissionMode): Promise<void> {
    assertMode(mode, "setMode()");
    return this.#harness.setMode(mode);
  }

  async rewind(options: RewindOptions = {}): Promise<Rewound> {
    return this.#occupy(async () => this.#rewind(options));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #rewind({ prompts = 1, only, replaceConflicts = false }: RewindOptions): Promise<Rewound> {
    const { fileHistory } = this.#harness;
    if (only === "files" && !fileHistory) {
      throw new CodingAgentError("bad_option", "No file can be taken back: none is recorded here.");
    }
    const to = await this.#findPrompt(prompts);
    const plan =
      only === "conversation" ? undefined : await fileHistory?.plan({ before: to.entry });
    const report = plan && (await fileHistory?.apply(plan, { withConflicts: replaceConflicts }));
    if (only !== "files") await this.#harness.goTo(to.parent);
    const { done = [], left = [], failed = [] } = report ?? {};
    return { prompt: promptText(to), files: done, left, failed };
  }

  async #findPrompt(count: number): Promise<Prompt> {
    const { session } = this;
    if (!session) throw new CodingAgentError("bad_option", "There is no session to rewind.");
    let found = 0;
    for await (const prompt of readPrompts(session)) {
      if (++found === count) return prompt;
    }
    throw new CodingAgentError(
      "bad_option",
      `There are ${found} prompts to take back, and no ${count}.`,
    );
  }

  async #close(): Promise<void> {
    this.#owner.signal?.removeEventListener("abort", this.#abort);
    try {
      this.abort();
      await this.waitForIdle();
      await this.#harness.close();
    } finally {
      await this.#owner.closeSession();
    }
  }

  /** Does what nothing else may start beside. `abort()` fires its signal. */
  async #occupy<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#assertFree();
    const controller = new AbortController();
    const settled = work(controller.signal);
    this.#work = { controller, settled };
    try {
      return await settled;
    } finally {
      this.#work = undefined;
    }
  }

  #assertFree(): void {
    this.#owner.signal?.throwIfAborted();
    if (this.#closing) throw new CodingAgentError("bad_option", "The agent is closed.");
    if (!this.isRunning) return;
    throw new CodingAgentError(
      "bad_option",
      "The agent is at work. Use steer() or followUp(), or wait for it with waitForIdle().",
    );
  }
}

/** Throws on a mode that there is not. */
export function assertMode(mode: string, where: string): asserts mode is PermissionMode {
  if (isMode(mode)) return;
  const names = MODE_NAMES.map((name) => `"${name}"`).join(", ");
  throw new CodingAgentError(
    "bad_option",
    `${where} is ${JSON.stringify(mode)}, but must be one of ${names}.`,
  );
}

function anySignal(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other ? AbortSignal.any([one, other]) : one;
}

/** The end of the last run, with what all of them took. Its answer is read when it is asked for. */
function toEnd({ end, turns, usage }: HarnessOutcome): AgentEnd<unknown> {
  const isPlain = { enumerable: true, configurable: true, writable: true };
  return Object.create(Object.prototype, {
    ...Object.getOwnPropertyDescriptors(end),
    turns: { ...isPlain, value: turns },
    usage: { ...isPlain, value: usage },
  });
}
