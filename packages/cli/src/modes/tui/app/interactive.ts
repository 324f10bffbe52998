import { systemClock } from "@gyre/ai";
import { EXIT, type ExitCode, findExitCode } from "../../../core/exit-codes.ts";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { Environment, Io } from "../../../core/io.ts";
import type { Setup } from "../../../core/setup.ts";
import { showWholeEmoji } from "@gyre/coding/internal/text/shown-text";
import { version } from "@gyre/coding/internal/core/version";
import { createCompletions } from "../editor/completion.ts";
import { TerminalConversation } from "./conversation.ts";
import { Editor } from "../editor/editor.ts";
import { footerRow } from "../status-line/footer.ts";
import type { Format } from "../markdown/formatters.ts";
import { formatKey, type Key } from "../terminal/key.ts";
import { KeyBindings } from "../../../core/key-bindings.ts";
import { PromptHistory, promptHistoryPath } from "../editor/prompt-history.ts";
import { MAX_REPLAYED_MESSAGES, replay } from "../transcript/replay.ts";
import { bannerRow } from "../start/banner.ts";
import type { ConversationOpener, CreateOpener } from "../start/opener.ts";
import { COLORS, NO_COLORS, type Theme } from "../terminal/theme.ts";
import type { StatusLine } from "../status-line/status-line.ts";
import { ASK_EMOJI, createEmojiReader } from "../terminal/emoji.ts";
import { hasHyperlinks, openLinks } from "../terminal/hyperlinks.ts";
import type { Row } from "../terminal/row.ts";
import { Transcript } from "../transcript/transcript.ts";
import { closeLostTerminal, Tty, type TtyInput, type TtyOutput } from "../terminal/tty.ts";
import type { CommandContext, OpenRequest } from "@gyre/coding/internal/conversation/command";
import { Window } from "./window.ts";

/** Shown until the first prompt. */
const PLACEHOLDER = "Ask for something. / commands, @ files, ! shell, /help for all keys";
const QUIT: ReadonlySet<string> = new Set(["/quit", "/exit"]);
/** SIGCONT is delivered as soon as the program runs again. */
const MAX_HOLD_MS = 60_000;

/** After this time a terminal is assumed not to say which color its background has. */
const BACKGROUND_MS = 1_000;
const ASK_BACKGROUND = "\x1b]11;?\x07";
const BACKGROUND = "]11;";

/** The terminal that the program was started in. */
export interface TerminalStreams {
  input: TtyInput;
  output: TtyOutput;
}

/** What a program at a terminal begins with. */
export interface ProgramStart {
  io: Io;
  /** As it is before anything was asked. */
  setup: Setup;
  createOpener: CreateOpener;
  /** A text that the prompt begins with. */
  draft?: string | undefined;
  /** Shown in the editor until the first prompt. */
  placeholder?: string;
}

/** `gyre` in a terminal, until the user leaves. */
export function runTerminal(
  args: readonly string[],
  start: ProgramStart,
  streams: TerminalStreams,
): Promise<ExitCode> {
  return new Program(start, streams).run(args.join(" "));
}

class Program {
  readonly #io: Io;
  readonly #tty: Tty;
  readonly #theme: Theme;
  readonly #setup: Setup;
  readonly #transcript: Transcript;
  readonly #history: PromptHistory;
  readonly #keys: KeyBindings;
  #statusLine: StatusLine | undefined;
  readonly #editor: Editor;
  readonly #window: Window;
  readonly #end: Promise<ExitCode>;
  #leave: (code: ExitCode) => void = () => {};
  /** The user leaves: nothing is drawn again but what was said. */
  #isOver = false;
  readonly #opener: ConversationOpener;
  #conversation: TerminalConversation | undefined;
  /** Prompts from before the agent was open. */
  #early: string[] = [];

