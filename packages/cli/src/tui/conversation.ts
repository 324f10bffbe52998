import { existsSync } from "node:fs";
import { type AgentEvent, type AgentMessage, isLlmMessage } from "@gyre/agent";
import { addUsage, type Clock, type Usage } from "@gyre/ai";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { ruleFor } from "@gyre/tools";
import type { Harness } from "../harness/harness.ts";
import type { Io } from "../io.ts";
import type { Setup } from "../setup.ts";
import type { FooterFacts } from "./footer.ts";
import type { Key } from "./key.ts";
import { NoticeBlock } from "./message-blocks.ts";
import type { Row } from "./row.ts";
import { waitingOf, waitingRows, workingRow } from "./status.ts";
import type { Theme } from "./theme.ts";
import type { Transcript } from "./transcript.ts";
import type { CommandWorld, OpenRequest, TerminalCommand } from "./ui.ts";
import type { Window } from "./window.ts";

/** A second Esc or Ctrl-C within this time means more than the first. */
const TWICE_MS = 600;
const LEAVE_MS = 2_000;
/** How often the spinner turns, while nothing else is drawn. */
const SPIN_MS = 250;
/** How often it does while an answer streams in: each turn costs bytes. */
const CALM_SPIN_MS = 1_000;
/** Who has waited for so long may be looking elsewhere. */
const NOTIFY_AFTER_MS = 5_000;
const BELL = "\x07";
const MODES = ["ask", "auto-edit", "plan"] as const;
const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;

