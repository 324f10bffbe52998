import type { Clock } from "@gyre/ai";
import type { McpAnswer, McpQuestion } from "@gyre/mcp";
import { type ApprovalAnswer, type ApprovalRequest, ruleFor } from "@gyre/tools";
import {
  type Command,
  type CommandContext,
  type OpenRequest,
  text,
} from "@gyre/coding/internal/conversation/command";
import { ConversationController } from "@gyre/coding/internal/conversation/controller";
import type { Outcome, ShownAgent } from "@gyre/coding/internal/conversation/types";
import type {
  ConversationItem,
  ConversationView,
  ReadText,
} from "@gyre/coding/internal/conversation/view";
import type { Io } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import type { ViewContext } from "../../slash-commands/command-context.ts";
import { findInstead } from "../../slash-commands/familiar/instead.ts";
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
  commands: () => readonly Command[];
  /** What slash commands get. */
  createContext: (own: ViewContext) => CommandContext;
  reopen: (request: OpenRequest) => Promise<void>;
  quit: () => void;
}

/** The conversation as lines one after the other, for a screen reader. */
export class ScreenReaderConversation implements ConversationView {
  readonly stopKey = "/stop";
  readonly controller: ConversationController<ShownAgent>;
  readonly #options: ScreenReaderConversationOptions;
  /** A text that was given back, for `/send`. */
  #draft: string | undefined;

  constructor(options: ScreenReaderConversationOptions) {
    this.#options = options;
    this.controller = new ConversationController<ShownAgent>({
      ...options,
      view: this,
      env: options.io.env,
      commandContext: (_harness, signal) => this.#commandContext(signal),
      findInstead,
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
        // The command says the same at its end.
        if (item.event.type === "compaction" && this.controller.task?.name === "/compact") {
          return undefined;
        }
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
      // All of it is read when it is sent.
      case "expanded":
        return undefined;
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

  async ask(request: ApprovalRequest, cwd: string, readText?: ReadText): Promise<ApprovalAnswer> {
    const { clock, events, terminal } = this.#options;
    const askedAt = clock.now();
    const rule = ruleFor(request);
    const answer = await askPermission(request, {
      terminal,
      cwd,
      now: () => clock.now(),
      ...(rule !== undefined && { rule }),
      ...(readText && { textNow: readText }),
    });
    events.waited(request.callId, clock.now() - askedAt);
    return answer;
  }

  async answerServer(question: McpQuestion, signal: AbortSignal): Promise<McpAnswer> {
    const { answerServer } = await import("@gyre/coding/internal/conversation/server-question");
    const { ui, terminal } = this.#options;
    return answerServer(question, {
      choose: ({ about = [], ...rest }) =>
        signal.aborted
          ? Promise.resolve(undefined)
          : ui.choose({ ...rest, about: about.map((line) => row(oneLine(line))) }),
      line: ({ about = [], initial = "", title }) =>
        terminal.question(async (read) => {
          if (signal.aborted) return undefined;
          terminal.line(oneLine(title));
          for (const line of about) terminal.line(oneLine(line));
          if (initial !== "") terminal.line(`An empty line is: ${oneLine(initial)}`);
          const typed = await read("Your answer: ");
          return typed === "" ? initial : typed;
        }),
    });
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

  #commandContext(signal: AbortSignal): CommandContext {
    const { ui } = this.#options;
    return this.#options.createContext({
      signal,
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
      askFor: (request, { name, folder }) => {
        this.#options.terminal.line(`${oneLine(name)} asks.`);
        return this.ask(request, folder);
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
