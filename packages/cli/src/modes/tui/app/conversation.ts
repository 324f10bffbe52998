import { existsSync } from "node:fs";
import type { TalkOptions } from "../start/agent-opener.ts";
import { type AgentEvent, type AgentMessage, isLlmMessage } from "@gyre/agent";
import { addUsage, type Usage } from "@gyre/ai";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import type { Harness } from "../../../harness/harness.ts";
import { askPermission } from "./ask-permission.ts";
import type { FooterFacts } from "./footer.ts";
import { keepInterruptions, wasInterrupted } from "./interrupted.ts";
import type { Key } from "../terminal/key.ts";
import { NoticeBlock } from "../transcript/message-blocks.ts";
import { toNextLevel, toNextMode } from "./next-setting.ts";
import type { Row } from "../terminal/row.ts";
import { runCommand } from "./run-command.ts";
import { waitingOf, waitingRows, workingRow } from "./status.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Transcript } from "../transcript/transcript.ts";
import type { CommandWorld, TerminalCommand } from "../ui/ui.ts";
import type { Window } from "./window.ts";
import { orStopped, type Task, Work } from "./work.ts";

/** A second Esc or Ctrl-C within this time means more than the first. */
const TWICE_MS = 600;
const LEAVE_MS = 2_000;
/** Who has waited for so long may be looking elsewhere. */
const NOTIFY_AFTER_MS = 5_000;
const BELL = "\x07";

export interface ConversationOptions extends TalkOptions {
  window: Window;
  transcript: Transcript;
  theme: Theme;
  editorText: () => string;
  /** Keeps a text that was cleared among the earlier prompts. */
  remember: (text: string) => void;
}

/** What was typed could not be taken, and nothing was done: it goes back to the editor. */
class NotTaken extends Error {}

