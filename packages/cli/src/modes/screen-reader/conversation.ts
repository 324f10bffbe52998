import type { ImageContent } from "@gyre/ai";
import type { TalkOptions } from "../tui/start/agent-opener.ts";
import { type ApprovalAnswer, type ApprovalRequest, ruleFor } from "@gyre/tools";
import type { Harness, Outcome } from "../../harness/harness.ts";
import { shownText } from "../../text/shown-text.ts";
import { keepInterruptions, wasInterrupted } from "../tui/app/interrupted.ts";
import { runCommand } from "../tui/app/run-command.ts";
import { waitingOf } from "../tui/app/status.ts";
import type { CommandWorld, TerminalCommand } from "../tui/ui/ui.ts";
import { orStopped } from "../tui/app/work.ts";
import type { LineTerminal } from "./line-terminal.ts";
import type { LineUi } from "./line-ui.ts";
import { lineCommands } from "./line-commands.ts";
import type { SpokenEvents } from "./events.ts";
import { askPermission } from "./permission.ts";
import { spokenTime } from "./format.ts";

const PROMPT = "You: ";

const ENDS: Partial<Record<Outcome["end"]["stop"], string>> = {
  done: "Done.",
  aborted: "Stopped.",
  error: "It ended with an error.",
  limit: "It ended at a limit.",
};

export interface SpokenConversationOptions extends TalkOptions {
  terminal: LineTerminal;
  ui: LineUi;
  events: SpokenEvents;
}

/** What is done with each line: prompts, steering, commands. Asks for permission. */
export class SpokenConversation {
  readonly #options: SpokenConversationOptions;
  readonly #own: readonly TerminalCommand[];
  #harness: Harness | undefined;
  #opening: Promise<Harness> | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Set while it works on a prompt or a command of the user. */
  #work: AbortController | undefined;
  /** Commands that are not done yet. */
  readonly #commandsRunning = new Set<AbortController>();
  /** A text that was put back, for `/send`. */
  #draft: string | undefined;
  /** What the user ran, for the next prompt. */
  #ran: string[] = [];
  #runs = 0;

  constructor(options: SpokenConversationOptions) {
    this.#options = options;
    this.#own = lineCommands({
      all: () => [...this.#own, ...options.commands()],
      queue: () => (this.#harness ? waitingOf(this.#harness.agent) : []),
      follow: (text) => this.#follow(text),
      stop: () => this.interrupt(),
      takeBack: () => this.#takeBack(),
      send: () => this.#send(),
      say: (text) => options.terminal.line(text),
    });
  }

  get harness(): Harness | undefined {
    return this.#harness;
  }

  get isWorking(): boolean {
    return this.#work !== undefined;
  }

  /** Talks to this one from now on. What is typed before it is open waits for it. */
  use(opening: Promise<Harness>): void {
    this.#unsubscribe?.();
    this.#harness = undefined;
    this.#opening = opening;
    opening.then(
      (harness) => {
        this.#harness = harness;
        keepInterruptions(harness);
        const { events } = this.#options;
        this.#unsubscribe = harness.agent.subscribe((event) => events.handle(event));
      },
      // Who opened it tells.
      () => {},
    );
  }

