import { existsSync } from "node:fs";
import { type AgentEvent, type AgentMessage, isLlmMessage } from "@gyre/agent";
import type { McpAnswer, McpQuestion } from "@gyre/mcp";
import { type Clock, errorMessage, nearNames, type UserContent } from "@gyre/ai";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import {
  type Command,
  type CommandContext,
  type CommandResult,
  findCommand,
  type OpenRequest,
  orAborted,
  parseCommand,
  runCommand,
} from "./command.ts";
import type { ReviewPlan } from "./plan.ts";
import { recordInterruptions, wasInterrupted } from "./interruptions.ts";
import type { Waiting } from "./queue.ts";
import type { ConversationAgent, Outcome } from "./types.ts";
import type { UserCommandMessage } from "./user-command.ts";
import type { ConversationView, ReadText } from "./view.ts";

/** Something that is being done: a prompt, a command of the user's own, or a slash command, which has a name. */
export interface Task {
  readonly startedAt: number;
  readonly stop: AbortController;
  /** `/compact`. */
  readonly name?: string;
  /** See `Command`. */
  readonly endsItself?: boolean;
}

export interface ControllerOptions<H extends ConversationAgent, C extends CommandContext> {
  view: ConversationView;
  clock: Pick<Clock, "now">;
  /** For commands that the user runs with `!`. */
  env: Readonly<Record<string, string | undefined>>;
  commands: () => readonly Command<C>[];
  /** What a slash command gets. `signal` fires when it is stopped. */
  commandContext: (harness: H, signal: AbortSignal) => C;
  /** Opens another session or another place in this one, and closes what is open. */
  reopen: (request: OpenRequest) => Promise<void>;
  quit: () => void;
  /** What to do in place of a command that is not there, as a sentence; undefined where that is not known. */
  findInstead?: (name: string) => string | undefined;
}

/** What was typed cannot be accepted now, and nothing was done. */
class InputRejected extends Error {}

/**
 * A conversation with an agent, whatever it looks like: prompts, steering, slash commands, the
 * user's own commands, approvals, interruptions. One thing is done at a time; what else is
 * typed waits in the agent's queues, runs aside, or is rejected. Nothing of it knows a
 * terminal: the view shows and asks.
 */
export class ConversationController<
  H extends ConversationAgent = ConversationAgent,
  C extends CommandContext = CommandContext,