/**
 * What is done with what is typed: prompts, steering, commands, interruptions. Shows what the
 * agent does through the transcript, and asks for permission.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  #harness: Harness | undefined;
  #opening: Promise<Harness> | undefined;
  #unsubscribe: (() => void) | undefined;
  readonly #work: Work;
  /** Commands that run beside what is being done. */
  readonly #asides = new Set<AbortController>();
  #usage: Usage = {};
  #contextTokens: number | undefined;
  /** What the user ran, for the next prompt. */
  #ran: string[] = [];
  #runs = 0;
  /** Whether the agent has begun with the last prompt. */
  #hasBegun = false;
  #pressed: { name: string; at: number } = { name: "", at: 0 };
  /** When Esc did so. */
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #hint: string | undefined;

  constructor(options: ConversationOptions) {
    this.#options = options;
    const { clock, transcript, window } = options;
    this.#work = new Work({
      clock,
      draw: () => window.draw(),
      isCalm: () => transcript.isStreaming || window.hasPanel,
    });
  }

  get #task(): Task | undefined {
    return this.#work.task;
  }

  /** Whether it works on something else than one of our commands. */
  get isWorking(): boolean {
    return this.#task !== undefined && this.#task.name === undefined;
  }

  /** Whether there is, or will be, somebody to talk to. */
  get isOpening(): boolean {
    return this.#opening !== undefined;
  }

  get harness(): Harness | undefined {
    return this.#harness;
  }

  /** Talks to this one from now on. What is typed before it is open waits for it. */
  use(opening: Promise<Harness>): void {
    this.#unsubscribe?.();
    this.#harness = undefined;
    this.#usage = {};
    this.#contextTokens = undefined;
    this.#opening = opening;
    opening.then(
      (harness) => {
        this.#harness = harness;
        keepInterruptions(harness);
        for (const message of harness.agent.state.messages) this.#count(message);
        this.#unsubscribe = harness.agent.subscribe((event) => this.#see(event));
        this.#options.window.draw();
      },
      // Who opened it tells.
      () => {},
    );
  }

  /** The rows above the editor: what it does, what waits, a hint. */
  status(columns: number): readonly Row[] {
    const { clock, theme, transcript } = this.#options;
    const rows: Row[] = [];
    const isAsking = this.#options.window.hasPanel && !this.isWorking;
    const task = this.#task;
    if (task && !isAsking) {
      const elapsedMs = clock.now() - task.startedAt;
      const activity = task.name ?? (transcript.activity || "working");
      rows.push(workingRow({ activity, elapsedMs, tick: this.#work.tick }, columns, theme));
    }
    const agent = this.#harness?.agent;
    if (agent) rows.push(...waitingRows(waitingOf(agent), columns, theme));
    if (this.#hint !== undefined) rows.push([{ text: this.#hint, style: theme.dim }]);
    return rows;
  }

  get facts(): FooterFacts {
    const harness = this.#harness;
    const { settings } = this.#options.setup();
    return {
      ...(harness && { model: harness.model }),
      thinking: harness?.agent.state.thinkingLevel ?? settings.thinking ?? "off",
      mode: harness?.mode ?? settings.mode ?? "ask",
      usage: this.#usage,
      ...(this.#contextTokens !== undefined && { contextTokens: this.#contextTokens }),
    };
  }

  /** What was typed, and sent. */
  submit(text: string, followUp: boolean): void {
    this.#hint = undefined;
    this.#submit(text, followUp).catch((error: unknown) => {
      if (error instanceof NotTaken) this.#giveBack([text]);
      this.#tell(error);
    });
  }

  async #submit(text: string, followUp: boolean): Promise<void> {
    if (text.startsWith("!")) return this.#run(text);
    const command = this.#commandIn(text);
    if (command) return this.#command(command.command, command.rest);
    await this.#say(text, followUp);
  }

  /** Sends it, or has it wait for its turn. */
  async #say(text: string, followUp: boolean): Promise<void> {
    const { name } = this.#task ?? {};
    if (name !== undefined) throw new NotTaken(`${name} is not done yet. Esc stops it.`);
    await (this.#task ? this.#queue(text, followUp) : this.prompt(text));
  }

  /** Sends a prompt, and shows all that comes of it. */
  async prompt(text: string): Promise<void> {
    await this.#working(async (signal) => {
      const harness = await orStopped(this.#opened(), signal);
      if (!harness) return this.#giveBack([text]);
      const { images, problems } = await this.#images(text, harness);
      if (signal.aborted) return this.#giveBack([text]);
      for (const problem of problems) this.#options.window.warn(problem);
      const ran = this.#ran;
      this.#ran = [];
      const whole = [text, ...ran].join("\n\n");
      this.#hasBegun = false;
      const outcome = await harness
        .prompt({ text: whole, signal, ...(images.length > 0 && { images }) })
        .catch((error: unknown) => {
          // A hook was interrupted, or did not let it pass: nobody has seen it.
          if (!this.#hasBegun) {
            this.#ran.unshift(...ran);
            this.#giveBack([text, ...this.#taken()]);
          }
          throw error;
        });
      if (outcome.sessionError !== undefined) this.#options.window.warn(outcome.sessionError);
    });
    await this.#sendRest();
  }

  /** What was sent when the run had taken its last message: nobody else looks at it. */
  async #sendRest(): Promise<void> {
    const agent = this.#harness?.agent;
    if (!agent || this.#task || waitingOf(agent).length === 0) return;
    const last = agent.state.messages.at(-1);
    const isDone = last && isLlmMessage(last) && last.role === "assistant" && !last.errorMessage;
    if (isDone && last.stopReason !== "aborted") await this.prompt(this.#taken().join("\n\n"));
    else this.#takeBack();
  }

  /** Takes up what was cut off. What the user has interrupted is not: it waits for them. */
  async takeUp(): Promise<void> {
    const harness = await this.#opened();
    if (this.#task || !harness.isCutOff || (await wasInterrupted(harness))) return;
    // Somebody may have been quicker.
    if (this.#task) return;
    await this.#working(async () => void (await harness.takeUp()));
    await this.#sendRest();
  }

  /** Something was typed: what was pressed before has no second time. */
  typed(): void {
    this.#pressed = { name: "", at: 0 };
    this.#hint = undefined;
  }

  /** A key that the editor has no use for. */
  key(key: Key): void {
    const { clock } = this.#options;
    const now = clock.now();
    const name = `${key.ctrl ? "ctrl+" : ""}${key.alt ? "alt+" : ""}${key.shift ? "shift+" : ""}${key.name}`;
    const since = this.#pressed.name === name ? now - this.#pressed.at : Number.POSITIVE_INFINITY;
    this.#pressed = { name, at: now };
    const isHinted = this.#hint !== undefined;
    this.#hint = undefined;
    switch (name) {
      case "escape":
        return this.#escape(since < TWICE_MS, now);
      case "ctrl+c":
        return this.#clearOrLeave(isHinted && since < LEAVE_MS);
      case "ctrl+d":
        return this.#options.quit();
      case "alt+up":
        return this.#takeBack();
      case "ctrl+g":
        return void this.#editOutside();
      case "ctrl+o":
        return this.#options.transcript.expand();
      case "shift+tab":
        return this.#next(toNextMode);
      case "ctrl+t":
        return this.#next(toNextLevel);
      default:
    }
  }

  #escape(isSecond: boolean, now: number): void {
    // Who interrupts in a hurry, and once more, does not ask for the tree.
    const isHurry = now - this.#interruptedAt < TWICE_MS;
    const isBusy = this.#task !== undefined || this.#asides.size > 0;
    if (isBusy || isHurry) this.#interruptedAt = now;
    if (isBusy) this.interrupt();
    else if (isSecond && !isHurry) this.#named("tree");
  }

  /** Stops what it does; what waits comes back to the editor. */
  interrupt(): void {
    this.#takeBack();
    this.#task?.stop.abort();
    for (const aside of this.#asides) aside.abort();
    this.#harness?.agent.abort();
  }

  async approve(request: ApprovalRequest): Promise<ApprovalAnswer> {
    const { toolset } = await this.#opened();
    this.#notify("gyre asks for permission");
    const cwd = toolset.env.workspace.root;
    const answer = await askPermission(request, { ...this.#options, cwd });
    const isLeft = answer ? isInterruption(answer) : request.signal?.aborted !== true;
    if (isLeft) this.interrupt();
    return answer ?? { allow: false, reason: "interrupted" };
  }

  /** Ends what goes on; a command that has asked for that goes on. */
  async close(): Promise<void> {
    if (this.isWorking) this.#task?.stop.abort();
    this.#work.stopSpinner();
    this.#unsubscribe?.();
    await (await this.#opening?.catch(() => undefined))?.close();
  }

  #opened(): Promise<Harness> {
    if (!this.#opening) throw new Error("Nothing is open.");
    return this.#opening;
  }

  async #images(text: string, { toolset }: Harness) {
    if (!/\.(?:png|jpe?g|gif|webp)/i.test(text)) return { images: [], problems: [] };
    const { imagesIn } = await import("../editor/prompt-images.ts");
    return imagesIn(text, toolset.env.workspace.root);
  }

  async #queue(text: string, followUp: boolean): Promise<void> {
    const task = this.#task;
    const harness = await this.#opened();
    const { images } = await this.#images(text, harness);
    // What it was to wait for is over.
    if (task?.stop.signal.aborted) return this.#giveBack([text]);
    if (this.#task !== task) return this.#say(text, followUp);
    const message: string | AgentMessage =
      images.length === 0
        ? text
        : { role: "user", content: [{ type: "text", text }, ...images], timestamp: Date.now() };
    if (followUp) harness.agent.followUp(message);
    else harness.agent.steer(message);
    this.#options.window.draw();
  }

  #takeBack(): void {
    this.#giveBack(this.#taken());
  }

  /** All that waits, which does so no more. */
  #taken(): string[] {
    const agent = this.#harness?.agent;
    if (!agent) return [];
    return waitingOf(agent).map(({ queue, id, text }) => {
      agent.takeQueued(queue, id);
      return text;
    });
  }

  /** Texts go back to the editor, before what is typed there. */
  #giveBack(texts: readonly string[]): void {
    if (texts.length === 0) return;
    const typed = this.#options.editorText();
    this.#options.window.edit([...texts, ...(typed === "" ? [] : [typed])].join("\n\n"));
  }

  /** What is typed goes first, then what is done; who wants to leave has neither. */
  #clearOrLeave(isSecond: boolean): void {
    const { editorText, quit, remember, window } = this.#options;
    if (window.hasPanel) return window.leavePanel();
    const typed = editorText();
    if (typed !== "") {
      remember(typed.trimEnd());
      return window.edit("");
    }
    if (this.#canStop) return this.interrupt();
    if (isSecond) return quit();
    this.#hint = "Ctrl-C again leaves.";
  }

  /** Whether there is anything to interrupt that was not interrupted already. */
  get #canStop(): boolean {
    const isTask = this.#task !== undefined && !this.#task.stop.signal.aborted;
    return isTask || [...this.#asides].some(({ signal }) => !signal.aborted);
  }

  #named(name: string): void {
    const command = this.#options.commands().find((each) => each.name === name);
    if (command) void this.#command(command, "").catch((error: unknown) => this.#tell(error));
  }

  #commandIn(text: string): { command: TerminalCommand; rest: string } | undefined {
    const [, name, rest = ""] = /^\/([\w:.-]*)(?:\s+([^]*))?$/.exec(text) ?? [];
    if (name === undefined) return undefined;
    const commands = this.#options.commands();
    const command = commands.find((each) => each.name === name);
    if (command) return { command, rest: rest.trim() };
    // "/tmp is full" is about a folder.
    if (name !== "" && existsSync(`/${name}`)) return undefined;
    throw new NotTaken(`There is no command "/${name}". /help lists those that there are.`);
  }

  async #command(command: TerminalCommand, rest: string): Promise<void> {
    const run = async (signal: AbortSignal): Promise<void> => {
      await orStopped(this.#opened(), signal);
      const world = signal.aborted ? undefined : this.#worldFor(signal);
      const end = world && (await runCommand(command, rest, world));
      if (end !== "done") this.#options.transcript.note("Stopped.");
    };
    if (!this.#task) return this.#working(run, `/${command.name}`);
    if (!command.anytime) {
      throw new NotTaken(`/${command.name} has to wait until it is done. Esc interrupts.`);
    }
    const aside = new AbortController();
    this.#asides.add(aside);
    try {
      await run(aside.signal);
    } finally {
      this.#asides.delete(aside);
      this.#options.window.draw();
    }
  }

  /** What a command works with; nothing before the agent is open. */
  get world(): CommandWorld | undefined {
    return this.#worldFor(this.#options.io.signal);
  }

  #worldFor(signal: AbortSignal): CommandWorld | undefined {
    const harness = this.#harness;
    const { io, quit, reopen, setup, window } = this.#options;
    const prompt = (text: string): void => {
      // The command is over with that.
      if (this.#task?.name !== undefined) this.#work.forget();
      this.#say(text, false).catch((error: unknown) => this.#tell(error));
    };
    return harness && { ui: window, harness, io, setup: setup(), signal, reopen, quit, prompt };
  }

  /** `!command`, and `!!command`, which the model is not told of. */
  async #run(text: string): Promise<void> {
    const isAside = text.startsWith("!!");
    const command = text.slice(isAside ? 2 : 1).trim();
    if (command === "") return;
    if (this.#task) throw new NotTaken("A command has to wait until it is done. Esc interrupts.");
    await this.#working(async (signal) => {
      const harness = await orStopped(this.#opened(), signal);
      if (!harness) return this.#giveBack([text]);
      const { toolset } = harness;
      const { runUserCommand } = await import("./user-command.ts");
      const { io, transcript } = this.#options;
      const said = await runUserCommand({
        command,
        isAside,
        id: `user-${++this.#runs}`,
        toolset,
        env: io.env,
        signal,
        emit: (event) => {
          transcript.handle(event);
          this.#options.window.drawSoon();
        },
      });
      if (!isAside) this.#ran.push(said);
    });
  }

  async #working(work: (signal: AbortSignal) => Promise<void>, name?: string): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.now();
    try {
      await this.#work.run(work, name);
    } finally {
      if (clock.now() - startedAt > NOTIFY_AFTER_MS) this.#notify("gyre is done");
    }
  }

  #see(event: AgentEvent): void {
    const { transcript, window } = this.#options;
    transcript.handle(event);
    if (event.type === "agent_start") {
      this.#hasBegun = true;
      // It was interrupted before that.
      if (this.#task?.stop.signal.aborted) this.interrupt();
    }
    if (event.type === "message_end") this.#count(event.message);
    window.drawSoon();
  }

  #count(message: AgentMessage): void {
    if (!isLlmMessage(message) || message.role !== "assistant") return;
    const { usage } = message;
    this.#usage = addUsage(this.#usage, usage);
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
    const total = input + output + cacheRead + cacheWrite;
    if (total > 0) this.#contextTokens = total;
  }

  #notify(text: string): void {
    const { setup, window } = this.#options;
    const { notify = "off" } = setup().settings;
    if (notify === "off") return;
    const told = notify === "desktop" ? `\x1b]9;${text}${BELL}` : "";
    window.control(told + BELL);
  }

  #next(set: (harness: Harness) => Promise<void>): void {
    if (!this.#harness) return;
    set(this.#harness).then(
      () => this.#options.window.draw(),
      (error: unknown) => this.#tell(error),
    );
  }

  async #editOutside(): Promise<void> {
    const { editorText, io, window } = this.#options;
    try {
      const { editOutside } = await import("../editor/external-editor.ts");
      const text = await window.suspend(() => editOutside(editorText(), io.env));
      if (text !== undefined) window.edit(text);
    } catch (error) {
      this.#tell(error);
    }
  }

  #tell(error: unknown): void {
    const { theme, window } = this.#options;
    const text = error instanceof Error ? error.message : String(error);
    window.show(new NoticeBlock(text, theme.bad, [{ text: "✗ ", style: theme.bad }]));
  }
}

function isInterruption(answer: ApprovalAnswer): boolean {
  return answer.allow === false && answer.reason === "interrupted";
}
