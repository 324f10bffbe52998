import { systemClock } from "@gyre/ai";
import { EXIT, type ExitCode, findExitCode } from "../../../core/exit-codes.ts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Environment, Io } from "../../../core/io.ts";
import type { Values } from "../../../core/options.ts";
import { version } from "@gyre/coding/internal/core/version";
import { createCompletions } from "../editor/completion.ts";
import { TerminalConversation } from "./conversation.ts";
import { Editor } from "../editor/editor.ts";
import { type FileFinder, createWorkspaceFinder } from "../editor/file-finder.ts";
import { footerRow } from "./footer.ts";
import type { Format } from "../markdown/formatters.ts";
import type { Key } from "../terminal/key.ts";
import { PromptHistory, promptHistoryPath } from "../editor/prompt-history.ts";
import { replay } from "../transcript/replay.ts";
import { AgentOpener, type FirstSetup } from "../start/agent-opener.ts";
import { bannerRow } from "../start/banner.ts";
import { COLORS, NO_COLORS, type Theme } from "../terminal/theme.ts";
import { Transcript } from "../transcript/transcript.ts";
import { closeLostTerminal, Tty, type TtyInput, type TtyOutput } from "../terminal/tty.ts";
import type { OpenRequest } from "@gyre/coding/internal/conversation/command";
import type { SlashContext } from "../../../slash-commands/command-context.ts";
import { Window } from "./window.ts";

/** Shown until the first prompt. */
const PLACEHOLDER = "Ask for something. / commands, @ files, ! shell, /help for all keys";
const QUIT: ReadonlySet<string> = new Set(["/quit", "/exit"]);
/** SIGCONT is delivered as soon as the program runs again. */
const MAX_HOLD_MS = 60_000;

/** The terminal that the program was started in. */
export interface TerminalStreams {
  input: TtyInput;
  output: TtyOutput;
}

/** `gyre` in a terminal, until the user leaves. */
export function runTerminal(
  args: readonly string[],
  values: Values,
  io: Io,
  first: FirstSetup,
  streams: TerminalStreams,
): Promise<ExitCode> {
  return new Program(values, io, first, streams).run(args.join(" "));
}

class Program {
  readonly #io: Io;
  readonly #tty: Tty;
  readonly #theme: Theme;
  readonly #transcript: Transcript;
  readonly #history: PromptHistory;
  readonly #editor: Editor;
  readonly #window: Window;
  readonly #end: Promise<ExitCode>;
  #leave: (code: ExitCode) => void = () => {};
  readonly #opener: AgentOpener;
  #conversation: TerminalConversation | undefined;
  /** Prompts from before the agent was open. */
  #early: string[] = [];
  #finder: FileFinder | undefined;

