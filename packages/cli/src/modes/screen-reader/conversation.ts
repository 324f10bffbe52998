import type { Clock } from "@gyre/ai";
import { type ApprovalAnswer, type ApprovalRequest, ruleFor } from "@gyre/tools";
import { type OpenRequest, text } from "@gyre/coding/internal/conversation/command";
import { ConversationController } from "@gyre/coding/internal/conversation/controller";
import type { Outcome } from "@gyre/coding/internal/conversation/types";
import type { ConversationItem, ConversationView } from "@gyre/coding/internal/conversation/view";
import type { Io } from "../../core/io.ts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Setup } from "../../core/setup.ts";
import {
  createSlashContext,
  type SlashCommand,
  type SlashContext,
} from "../../slash-commands/command-context.ts";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { row } from "../tui/terminal/row.ts";
import type { ScreenReaderEvents } from "./events.ts";
import { timeInWords } from "./format.ts";
import type { LineTerminal } from "./line-terminal.ts";
import type { LineUi } from "./line-ui.ts";
import { partLines } from "./parts.ts";
import { askPermission } from "./permission.ts";

const PROMPT = "You: ";

const HELP = `Write a line to ask; while it works, a line steers it.
A line that ends in a backslash goes on in the next one.
An exclamation mark before a line runs it as a command of yours, which the model sees. With two it does not see it.
Ctrl-C interrupts, and leaves where nothing runs. Ctrl-D leaves.
The commands:`;

const ENDS: Partial<Record<Outcome["end"]["stop"], string>> = {
  done: "Done.",
  aborted: "Stopped.",
  error: "It ended with an error.",
  limit: "It ended at a limit.",
};

export interface ScreenReaderConversationOptions {
  terminal: LineTerminal;
  ui: LineUi;
  events: ScreenReaderEvents;
  clock: Clock;
  io: Io;
  setup: () => Setup;
  commands: () => readonly SlashCommand[];
  reopen: (request: OpenRequest) => Promise<void>;
  quit: () => void;
}

/** The conversation as lines one after the other, for a screen reader. */
export class ScreenReaderConversation implements ConversationView {
  readonly stopKey = "/stop";
  readonly controller: ConversationController<Harness, SlashContext>;
  readonly #options: ScreenReaderConversationOptions;
  /** A text that was given back, for `/send`. */
  #draft: string | undefined;

  constructor(options: ScreenReaderConversationOptions) {
    this.#options = options;
    this.controller = new ConversationController<Harness, SlashContext>({
      ...options,
      view: this,
      env: options.io.env,
      commandContext: (harness, signal) => this.#commandContext(harness, signal),
    });
  }

  /** Sends the line that was typed. */
  submit(line: string): void {
    const typed = line.trim();
    if (typed === "") this.ready();
    else void this.controller.submit(typed);
  }

  /** Stops what runs, or leaves a question. Answers whether there was anything to stop. */
  interrupt(except?: AbortSignal): boolean {
    const isLeft = this.#options.terminal.leaveQuestion();
    return this.controller.interrupt(except) || isLeft;
  }

  show(item: ConversationItem): void {
    const { events, terminal, ui } = this.#options;
    switch (item.type) {
      case "event":
        return events.handle(item.event);
      case "user_command_start":
        return events.startUserCommand(item.command);
      case "user_command_output":
        return undefined;
      case "user_command_end":
        return events.endUserCommand(item.message);
      case "parts":
        for (const part of item.parts) for (const line of partLines(part)) terminal.line(line);
        return undefined;
      case "note":
        return terminal.line(item.text);
      case "warning":
        return ui.warn(item.text);
      case "error":
        return terminal.line(`Error: ${shownText(item.text)}`);
      case "rejected":
        return terminal.line(`Error: ${shownText(item.reason)}`);
      case "prompt":
        this.#draft = undefined;
        // The user has not seen a prompt that a command wrote.
        if (!item.isTyped) terminal.line(`Sent: ${shownText(item.text)}`);
        return undefined;
      case "queued":
        return terminal.line(
          item.followUp
            ? "Queued: it reads this when it is done."
            : "Queued: it reads this before its next step.",
        );
      case "resumed":
        return terminal.line("It goes on where it was cut off.");
      case "end":
        return this.#showEnd(item.durationMs, item.outcome);
    }
  }

  async ask(request: ApprovalRequest, cwd: string): Promise<ApprovalAnswer> {
    const { clock, events, terminal } = this.#options;
    const askedAt = clock.now();
    const rule = ruleFor(request);
    const answer = await askPermission(request, {
      terminal,
      cwd,
      now: () => clock.now(),
      ...(rule !== undefined && { rule }),
    });
    events.waited(request.callId, clock.now() - askedAt);
    return answer;
  }

  edit(draft: string): void {
    if (draft === "") return;
    this.#options.terminal.line(`Your text:\n${shownText(draft)}\n/send sends it as it is.`);
    this.#draft = draft;
  }

  giveBack(texts: readonly string[]): void {
    const { terminal } = this.#options;
    for (const each of texts) terminal.line(`Taken back: ${shownText(each)}`);
    this.#draft = texts.join("\n\n");
    terminal.line("/send sends that as it is.");
  }

  /** What is being done is not shown: its end is. */
  update(): void {}

  ready(): void {
    if (!this.controller.isBusy) this.#options.terminal.prompt(PROMPT);
  }

  close(): Promise<void> {
    return this.controller.close();
  }

  #showEnd(durationMs: number, outcome: Outcome | undefined): void {
    if (!outcome) return;
    const end = ENDS[outcome.end.stop] ?? "It stopped.";
    this.#options.terminal.line(`${end} It took ${timeInWords(durationMs)}.`);
  }

  #commandContext(harness: Harness, signal: AbortSignal): SlashContext {
    const { ui } = this.#options;
    return createSlashContext(this.#options, {
      signal,
      harness,
      help: [text(HELP)],
      choose: ({ about = [], ...question }) =>
        ui.choose({ ...question, about: about.map((line) => row(oneLine(line))) }),
      show: (...parts) => this.show({ type: "parts", parts }),
      chooseEntry: (session) => ui.chooseEntry(session),
      askSecret: () => {
        // The terminal shows what is typed, and may read it aloud.
        ui.warn("A key would be shown here. Leave, and store it with: gyre login SERVICE");
        return Promise.resolve(undefined);
      },
      // Sequences for the terminal are never written here.
      control: () => false,
      lines: {
        waiting: () => this.controller.waiting,
        interrupt: () => this.interrupt(signal),
        takeBack: () => this.controller.takeBack(),
        takeDraft: () => {
          const draft = this.#draft;
          this.#draft = undefined;
          return draft;
        },
      },
    });
  }
}