export interface ConversationOptions {
  window: Window;
  transcript: Transcript;
  theme: Theme;
  clock: Clock;
  io: Io;
  setup: () => Setup;
  commands: () => readonly TerminalCommand[];
  /** Opens another session or another place in this one; what is open is closed by it. */
  reopen: (request: OpenRequest) => Promise<void>;
  editorText: () => string;
  quit: () => void;
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
  /** Set while it works on a prompt, on a command of the user, or on one of ours, which has a name. */
  #work: { startedAt: number; stop: AbortController; name?: string } | undefined;
  #usage: Usage = {};
  #contextTokens: number | undefined;
  /** What the user ran, for the next prompt. */
  #ran: string[] = [];
  #runs = 0;
  #tick = 0;
  #stopSpinner: (() => void) | undefined;
  #pressed: { name: string; at: number } = { name: "", at: 0 };
  #hint: string | undefined;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** Whether it works on something else than one of our commands. */
  get isWorking(): boolean {
    return this.#work !== undefined && this.#work.name === undefined;
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
    if (this.#work && !isAsking) {
      const elapsedMs = clock.now() - this.#work.startedAt;
      const activity = this.#work.name ?? (transcript.activity || "working");
      rows.push(workingRow({ activity, elapsedMs, tick: this.#tick }, columns, theme));
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
    const { name } = this.#work ?? {};
    if (name !== undefined) throw new NotTaken(`${name} is not done yet. Esc stops it.`);
    await (this.#work ? this.#queue(text, followUp) : this.prompt(text));
  }

  /** Sends a prompt, and shows all that comes of it. */
  async prompt(text: string): Promise<void> {
    await this.#working(async (signal) => {
      const harness = await this.#opened();
      const { images, problems } = await this.#images(text, harness);
      if (signal.aborted) return this.#giveBack([text]);
      for (const problem of problems) this.#options.window.warn(problem);
      const ran = this.#ran;
      this.#ran = [];
      const whole = [text, ...ran].join("\n\n");
      const outcome = await harness.prompt({ text: whole, ...(images.length > 0 && { images }) });
      if (outcome.sessionError !== undefined) this.#options.window.warn(outcome.sessionError);
    });
    await this.#sendRest();
  }

  /** What was sent when the run had taken its last message: nobody else looks at it. */
  async #sendRest(): Promise<void> {
    const agent = this.#harness?.agent;
    if (!agent || this.#work || waitingOf(agent).length === 0) return;
    const last = agent.state.messages.at(-1);
    const isDone = last && isLlmMessage(last) && last.role === "assistant" && !last.errorMessage;
    if (isDone && last.stopReason !== "aborted") await this.prompt(this.#taken().join("\n\n"));
    else this.#takeBack();
  }

  /** Takes up what was cut off. */
  async takeUp(): Promise<void> {
    const harness = await this.#opened();
    if (this.#work || !harness.isCutOff) return;
    await this.#working(async () => void (await harness.takeUp()));
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
        if (this.#work) {
          // Who interrupts in a hurry does not ask for the tree.
          this.#pressed = { name: "", at: 0 };
          return this.interrupt();
        }
        return since < TWICE_MS ? this.#named("tree") : undefined;
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
        return this.#nextMode();
      case "ctrl+t":
        return this.#nextLevel();
      default:
    }
  }

  /** Stops what it does; what waits comes back to the editor. */
  interrupt(): void {
    this.#takeBack();
    this.#work?.stop.abort();
    this.#harness?.agent.abort();
  }

  async approve(request: ApprovalRequest): Promise<ApprovalAnswer> {
    const { clock, theme } = this.#options;
    const harness = await this.#opened();
    const { PermissionPanel } = await import("./permission-panel.ts");
    const cwd = harness.toolset.env.workspace.root;
    const rule = ruleFor(request);
    const panel = new PermissionPanel(request, {
      theme,
      cwd,
      now: () => clock.now(),
      ...(rule !== undefined && { rule }),
    });
    const window = this.#options.window;
    const withdraw = (): void => window.withdraw(panel);
    request.signal?.addEventListener("abort", withdraw, { once: true });
    this.#notify("gyre asks for permission");
    const answered = this.#options.transcript.asks(request.callId);
    const answer = request.signal?.aborted ? undefined : await window.open(panel);
    answered();
    request.signal?.removeEventListener("abort", withdraw);
    if (!answer || (answer.allow === false && answer.reason === "interrupted")) this.interrupt();
    return answer ?? { allow: false, reason: "interrupted" };
  }

  /** Ends what goes on. */
  async close(): Promise<void> {
    this.#work?.stop.abort();
    this.#stopSpinner?.();
    this.#unsubscribe?.();
    await (await this.#opening?.catch(() => undefined))?.close();
  }

  #opened(): Promise<Harness> {
    if (!this.#opening) throw new Error("Nothing is open.");
    return this.#opening;
  }

  async #images(text: string, { toolset }: Harness) {
    if (!/\.(?:png|jpe?g|gif|webp)/i.test(text)) return { images: [], problems: [] };
    const { imagesIn } = await import("./prompt-images.ts");
    return imagesIn(text, toolset.env.workspace.root);
  }

  async #queue(text: string, followUp: boolean): Promise<void> {
    const harness = await this.#opened();
    const { images } = await this.#images(text, harness);
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

  #clearOrLeave(isSecond: boolean): void {
    const { editorText, quit, window } = this.#options;
    if (window.hasPanel) window.leavePanel();
    else if (this.#work) this.interrupt();
    else if (editorText() !== "") return window.edit("");
    if (isSecond) return quit();
    this.#hint = "Ctrl-C again leaves.";
  }

  #named(name: string): void {
    const command = this.#options.commands().find((each) => each.name === name);
    if (command) void this.#command(command, "").catch((error: unknown) => this.#tell(error));
  }

  #commandIn(text: string): { command: TerminalCommand; rest: string } | undefined {
    const [, name, rest = ""] = /^\/([\w:.-]+)(?:\s+([^]*))?$/.exec(text) ?? [];
    if (name === undefined) return undefined;
    const commands = this.#options.commands();
    const command = commands.find((each) => each.name === name);
    if (command) return { command, rest: rest.trim() };
    // "/tmp is full" is about a folder.
    if (existsSync(`/${name}`)) return undefined;
    throw new NotTaken(`There is no command "/${name}". /help lists those that there are.`);
  }

  async #command(command: TerminalCommand, rest: string): Promise<void> {
    const run = async (): Promise<void> => {
      await this.#opened();
      if (this.world) await command.run(rest, this.world);
    };
    if (!this.#work) return this.#working(run, `/${command.name}`);
    if (!command.anytime) {
      throw new NotTaken(`/${command.name} has to wait until it is done. Esc interrupts.`);
    }
    await run();
    this.#options.window.draw();
  }

  /** What a command works with; nothing before the agent is open. */
  get world(): CommandWorld | undefined {
    const harness = this.#harness;
    const { io, quit, reopen, setup, window } = this.#options;
    const prompt = (text: string): void => {
      // The command is over with that.
      if (this.#work?.name !== undefined) this.#work = undefined;
      this.#say(text, false).catch((error: unknown) => this.#tell(error));
    };
    return harness && { ui: window, harness, io, setup: setup(), reopen, quit, prompt };
  }

  /** `!command`, and `!!command`, which the model is not told of. */
  async #run(text: string): Promise<void> {
    const isAside = text.startsWith("!!");
    const command = text.slice(isAside ? 2 : 1).trim();
    if (command === "") return;
    if (this.#work) throw new NotTaken("A command has to wait until it is done. Esc interrupts.");
    await this.#working(async (signal) => {
      const { toolset } = await this.#opened();
      const { runUserCommand } = await import("./user-command.ts");
      const { io, transcript } = this.#options;
      const said = await runUserCommand({
        command,
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
    const { clock, window } = this.#options;
    const stop = new AbortController();
    const startedAt = clock.now();
    const mine = { startedAt, stop, ...(name !== undefined && { name }) };
    this.#work = mine;
    this.#stopSpinner?.();
    this.#spin();
    window.draw();
    try {
      await work(stop.signal);
    } finally {
      // A command that sends a prompt is over before that.
      if (this.#work === mine) {
        this.#work = undefined;
        this.#stopSpinner?.();
      }
      if (clock.now() - startedAt > NOTIFY_AFTER_MS) this.#notify("gyre is done");
      window.draw();
    }
  }

  #spin(): void {
    const { clock, transcript, window } = this.#options;
    const wait = transcript.isStreaming ? CALM_SPIN_MS : SPIN_MS;
    this.#stopSpinner = clock.after(wait, () => {
      this.#tick++;
      window.draw();
      if (this.#work) this.#spin();
    });
  }

  #see(event: AgentEvent): void {
    const { transcript, window } = this.#options;
    transcript.handle(event);
    // It was interrupted before it began.
    if (event.type === "agent_start" && this.#work?.stop.signal.aborted) this.interrupt();
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

  #nextMode(): void {
    const harness = this.#harness;
    if (!harness) return;
    const at = MODES.findIndex((mode) => mode === harness.mode);
    void harness.setMode(MODES[(at + 1) % MODES.length] ?? "ask").then(
      () => this.#options.window.draw(),
      (error: unknown) => this.#tell(error),
    );
  }

  #nextLevel(): void {
    const harness = this.#harness;
    if (!harness) return;
    const at = LEVELS.findIndex((level) => level === harness.agent.state.thinkingLevel);
    void harness.setThinking(LEVELS[(at + 1) % LEVELS.length] ?? "off").then(
      () => this.#options.window.draw(),
      (error: unknown) => this.#tell(error),
    );
  }

  async #editOutside(): Promise<void> {
    const { editorText, io, window } = this.#options;
    try {
      const { editOutside } = await import("./outside-editor.ts");
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