  constructor(values: Values, io: Io, first: FirstSetup, { input, output }: TerminalStreams) {
    this.#io = io;
    this.#end = new Promise((settle) => (this.#leave = settle));
    this.#tty = new Tty(input, output);
    this.#theme = io.env["NO_COLOR"] ? NO_COLORS : COLORS;
    const { setup } = first;
    const { cwd } = setup;
    this.#transcript = new Transcript({
      theme: this.#theme,
      cwd,
      now: () => systemClock.now(),
      changed: () => this.#window.drawSoon(),
      ...(setup.settings.formatCode !== false && { format: formatIn(cwd, io.env) }),
    });
    const warn = (text: string): void => this.#window.warn(text);
    const path = promptHistoryPath(io.env);
    this.#history = new PromptHistory({ path, cwd, clock: systemClock, warn });
    this.#editor = new Editor({
      theme: this.#theme,
      history: this.#history,
      completions: createCompletions({
        commands: () => this.#opener.commands,
        context: () => this.#commandContext(),
        files: { find: (query, signal) => this.#files().find(query, signal) },
      }),
      onChange: () => this.#window.draw(),
    });
    this.#editor.placeholder = PLACEHOLDER;
    if (values.draft !== undefined) this.#editor.set(values.draft);
    this.#window = new Window({
      tty: this.#tty,
      theme: this.#theme,
      clock: systemClock,
      transcript: this.#transcript,
      editor: this.#editor,
      status: (columns) => this.#conversation?.status(columns) ?? [],
      footer: (columns) =>
        this.#conversation ? footerRow(this.#conversation.facts, columns, this.#theme) : [],
      quirks: { lowersCursor: io.env["TERM_PROGRAM"] === "vscode" },
      onSubmit: (text, followUp) => this.#submit(text, followUp),
      onTyped: () => this.#conversation?.typed(),
      claims: (key) => this.#conversation?.claims(key) ?? false,
      onKey: (key) => this.#key(key),
      onEnd: () => this.#leave(EXIT.done),
    });
    this.#opener = new AgentOpener({
      values,
      io,
      first,
      ui: this.#window,
      clock: systemClock,
      view: "terminal",
      conversation: () => this.#conversation,
      askSecret: async (title) => {
        const { TextPanel } = await import("../panels/text.ts");
        return this.#window.open(new TextPanel({ title, secret: true }, this.#theme));
      },
    });
  }

  async run(prompt: string): Promise<ExitCode> {
    const { signal } = this.#io;
    const restore = (): void => this.#tty.restore();
    process.once("exit", restore);
    process.once("exit", closeLostTerminal);
    const stop = (): void => this.#leave(findExitCode(signal));
    signal.addEventListener("abort", stop, { once: true });
    const failures: unknown[] = [];
    const fail = (error: unknown): void => {
      failures.push(error);
      this.#leave(EXIT.failed);
    };
    // Errors while a frame is drawn only arrive here.
    process.on("uncaughtException", fail);
    let hold: NodeJS.Timeout | undefined;
    const leaveToShell = (): void => {
      this.#window.leaveToShell();
      // While nothing is read, nothing else would keep the program until SIGCONT arrives.
      hold = setTimeout(() => {}, MAX_HOLD_MS);
      process.kill(process.pid, "SIGSTOP");
    };
    const returnFromShell = (): void => {
      clearTimeout(hold);
      this.#window.returnFromShell();
    };
    process.on("SIGTSTP", leaveToShell);
    process.on("SIGCONT", returnFromShell);
    try {
      this.#window.start();
      const begun = this.#begin(prompt).catch(fail);
      const code = await this.#end;
      await this.#opener.closeSoon(begun).catch(fail);
      try {
        this.#window.end();
      } catch (error) {
        fail(error);
      }
      if (failures.length > 0) throw failures[0];
      const { resumeHint } = this.#opener;
      if (resumeHint !== undefined) this.#io.stdout.write(`${resumeHint}\n`);
      return code;
    } finally {
      restore();
      process.removeListener("SIGTSTP", leaveToShell);
      process.removeListener("SIGCONT", returnFromShell);
      process.removeListener("uncaughtException", fail);
      process.removeListener("exit", restore);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Asks for trust and a model, and opens the agent. */
  async #begin(prompt: string): Promise<void> {
    await this.#opener.askForTrust();
    if (!(await this.#opener.askForModel())) return this.#leave(EXIT.done);
    this.#conversation = new TerminalConversation({
      window: this.#window,
      transcript: this.#transcript,
      theme: this.#theme,
      clock: systemClock,
      io: this.#io,
      setup: () => this.#opener.setup,
      commands: () => this.#opener.commands,
      reopen: (request) => this.#reopen(request),
      editorText: () => this.#editor.text,
      remember: (text) => this.#history.add(text),
      quit: () => this.#leave(EXIT.done),
    });
    const harness = await this.#opener.openFirst();
    if (harness) this.#show(harness);
    const early = [...(prompt === "" ? [] : [prompt]), ...this.#early];
    for (const each of early) this.#conversation.submit(each, false);
    if (early.length === 0) await this.#conversation.controller.resume();
  }

  /** Shows the banner and the earlier messages. */
  #show({ agent, model, toolset }: Harness): void {
    const facts = {
      version: version(),
      model: model.name,
      folder: toolset.env.workspace.root,
      trust: this.#opener.trust,
      theme: this.#theme,
    };
    this.#window.show({ rows: (columns) => [bannerRow({ ...facts, columns })] });
    replay(agent.state.messages, this.#transcript);
    this.#window.draw();
  }

  async #reopen(request: OpenRequest): Promise<void> {
    const { edit, harness } = await this.#opener.reopen(request);
    if (!harness) return;
    this.#finder = undefined;
    const { agent, session } = harness;
    this.#transcript.note(session ? `session ${session.header.id}, from here on` : "a new session");
    replay(agent.state.messages, this.#transcript);
    if (edit !== undefined) this.#window.edit(edit);
  }

  #submit(text: string, followUp: boolean): void {
    // Hide the hint after the first prompt.
    this.#editor.placeholder = "";
    // Works at any time, even before the agent is open.
    if (QUIT.has(text.trim())) return this.#leave(EXIT.done);
    if (this.#conversation?.controller.isOpening) this.#conversation.submit(text, followUp);
    else this.#early.push(text);
  }

  #commandContext(): SlashContext {
    const context = this.#conversation?.controller.commandContext(this.#io.signal);
    if (!context) throw new Error("The agent is not open yet.");
    return context;
  }

  #files(): FileFinder {
    this.#finder ??= createWorkspaceFinder(
      this.#commandContext().harness.toolset.env.workspace,
      systemClock,
    );
    return this.#finder;
  }

  #key(key: Key): void {
    if (this.#conversation) this.#conversation.key(key);
    else if (key.ctrl && (key.name === "c" || key.name === "d")) this.#leave(EXIT.done);
  }
}

/** Formatters are loaded when there is code to format. */
function formatIn(cwd: string, env: Environment): Format {
  let formatters: Promise<Format> | undefined;
  return async (language, code, signal) => {
    formatters ??= import("../markdown/formatters.ts").then(({ openFormatters }) =>
      openFormatters({ cwd, env }),
    );
    return (await formatters)(language, code, signal);
  };
}