> {
  readonly #options: ControllerOptions<H, C>;
  #harness: H | undefined;
  #opening: Promise<H> | undefined;
  #unsubscribe: (() => void) | undefined;
  #task: Task | undefined;
  /** Slash commands that run beside the task. */
  readonly #asides = new Set<AbortController>();
  #contextTokens: number | undefined;
  /** Commands of the user's own, for the next prompt. */
  #userCommands: UserCommandMessage[] = [];
  /** Whether the agent has started with the last prompt. */
  #hasStarted = false;

  constructor(options: ControllerOptions<H, C>) {
    this.#options = options;
  }

  /** Undefined until it is open. */
  get harness(): H | undefined {
    return this.#harness;
  }

  get task(): Task | undefined {
    return this.#task;
  }

  /** Whether it works on something else than a slash command. */
  get isWorking(): boolean {
    return this.#task !== undefined && this.#task.name === undefined;
  }

  /** Whether anything runs, slash commands included. */
  get isBusy(): boolean {
    return this.#task !== undefined || this.#asides.size > 0;
  }

  /** Whether anything runs that was not interrupted already. */
  get canInterrupt(): boolean {
    return this.#running().some(({ signal }) => !signal.aborted);
  }

  /** Whether an agent is open, or is being opened. */
  get isOpening(): boolean {
    return this.#opening !== undefined;
  }

  /** Size of the last request with its answer. */
  get contextTokens(): number | undefined {
    return this.#contextTokens;
  }

  /** What waits for the agent. */
  get waiting(): readonly Waiting[] {
    return this.#harness?.queue.list() ?? [];
  }

  /** What a slash command gets, for completions; undefined until the agent is open. */
  commandContext(signal: AbortSignal): C | undefined {
    return this.#harness && this.#options.commandContext(this.#harness, signal);
  }

  /** Converses with this agent from now on. What is typed before it is open waits for it. */
  use(opening: Promise<H>): void {
    this.#unsubscribe?.();
    this.#harness = undefined;
    this.#contextTokens = undefined;
    this.#opening = opening;
    opening.then(
      (harness) => {
        if (this.#opening !== opening) return;
        this.#harness = harness;
        recordInterruptions(harness);
        for (const message of harness.agent.state.messages) this.#count(message);
        this.#unsubscribe = harness.agent.subscribe((event) => this.#onAgentEvent(event));
        this.#options.view.update();
        this.#followShared();
      },
      // The caller that opens it reports the error.
      () => {},
    );
  }

  /** Takes what was typed: a prompt, `/command` or `!command`. Errors are shown; never rejects. */
  async submit(text: string, followUp = false): Promise<void> {
    await this.#settle(this.#submit(text, followUp), text);
  }

  /** Sends a text to the model, or queues it, whatever it begins with. Never rejects. */
  async send(text: string, followUp = false): Promise<void> {
    await this.#settle(this.#send(text, followUp, true), text);
  }

  /** Runs the slash command of this name, if there is one. Never rejects. */
  async runNamed(name: string): Promise<void> {
    const command = this.#options.commands().find((each) => each.name === name);
    if (command) await this.#settle(this.#runCommand(command, ""));
  }

  /**
   * Continues a conversation that was cut off, or in which messages wait. One that the user
   * interrupted waits for them, and so does one that others use as well.
   */
  async resume(): Promise<void> {
    const harness = await this.#opened();
    if (harness.shared) return this.#options.view.ready();
    const isOpen = harness.isCutOff || harness.agent.hasQueuedMessages();
    const isDue = isOpen && !(await wasInterrupted(harness));
    // A prompt may have been sent meanwhile.
    if (!isDue || this.#task) return this.#options.view.ready();
    this.#options.view.show({ type: "resumed" });
    await this.#settle(this.#askAgain(harness));
  }

  /**
   * Stops all that runs, but for the command of `except`, and gives back what waits. Answers
   * whether anything ran.
   */
  interrupt(except?: AbortSignal): boolean {
    const running = this.#running().filter(({ signal }) => signal !== except);
    this.takeBack();
    for (const stop of running) stop.abort();
    this.#harness?.agent.abort();
    return running.length > 0;
  }

  /** Gives what waits back to the user. Answers whether anything waited. */
  takeBack(): boolean {
    const isWaiting = this.waiting.length > 0;
    const { view } = this.#options;
    const giveBack = (texts: readonly string[]): void => {
      if (texts.length > 0) view.giveBack(texts);
    };
    const taken = this.#harness?.queue.take() ?? [];
    if (taken instanceof Promise) {
      taken.then(giveBack, (error: unknown) =>
        view.show({ type: "error", text: errorMessage(error) }),
      );
    } else giveBack(taken);
    return isWaiting;
  }

  /**
   * Asks about a call. A question that is left interrupts the run. `readText` reads the files of an agent that runs
   * elsewhere.
   */
  async approve(request: ApprovalRequest, readText?: ReadText): Promise<ApprovalAnswer> {
    const { toolset } = await this.#opened();
    const { root } = toolset.env.workspace;
    const answer = await this.#options.view.ask(request, root, readText);
    const isLeft = answer ? isInterruption(answer) : request.signal?.aborted !== true;
    if (isLeft) this.interrupt();
    return answer ?? { allow: false, reason: "interrupted" };
  }

  /** Asks about a plan, where the view can. A question that is left interrupts the run. */
  get reviewPlan(): ReviewPlan | undefined {
    const { view } = this.#options;
    if (!view.reviewPlan) return undefined;
    return async (plan, signal) => {
      const answer = await view.reviewPlan?.(plan, signal);
      if (!answer && !signal.aborted) this.interrupt();
      return answer;
    };
  }

  /** Has the user answer an MCP server, where the view can. */
  answerServer(question: McpQuestion, signal: AbortSignal): Promise<McpAnswer> {
    const { view } = this.#options;
    return view.answerServer?.(question, signal) ?? Promise.resolve({ action: "decline" });
  }

  /** Ends what is being done and closes the agent. A slash command that asked for it goes on. */
  async close(): Promise<void> {
    if (this.isWorking || this.#task?.endsItself) this.#task?.stop.abort();
    this.#unsubscribe?.();
    await (await this.#opening?.catch(() => undefined))?.close();
  }

  /** Continues from the transcript as it is, then sends what was queued meanwhile. */
  async #askAgain(harness: H): Promise<void> {
    await this.#perform(() => harness.resume());
    await this.#sendRest();
  }

  /** Shows a run that others have begun, and waits for its end. */
  #followShared(): void {
    const shared = this.#harness?.shared;
    if (!shared?.isRunning || this.#task) return;
    void this.#settle(this.#perform(() => shared.follow()).then(() => this.#sendRest()));
  }

  #running(): AbortController[] {
    return [...(this.#task ? [this.#task.stop] : []), ...this.#asides];
  }

  #opened(): Promise<H> {
    if (!this.#opening) throw new Error("No agent is open.");
    return this.#opening;
  }

  async #settle(work: Promise<void>, text?: string): Promise<void> {
    const { view } = this.#options;
    try {
      await work;
    } catch (error) {
      const reason = errorMessage(error);
      const isRejected = error instanceof InputRejected && text !== undefined;
      view.show(isRejected ? { type: "rejected", text, reason } : { type: "error", text: reason });
    }
    view.ready();
  }

  async #submit(text: string, followUp: boolean): Promise<void> {
    if (text.startsWith("!")) return this.#runUserCommand(text);
    const found = this.#findCommand(this.#isNote(text) ? `/remember${text.slice(1)}` : text);
    if (found) return this.#runCommand(found.command, found.rest, text);
    await this.#send(text, followUp, true);
  }

  /** `# text`. A text of several lines that begins so has a heading. */
  #isNote(text: string): boolean {
    return (
      /^# [^\n]*$/.test(text) && findCommand("remember", this.#options.commands()) !== undefined
    );
  }

  /** Sends a prompt, or queues it while the agent works. */
  async #send(text: string, followUp: boolean, isTyped: boolean): Promise<void> {
    const { name } = this.#task ?? {};
    const { stopKey } = this.#options.view;
    if (name !== undefined)
      throw new InputRejected(`${name} is not done yet. ${stopKey} stops it.`);
    await (this.#task ? this.#queue(text, followUp) : this.#prompt(text, isTyped));
  }

  async #prompt(text: string, isTyped: boolean): Promise<void> {
    const { view } = this.#options;
    view.show({ type: "prompt", text, isTyped });
    await this.#perform(async (signal) => {
      const harness = await orAborted(this.#opened(), signal);
      if (!harness) return view.giveBack([text]);
      const { files, problems } = await findFiles(text, harness);
      if (signal.aborted) return view.giveBack([text]);
      for (const problem of problems) view.show({ type: "warning", text: problem });
      const userCommands = this.#userCommands;
      this.#userCommands = [];
      this.#hasStarted = false;
      return harness
        .prompt({ text, userCommands, signal, ...(files.length > 0 && { attachments: files }) })
        .catch(async (error: unknown) => {
          // A hook was interrupted, or rejected it: the model has not seen it.
          if (!this.#hasStarted) {
            this.#userCommands.unshift(...userCommands);
            view.giveBack([text, ...(await this.#takeWaiting())]);
          }
          throw error;
        });
    });
    await this.#sendRest();
  }

  /** Sends what was queued after the run had polled for the last time. */
  async #sendRest(): Promise<void> {
    const agent = this.#harness?.agent;
    if (!agent || this.#task || this.waiting.length === 0) return;
    const last = agent.state.messages.at(-1);
    const isDone = last && isLlmMessage(last) && last.role === "assistant" && !last.errorMessage;
    if (isDone && last.stopReason !== "aborted") {
      const texts = await this.#takeWaiting();
      // Of an agent that others use as well, one of them may have sent it.
      if (texts.length > 0) await this.#send(texts.join("\n\n"), false, true);
      // Those of an agent elsewhere wait there, also while this terminal does not know it.
    } else if (!this.#harness?.shared) this.takeBack();
  }

  async #queue(text: string, followUp: boolean): Promise<void> {
    const { view } = this.#options;
    const task = this.#task;
    const harness = await this.#opened();
    const { files } = await findFiles(text, harness);
    if (task?.stop.signal.aborted) return view.giveBack([text]);
    // The task is over by now.
    if (this.#task !== task) return this.#send(text, followUp, true);
    const message: string | AgentMessage =
      files.length === 0
        ? text
        : { role: "user", content: [{ type: "text", text }, ...files], timestamp: Date.now() };
    const queued = harness.queue.add(followUp ? "followUp" : "steering", message);
    view.update();
    try {
      await queued;
    } catch (error) {
      view.giveBack([text]);
      throw error;
    }
    view.show({ type: "queued", text, followUp });
  }

  async #takeWaiting(): Promise<readonly string[]> {
    return (await this.#harness?.queue.take()) ?? [];
  }

  #findCommand(text: string): { command: Command<C>; rest: string } | undefined {
    const parsed = parseCommand(text);
    if (!parsed) return undefined;
    const { name, rest } = parsed;
    const commands = this.#options.commands();
    const command = findCommand(name, commands);
    if (command) return { command, rest };
    // "/tmp is full" is about a folder.
    if (name !== "" && existsSync(`/${name}`)) return undefined;
    const instead = this.#options.findInstead?.(name);
    if (instead !== undefined) throw new Error(instead);
    const names = commands.flatMap((each) => [each.name, ...(each.aliases ?? [])]);
    const near = nearNames(name, names).map((each) => `/${each}`);
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw new InputRejected(`There is no command "/${name}".${hint} /help lists the commands.`);
  }

  async #runCommand(command: Command<C>, rest: string, typed?: string): Promise<void> {
    const { view } = this.#options;
    let result: CommandResult | "stopped" = "stopped";
    const run = async (signal: AbortSignal): Promise<void> => {
      const harness = await orAborted(this.#opened(), signal);
      if (harness) {
        result = await runCommand(command, rest, this.#options.commandContext(harness, signal));
      }
      if (result === "stopped") {
        view.show({ type: "note", text: "Stopped." });
        // What the command had the agent do ends soon: the next prompt needs the agent.
        await harness?.agent.waitForIdle();
      } else await this.#showResult(result);
    };
    const { endsItself = false } = command;
    if (!this.#task) await this.#perform(run, { name: `/${command.name}`, endsItself });
    else if (command.allowWhileRunning) await this.#runAside(run);
    else throw new InputRejected(this.#waitReason(`/${command.name}`));
    if (result === "stopped") return;
    const { followUp = false, prompt, quit = false, retry = false } = result as CommandResult;
    if (quit) this.#options.quit();
    if (retry) await this.#askAgain(await this.#opened());
    if (prompt !== undefined) {
      const isMade = typed !== undefined && !typed.includes(prompt.trim());
      if (isMade) view.show({ type: "expanded", typed, text: prompt });
      await this.#send(prompt, followUp, false);
    }
  }

  async #showResult({ open, show = [], edit }: CommandResult): Promise<void> {
    const { reopen, view } = this.#options;
    if (open) await reopen(open);
    if (show.length > 0) view.show({ type: "parts", parts: show });
    if (edit !== undefined) view.edit(edit);
  }

  async #runAside(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const aside = new AbortController();
    this.#asides.add(aside);
    try {
      await run(aside.signal);
    } finally {
      this.#asides.delete(aside);
      this.#options.view.update();
    }
  }

  /** `!command`, and `!!command`, which the model does not see. */
  async #runUserCommand(text: string): Promise<void> {
    const aside = text.startsWith("!!");
    const command = text.slice(aside ? 2 : 1).trim();
    if (command === "") return;
    if (this.#task) throw new InputRejected(this.#waitReason("A command"));
    const { env, view } = this.#options;
    await this.#perform(async (signal) => {
      const harness = await orAborted(this.#opened(), signal);
      if (!harness) return view.giveBack([text]);
      if (harness.refusesCommands !== undefined) throw new InputRejected(harness.refusesCommands);
      const { runUserCommand } = await import("./run-user-command.ts");
      view.show({ type: "user_command_start", command, aside });
      const message = await runUserCommand(
        { command, aside },
        {
          toolset: harness.toolset,
          env,
          signal,
          onOutput: (output) => view.show({ type: "user_command_output", output }),
        },
      );
      view.show({ type: "user_command_end", message });
      this.#userCommands.push(message);
    });
  }

  #waitReason(what: string): string {
    return `${what} has to wait until the agent is done. ${this.#options.view.stopKey} interrupts.`;
  }

  /** Does one thing, as the task. */
  async #perform(
    work: (signal: AbortSignal) => Promise<Outcome | void>,
    command: Pick<Task, "name" | "endsItself"> = {},
  ): Promise<void> {
    const { clock, view } = this.#options;
    const startedAt = clock.now();
    const task: Task = { ...command, startedAt, stop: new AbortController() };
    this.#task = task;
    view.update();
    try {
      const outcome = await work(task.stop.signal);
      this.#task = undefined;
      if (outcome?.sessionError !== undefined) {
        view.show({ type: "warning", text: outcome.sessionError });
      }
      const durationMs = clock.now() - startedAt;
      view.show({ type: "end", durationMs, ...(outcome && { outcome }) });
    } finally {
      this.#task = undefined;
      view.update();
      this.#followShared();
    }
  }

  #onAgentEvent(event: AgentEvent): void {
    this.#options.view.show({ type: "event", event });
    if (event.type === "agent_start") {
      this.#hasStarted = true;
      // It was interrupted before it started.
      if (this.#task?.stop.signal.aborted) this.interrupt();
      this.#followShared();
    }
    if (event.type === "message_end") this.#count(event.message);
  }

  #count(message: AgentMessage): void {
    if (!isLlmMessage(message) || message.role !== "assistant") return;
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = message.usage;
    const total = input + output + cacheRead + cacheWrite;
    if (total > 0) this.#contextTokens = total;
  }
}

async function findFiles(
  text: string,
  { toolset, pictureFolder = toolset.env.workspace.root }: ConversationAgent,
): Promise<{ files: readonly UserContent[]; problems: readonly string[] }> {
  if (!FILE_NAMED.test(text)) return { files: [], problems: [] };
  const { filesIn } = await import("./prompt-files.ts");
  return filesIn(text, pictureFolder);
}

/** A picture, or a mention of another file: most prompts have none, and load nothing for it. */
const FILE_NAMED = /\.(?:png|jpe?g|gif|webp)|@\S/i;

function isInterruption(answer: ApprovalAnswer): boolean {
  return answer.allow === false && answer.reason === "interrupted";
}