  constructor(start: ProgramStart, { input, output }: TerminalStreams) {
    const { io, setup, createOpener, draft } = start;
    this.#io = io;
    this.#end = new Promise((settle) => (this.#leave = settle));
    const { notify = "off" } = setup.settings;
    this.#tty = new Tty(input, output, { reportsFocus: notify !== "off" });
    // The theme that the terminal or the settings ask for is put into it later.
    this.#theme = io.env["NO_COLOR"] ? NO_COLORS : { ...COLORS };
    this.#setup = setup;
    const { cwd } = setup;
    this.#keys = new KeyBindings(setup.settings.keys);
    this.#transcript = new Transcript({
      theme: this.#theme,
      cwd,
      now: () => systemClock.now(),
      changed: () => this.#window.drawSoon(),
      expandKey: this.#keys.label("expand") ?? "",
      ...(hasHyperlinks(io.env) && { links: openLinks(io.env, () => this.#workspace) }),
      ...(setup.settings.formatCode !== false && { format: formatIn(cwd, io.env) }),
    });
    const warn = (text: string): void => this.#window.warn(text);
    const path = promptHistoryPath(io.env);
    this.#history = new PromptHistory({ path, cwd, clock: systemClock, warn });
    this.#editor = new Editor({
      theme: this.#theme,
      keys: this.#keys,
      history: this.#history,
      completions: createCompletions({
        commands: () => this.#opener.commands,
        context: () => this.#commandContext(),
        files: { find: (query, signal) => this.#opener.findFiles(query, signal) },
      }),
      onChange: () => this.#window.draw(),
    });
    this.#editor.placeholder = start.placeholder ?? PLACEHOLDER;
    if (draft !== undefined) this.#editor.set(draft);
    this.#window = new Window({
      tty: this.#tty,
      theme: this.#theme,
      clock: systemClock,
      transcript: this.#transcript,
      editor: this.#editor,
      status: (columns) => this.#conversation?.status(columns) ?? [],
      footer: (columns) => this.#footer(columns),
      quirks: { lowersCursor: io.env["TERM_PROGRAM"] === "vscode" },
      onSubmit: (text, followUp) => this.#submit(text, followUp),
      onTyped: () => this.#conversation?.typed(),
      claims: (key) => this.#conversation?.claims(key) ?? false,
      onKey: (key) => this.#key(key),
      onEnd: () => this.#leave(EXIT.done),
    });
    this.#opener = createOpener({
      ui: this.#window,
      clock: systemClock,
      view: "terminal",
      conversation: () => this.#conversation,
      askSecret: async (title) => {
        const { TextPanel } = await import("../panels/text.ts");
        return this.#window.open(new TextPanel({ title, secret: true }, this.#theme));
      },
      update: () => {
        if (!this.#isOver) this.#conversation?.update();
      },
      replay: (harness, note) => {
        this.#transcript.note(note);
        this.#replay(harness);
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
      this.#window.start(() => this.#askAboutEmoji());
      this.#chooseTheme(fail);
      this.#openStatusLine().catch(fail);
      if (this.#setup.settings.editorMode === "vim") this.#setVim(true).catch(fail);
      const begun = this.#begin(prompt).catch(fail);
      const code = await this.#end;
      this.#isOver = true;
      this.#statusLine?.close();
      await this.#opener.closeSoon(begun).catch(fail);
      try {
        this.#window.end();
      } catch (error) {
        fail(error);
      }
      if (failures.length > 0) throw failures[0];
      const { leaveNote, resumeHint } = this.#opener;
      if (leaveNote !== undefined) this.#io.stdout.write(`${leaveNote}\n`);
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

  /** Nothing waits for the answer: until it comes, an emoji of several parts is shown as its parts. */
  #askAboutEmoji(): void {
    const read = createEmojiReader();
    const end = this.#window.ask(ASK_EMOJI, (answer) => {
      const drawing = read(answer);
      if (drawing === undefined) return;
      end();
      if (drawing === "in the mode") this.#tty.joinClusters();
      showWholeEmoji(drawing !== "parts");
    });
  }

  /**
   * Nothing waits for the answer of the terminal: what is drawn meanwhile has its own colors. Where it does not come soon,
   * a variable counts, until it comes.
   */
  #chooseTheme(fail: (error: unknown) => void): void {
    if (this.#theme === NO_COLORS) return;
    const { theme = "auto" } = this.#setup.settings;
    const apply = (answer?: string): void =>
      void this.#applyTheme(theme, answer)
        .then((problem) => problem !== undefined && this.#window.warn(problem))
        .catch(fail);
    if (theme !== "auto") return apply();
    const hasVariable = this.#io.env["COLORFGBG"] !== undefined;
    const cancel = hasVariable ? systemClock.after(BACKGROUND_MS, apply) : () => {};
    const end = this.#window.ask(ASK_BACKGROUND, (answer) => {
      if (!answer.startsWith(BACKGROUND)) return;
      cancel();
      end();
      apply(answer.slice(1));
    });
    void this.#end.then(cancel);
  }

  /** Answers what is wrong with the theme, if anything is. */
  async #applyTheme(theme: string, answer: string | undefined): Promise<string | undefined> {
    const { chooseTheme } = await import("../themes/choose.ts");
    const { env } = this.#io;
    const { styles, problem } = chooseTheme({ theme, answer, env, cwd: this.#setup.cwd });
    Object.assign(this.#theme, COLORS, styles);
    this.#window.draw();
    return problem;
  }

  /** Until it is loaded keys are taken as in the insert mode, with which it begins. */
  async #setVim(isOn: boolean): Promise<void> {
    const { Vim } = await import("../vim/vim.ts");
    this.#editor.setMode(isOn ? (buffer, walkHistory) => new Vim(buffer, walkHistory) : undefined);
    this.#window.draw();
  }

  /** The folder whose files can be opened here. */
  get #workspace(): string | undefined {
    const harness = this.#conversation?.controller.harness;
    return harness && !harness.remote ? harness.toolset.env.workspace.root : undefined;
  }

  #footer(columns: number): Row {
    if (!this.#conversation) return [];
    const { facts } = this.#conversation;
    return this.#statusLine?.row(facts, columns) ?? footerRow(facts, columns, this.#theme);
  }

  /** Until it is loaded the usual row is shown. */
  async #openStatusLine(): Promise<void> {
    const { statusLine: setting } = this.#setup.settings;
    if (setting === undefined) return;
    const { openStatusLine } = await import("../status-line/status-line.ts");
    this.#statusLine = openStatusLine({
      setting,
      env: this.#io.env,
      theme: this.#theme,
      clock: systemClock,
      spoolFolder: () => this.#conversation?.controller.harness?.toolset.env.spoolFolder,
      changed: () => this.#window.drawSoon(),
      warn: (text) => this.#window.warn(text),
    });
    this.#window.draw();
  }

  /** Asks for trust and a model, and opens the agent. */
  async #begin(prompt: string): Promise<void> {
    if (!(await this.#opener.prepare())) return this.#leave(EXIT.done);
    this.#conversation = new TerminalConversation({
      window: this.#window,
      transcript: this.#transcript,
      theme: this.#theme,
      clock: systemClock,
      io: this.#io,
      setup: () => this.#opener.setup,
      commands: () => this.#opener.commands,
      createContext: (own) => this.#opener.createContext(own),
      reopen: (request) => this.#reopen(request),
      editorText: () => this.#editor.text,
      editor: this.#editor,
      keys: this.#keys,
      setVim: (isOn) => this.#setVim(isOn),
      setTheme: async (name) => {
        const problem = await this.#applyTheme(name, undefined);
        if (problem !== undefined) throw new Error(problem);
      },
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
  #show(harness: ShownAgent): void {
    const { model, toolset } = harness;
    const facts = {
      version: version(),
      model: model.name,
      folder: toolset.env.workspace.root,
      trust: this.#opener.trust,
      theme: this.#theme,
    };
    this.#window.show({ rows: (columns) => [bannerRow({ ...facts, columns })] });
    this.#replay(harness);
    this.#window.draw();
  }

  /** Shows what was said, and from there on what happens. */
  #replay(harness: ShownAgent): void {
    const { messages, pendingToolCalls } = harness.agent.state;
    this.#transcript.workIn(harness.toolset.env.workspace.root);
    replay(messages, this.#transcript, MAX_REPLAYED_MESSAGES, pendingToolCalls);
    harness.beginEvents?.();
  }

  async #reopen(request: OpenRequest): Promise<void> {
    const { edit, harness, id } = await this.#opener.reopen(request);
    if (!harness) return;
    this.#transcript.note(id === undefined ? "a new session" : `session ${id}, from here on`);
    this.#replay(harness);
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

  #commandContext(): CommandContext {
    const context = this.#conversation?.controller.commandContext(this.#io.signal);
    if (!context) throw new Error("The agent is not open yet.");
    return context;
  }

  #key(key: Key): void {
    if (this.#conversation) this.#conversation.key(key);
    else if (key.ctrl && key.name === "c") this.#leave(EXIT.done);
    else if (this.#keys.findForProgram(formatKey(key)) === "exit") this.#leave(EXIT.done);
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