  /** Says that a line is waited for, where one is. */
  prompt(): void {
    if (!this.#work && this.#commandsRunning.size === 0) this.#options.terminal.prompt(PROMPT);
  }

  /** What was typed. */
  take(line: string): void {
    void this.#settled(this.#take(line));
  }

  /** Takes up what was cut off. What the user has interrupted is not: it waits for them. */
  async takeUp(): Promise<void> {
    const harness = await this.#opened();
    if (!harness.isCutOff || (await wasInterrupted(harness))) return this.prompt();
    // Somebody may have been quicker.
    if (this.#work) return;
    this.#options.terminal.line("It goes on where it was cut off.");
    await this.#settled(this.#working(() => harness.takeUp()));
  }

  /** Keeps a text that `/send` sends. */
  keep(text: string): void {
    this.#draft = text;
  }

  /** Stops what it does; what waits is taken back. Tells whether there was anything to stop. */
  interrupt(): boolean {
    const { terminal } = this.#options;
    const isBusy = this.#work !== undefined || this.#commandsRunning.size > 0;
    const isLeft = terminal.leaveQuestion();
    if (!isBusy) return isLeft;
    if (this.#harness && waitingOf(this.#harness.agent).length > 0) this.#takeBack();
    this.#work?.abort();
    for (const command of this.#commandsRunning) command.abort();
    this.#harness?.agent.abort();
    return true;
  }

  async approve(request: ApprovalRequest): Promise<ApprovalAnswer> {
    const { clock, events, terminal } = this.#options;
    const askedAt = clock.now();
    const { toolset } = await this.#opened();
    const rule = ruleFor(request);
    const answer = await askPermission(request, {
      terminal,
      cwd: toolset.env.workspace.root,
      now: () => clock.now(),
      ...(rule !== undefined && { rule }),
    });
    events.waited(request.callId, clock.now() - askedAt);
    if (answer.allow === false && answer.reason === "interrupted") this.interrupt();
    return answer;
  }

  /** Ends what goes on. */
  async close(): Promise<void> {
    this.#work?.abort();
    this.#unsubscribe?.();
    await (await this.#opening?.catch(() => undefined))?.close();
  }

  /** What a command works with; nothing before the agent is open. */
  #worldFor(signal: AbortSignal): CommandWorld | undefined {
    const harness = this.#harness;
    const { io, quit, reopen, setup, ui } = this.#options;
    const prompt = (text: string): void => this.#sent(text);
    return harness && { ui, harness, io, setup: setup(), signal, reopen, quit, prompt };
  }

  async #take(line: string): Promise<void> {
    const text = line.trim();
    if (text === "") return;
    if (text.startsWith("!")) return this.#run(text);
    const command = this.#commandIn(text);
    if (command) return this.#command(command.command, command.rest);
    if (this.#work) return this.#steer(text);
    if (this.#commandsRunning.size > 0)
      throw new Error("A command is not done yet. /stop ends it.");
    await this.#ask(text);
  }

  /** Waits for it, tells what went wrong, and is ready for the next line. */
  async #settled(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#options.terminal.line(`Error: ${shownText(text)}`);
    }
    this.prompt();
  }

  #opened(): Promise<Harness> {
    if (!this.#opening) throw new Error("Nothing is open.");
    return this.#opening;
  }

  #commandIn(text: string): { command: TerminalCommand; rest: string } | undefined {
    const [, name, rest = ""] = /^\/([\w:.-]+)(?:\s+([^]*))?$/.exec(text) ?? [];
    if (name === undefined) return undefined;
    const commands = [...this.#own, ...this.#options.commands()];
    const command = commands.find((each) => each.name === name);
    if (command) return { command, rest: rest.trim() };
    throw new Error(`There is no command "/${name}". /help lists those that there are.`);
  }

  async #command(command: TerminalCommand, rest: string): Promise<void> {
    const isBusy = this.#work !== undefined || this.#commandsRunning.size > 0;
    if (isBusy && !command.anytime) {
      throw new Error(`/${command.name} has to wait until it is done. /stop interrupts.`);
    }
    const stop = new AbortController();
    const isOwn = this.#own.includes(command);
    if (!isOwn) this.#commandsRunning.add(stop);
    try {
      await orStopped(this.#opened(), stop.signal);
      const world = stop.signal.aborted ? undefined : this.#worldFor(stop.signal);
      const end = world && (await runCommand(command, rest, world));
      if (end !== "done") this.#options.terminal.line("Stopped.");
    } finally {
      this.#commandsRunning.delete(stop);
    }
  }

  /** A prompt that somebody else wrote: it is told, as nobody has typed it. */
  #sent(text: string): void {
    this.#options.terminal.line(`Sent: ${shownText(text)}`);
    void this.#settled(this.#work ? this.#steer(text) : this.#ask(text));
  }

  async #ask(text: string): Promise<void> {
    this.#draft = undefined;
    this.#options.events.forget();
    await this.#working(async () => {
      const harness = await this.#opened();
      const images = await this.#images(text, harness);
      const ran = this.#ran;
      this.#ran = [];
      const whole = [text, ...ran].join("\n\n");
      return harness.prompt({ text: whole, ...(images.length > 0 && { images }) });
    });
  }

  async #steer(text: string): Promise<void> {
    const { agent } = await this.#opened();
    agent.steer(text);
    this.#options.terminal.line("Told it.");
  }

  async #follow(text: string): Promise<void> {
    if (!this.#work) return this.#ask(text);
    const { agent } = await this.#opened();
    agent.followUp(text);
    this.#options.terminal.line("Told it for when it is done.");
  }

  #takeBack(): void {
    const { terminal } = this.#options;
    const agent = this.#harness?.agent;
    const texts = agent
      ? waitingOf(agent).map(({ queue, id, text }) => {
          agent.takeQueued(queue, id);
          return text;
        })
      : [];
    if (texts.length === 0) return terminal.line("Nothing waits.");
    for (const text of texts) terminal.line(`Taken back: ${shownText(text)}`);
    this.#draft = texts.join("\n\n");
    terminal.line("/send sends that as it is.");
  }

  async #send(): Promise<void> {
    const draft = this.#draft;
    if (draft === undefined) throw new Error("There is no text to send: nothing was put back.");
    this.#draft = undefined;
    return this.#work ? this.#steer(draft) : this.#ask(draft);
  }

  async #images(text: string, { toolset }: Harness): Promise<ImageContent[]> {
    const { imagesIn } = await import("../tui/editor/prompt-images.ts");
    const { images, problems } = await imagesIn(text, toolset.env.workspace.root);
    for (const problem of problems) this.#options.ui.warn(problem);
    return images;
  }

  /** `!command`, and `!!command`, which the model is not told of. */
  async #run(text: string): Promise<void> {
    const isAside = text.startsWith("!!");
    const command = text.slice(isAside ? 2 : 1).trim();
    if (command === "") return;
    if (this.#work) throw new Error("A command has to wait until it is done. /stop interrupts.");
    await this.#working(async (signal) => {
      const { toolset } = await this.#opened();
      const { runUserCommand } = await import("../tui/app/user-command.ts");
      const { events, io } = this.#options;
      const said = await runUserCommand({
        command,
        isAside,
        id: `user-${++this.#runs}`,
        toolset,
        env: io.env,
        signal,
        emit: (event) => events.handle(event),
      });
      if (!isAside) this.#ran.push(said);
      return undefined;
    });
  }

  /** Works until it is done, and says so; what tells itself how it ended says so itself. */
  async #working(work: (signal: AbortSignal) => Promise<Outcome | undefined>): Promise<void> {
    const { clock, terminal, ui } = this.#options;
    const stop = new AbortController();
    const startedAt = clock.now();
    this.#work = stop;
    try {
      const outcome = await work(stop.signal);
      if (!outcome) return;
      if (outcome.sessionError !== undefined) ui.warn(outcome.sessionError);
      const end = ENDS[outcome.end.stop] ?? "It stopped.";
      terminal.line(`${end} It took ${spokenTime(clock.now() - startedAt)}.`);
    } finally {
      this.#work = undefined;
    }
  }
}
