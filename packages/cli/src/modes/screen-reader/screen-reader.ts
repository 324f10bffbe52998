import { type Clock, systemClock } from "@gyre/ai";
import { EXIT, type ExitCode, findExitCode } from "../../core/exit-codes.ts";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { Io } from "../../core/io.ts";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { version } from "@gyre/coding/internal/core/version";
import type { ProgramStart } from "../tui/app/interactive.ts";
import type { ConversationOpener } from "../tui/start/opener.ts";
import type { OpenRequest } from "@gyre/coding/internal/conversation/command";
import { type LineStreams, LineTerminal } from "./line-terminal.ts";
import { LineUi } from "./line-ui.ts";
import { ScreenReaderConversation } from "./conversation.ts";
import { ScreenReaderEvents } from "./events.ts";

/**
 * `gyre --screen-reader`: the same agent, sessions, permissions and commands as in the
 * interactive program, as lines one after the other, until the user leaves.
 */
export async function runScreenReader(
  args: readonly string[],
  start: ProgramStart,
  streams: LineStreams,
  clock: Clock = systemClock,
): Promise<ExitCode> {
  return new ScreenReaderProgram(start, streams, clock).run(args.join(" "));
}

class ScreenReaderProgram {
  readonly #io: Io;
  readonly #clock: Clock;
  readonly #terminal: LineTerminal;
  readonly #ui: LineUi;
  readonly #events: ScreenReaderEvents;
  readonly #end: Promise<ExitCode>;
  #leave: (code: ExitCode) => void = () => {};
  #isLeaving = false;
  /** Whether the agent is open. */
  #isOpen = false;
  readonly #opener: ConversationOpener;
  #conversation: ScreenReaderConversation | undefined;
  /** Lines that were typed before that. */
  #early: string[] = [];

  constructor({ io, createOpener }: ProgramStart, streams: LineStreams, clock: Clock) {
    this.#io = io;
    this.#clock = clock;
    this.#end = new Promise((settle) => {
      this.#leave = (code) => {
        this.#isLeaving = true;
        settle(code);
      };
    });
    this.#terminal = new LineTerminal(streams, {
      line: (text) => this.#line(text),
      end: () => this.#leave(EXIT.done),
    });
    this.#ui = new LineUi(this.#terminal);
    this.#events = new ScreenReaderEvents((text) => this.#terminal.line(text));
    this.#opener = createOpener({
      ui: this.#ui,
      clock: this.#clock,
      view: "screen reader",
      conversation: () => this.#conversation,
      askSecret: async () => {
        // The terminal shows what is typed, and may read it aloud.
        this.#ui.warn("A key would be shown here. Leave, and store it with: gyre login SERVICE");
        return undefined;
      },
      update: () => this.#conversation?.update(),
      replay: (harness, note) => {
        this.#terminal.line(note);
        this.#shown(harness);
      },
    });
  }

  async run(prompt: string): Promise<ExitCode> {
    const { signal } = this.#io;
    const stop = (): void => this.#leave(findExitCode(signal));
    signal.addEventListener("abort", stop, { once: true });
    const unhandle = this.#io.handleInterrupt?.(() => this.#interrupted());
    let failure: unknown;
    const begun = this.#begin(prompt).catch((error: unknown) => {
      failure = error;
      this.#leave(EXIT.failed);
    });
    try {
      const code = await this.#end;
      this.#terminal.close();
      await this.#opener.closeSoon(begun);
      if (failure !== undefined) throw failure;
      const { leaveNote, resumeHint } = this.#opener;
      if (leaveNote !== undefined) this.#terminal.line(leaveNote);
      this.#terminal.line(resumeHint === undefined ? "Goodbye." : `To come back: ${resumeHint}`);
      return code;
    } finally {
      unhandle?.();
      signal.removeEventListener("abort", stop);
    }
  }

  /** Ctrl-C: stops what goes on, and leaves where nothing does. */
  #interrupted(): boolean {
    if (this.#isLeaving) return false;
    // The terminal shows the key in the line that it was pressed in.
    this.#terminal.breakLine(true);
    if (!this.#conversation?.interrupt()) this.#leave(EXIT.done);
    return true;
  }

  #line(text: string): void {
    if (this.#isOpen) this.#conversation?.submit(text);
    else this.#early.push(text);
  }

  /** Asks what has to be asked first, and opens the agent. */
  async #begin(prompt: string): Promise<void> {
    if (!(await this.#opener.prepare())) return this.#leave(EXIT.done);
    if (this.#isLeaving) return;
    const conversation = new ScreenReaderConversation({
      terminal: this.#terminal,
      ui: this.#ui,
      events: this.#events,
      clock: this.#clock,
      io: this.#io,
      setup: () => this.#opener.setup,
      commands: () => this.#opener.commands,
      createContext: (own) => this.#opener.createContext(own),
      reopen: (request) => this.#reopen(request),
      quit: () => this.#leave(EXIT.done),
    });
    this.#conversation = conversation;
    this.#shown(await this.#opener.openFirst());
    this.#isOpen = true;
    if (this.#isLeaving) return;
    const [first, ...rest] = [...(prompt === "" ? [] : [prompt]), ...this.#early];
    if (first === undefined) return conversation.controller.resume();
    for (const line of [first, ...rest]) conversation.submit(line);
  }

  /** Says where it is, and what was said last. */
  #shown(harness: ShownAgent | undefined): void {
    if (!harness) return;
    const { agent, model, toolset } = harness;
    const folder = shownLine(toolset.env.workspace.root);
    const { trust: found } = this.#opener;
    const trust = found === "nothing to trust" ? "" : `, which is ${found}`;
    this.#terminal.line(
      `This is gyre ${version()} with ${shownLine(model.name)} in ${folder}${trust}. /help lists the commands.`,
    );
    this.#events.replay(agent.state.messages);
    harness.beginEvents?.();
  }

  async #reopen(request: OpenRequest): Promise<void> {
    const { edit, harness } = await this.#opener.reopen(request);
    this.#shown(harness);
    if (edit !== undefined) this.#conversation?.edit(edit);
  }
}
