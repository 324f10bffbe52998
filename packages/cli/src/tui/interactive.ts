import { systemClock } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { EXIT, type ExitCode, ExitError } from "../exit-codes.ts";
import { openHarness, type Harness } from "../harness/harness.ts";
import type { Io } from "../io.ts";
import type { Models } from "../models.ts";
import type { Values } from "../options.ts";
import { type ChosenSession, chooseSession, openStore, readSetup, type Setup } from "../setup.ts";
import type { Environment } from "../terminal.ts";
import { version } from "../version.ts";
import { completionsFrom } from "./completion.ts";
import { Conversation } from "./conversation.ts";
import { Editor } from "./editor.ts";
import { type FileFinder, workspaceFinder } from "./file-finder.ts";
import { footerRow } from "./footer.ts";
import type { Format } from "./formatters.ts";
import type { Key } from "./key.ts";
import { PromptHistory, promptHistoryPath } from "./prompt-history.ts";
import { replay } from "./replay.ts";
import { bannerRow, type FolderTrust } from "./start/banner.ts";
import { COLOURS, NO_COLOURS, type Theme } from "./theme.ts";
import { Transcript } from "./transcript.ts";
import { Tty, type TtyInput, type TtyOutput } from "./tty.ts";
import type { CommandWorld, OpenRequest, TerminalCommand } from "./ui.ts";
import { Window } from "./window.ts";

/** How long what is still running may take to end when the user leaves. */
const LEAVING_MS = 3_000;

/** The terminal that the program was started in. */
export interface TerminalStreams {
  input: TtyInput;
  output: TtyOutput;
}

/** `gyre` in a terminal: shows it, talks, until the user leaves. */
export async function runInteractive(
  args: readonly string[],
  values: Values,
  io: Io,
  streams: TerminalStreams,
): Promise<ExitCode> {
  const setup = await readSetup(values, io, { quietAboutTrust: true });
  return new Program(values, io, setup, streams).run(args.join(" "));
}

class Program {
  readonly #values: Values;
  readonly #io: Io;
  readonly #tty: Tty;
  readonly #theme: Theme;
  readonly #transcript: Transcript;
  readonly #editor: Editor;
  readonly #window: Window;
  readonly #end: Promise<ExitCode>;
  #leave: (code: ExitCode) => void = () => {};
  #setup: Setup;
  #trust: FolderTrust = "nothing to trust";
  #conversation: Conversation | undefined;
  #models: Models | undefined;
  #variables: Environment = {};
  #finder: FileFinder | undefined;
  #isBegun = false;
  /** What is written to, where it is ours to close. */
  #session: Session | undefined;
  #commands: readonly TerminalCommand[] = [];

  constructor(values: Values, io: Io, setup: Setup, { input, output }: TerminalStreams) {
    this.#values = values;
    this.#io = io;
    this.#setup = setup;
    this.#end = new Promise((settle) => (this.#leave = settle));
    this.#tty = new Tty(input, output);
    this.#theme = io.env["NO_COLOR"] ? NO_COLOURS : COLOURS;
    const { cwd } = setup;
    this.#transcript = new Transcript({
      theme: this.#theme,
      cwd,
      now: () => systemClock.now(),
      changed: () => this.#window.drawSoon(),
      ...(setup.settings.formatCode !== false && { format: formatIn(cwd, io.env) }),
    });
    const warn = (text: string): void => this.#window.warn(text);
    this.#editor = new Editor({
      theme: this.#theme,
      history: new PromptHistory({
        path: promptHistoryPath(io.env),
        cwd,
        clock: systemClock,
        warn,
      }),
      completions: completionsFrom({
        commands: () => this.#commands,
        world: () => this.#world(),
        files: { find: (query, signal) => this.#files().find(query, signal) },
      }),
      onChange: () => this.#window.draw(),
    });
    this.#window = new Window({
      tty: this.#tty,
      theme: this.#theme,
      clock: systemClock,
      transcript: this.#transcript,
      editor: this.#editor,
      status: (columns) => this.#conversation?.status(columns) ?? [],
      footer: (columns) =>
        this.#conversation ? footerRow(this.#conversation.facts, columns, this.#theme) : [],
      onSubmit: (text, followUp) => this.#conversation?.submit(text, followUp),
      onKey: (key) => this.#key(key),
      onEnd: () => this.#leave(EXIT.done),
    });
  }

  async run(prompt: string): Promise<ExitCode> {
    const { signal } = this.#io;
    const restore = (): void => this.#tty.restore();
    process.once("exit", restore);
    const stop = (): void => this.#leave(codeOf(signal));
    signal.addEventListener("abort", stop, { once: true });
    this.#window.start();
    const begun = this.#begin(prompt).catch((error: unknown) => {
      failure = error;
      this.#leave(EXIT.failed);
    });
    let failure: unknown;
    try {
      const code = await this.#end;
      await Promise.race([this.#closed(begun), systemPause(LEAVING_MS)]);
      this.#window.end();
      if (failure !== undefined) throw failure;
      this.#sayGoodbye();
      return code;
    } finally {
      this.#window.end();
      process.removeListener("exit", restore);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Asks what has to be asked first, and opens the agent. */
  async #begin(prompt: string): Promise<void> {
    await this.#askForTrust();
    if (!(await this.#askForModel())) return this.#leave(EXIT.done);
    this.#conversation = new Conversation({
      window: this.#window,
      transcript: this.#transcript,
      theme: this.#theme,
      clock: systemClock,
      io: this.#io,
      setup: () => this.#setup,
      commands: () => this.#commands,
      reopen: (request) => this.#reopen(request),
      editorText: () => this.#editor.text,
      quit: () => this.#leave(EXIT.done),
    });
    await this.#open(await chooseSession(this.#values, this.#setup, this.#io));
    if (prompt !== "") this.#conversation.submit(prompt, false);
    else await this.#conversation.takeUp();
  }

  /** Nothing of the folder is used before that. */
  async #askForTrust(): Promise<void> {
    const { applyTrust, trustQuestion } = await import("./start/trust-question.ts");
    const { cwd } = this.#setup;
    const { env } = this.#io;
    const finding = await trustQuestion({
      env,
      cwd,
      start: this.#io.cwd,
      flags: this.#values,
      theme: this.#theme,
      columns: this.#window.columns,
    });
    this.#trust = finding.trust;
    for (const note of finding.notes) this.#window.warn(note);
    if (!finding.question) return;
    if (finding.listing) this.#window.show(finding.listing);
    const answer = await this.#window.choose(finding.question);
    const { said, trust, trustOnce } = await applyTrust(answer, finding, { env });
    this.#trust = trust;
    for (const each of said) this.#window.say(each);
    this.#setup = await this.#readSetup(trustOnce);
  }

  async #readSetup(trust: boolean): Promise<Setup> {
    const setup = await readSetup({ ...this.#values, ...(trust && { trust }) }, this.#io, {
      quietAboutTrust: true,
    });
    return { ...setup, warn: (text) => this.#window.warn(text) };
  }

  /** False: the user wants to leave. */
  async #askForModel(): Promise<boolean> {
    const { env } = this.#io;
    const start = await import("./start/no-key.ts");
    if (await start.hasModel(this.#setup.settings, env)) return true;
    const { findLocalServers } = await import("./start/local-servers.ts");
    const { TextPanel } = await import("./text-panel.ts");
    const way = await start.askForModel({
      ui: this.#window,
      env,
      servers: await findLocalServers({ env, signal: this.#io.signal }),
      askSecret: (title) => this.#window.open(new TextPanel({ title, secret: true }, this.#theme)),
    });
    if (way.type === "leave") return false;
    if (way.type === "scripted") {
      const { demoEnvironment, demoFolder } = await import("./start/demo-folder.ts");
      const { scriptedModels } = await import("./start/scripted.ts");
      const { path } = await demoFolder();
      this.#setup = { ...this.#setup, cwd: path };
      this.#variables = demoEnvironment(env);
      this.#models = scriptedModels({ folder: path, fast: env["GYRE_FAST"] === "1" });
    } else if (way.type === "model") {
      const { settings } = this.#setup;
      this.#setup = { ...this.#setup, settings: { ...settings, model: way.name } };
      this.#variables = way.variables;
    }
    return true;
  }

  async #open(chosen: ChosenSession): Promise<void> {
    const conversation = this.#conversation;
    if (!conversation) return;
    const opening = openHarness({
      ...this.#setup,
      ...chosen,
      env: { ...this.#io.env, ...this.#variables },
      approvals: (request) => conversation.approve(request),
      fileHistory: true,
      ...(this.#models && { models: this.#models }),
    });
    conversation.use(opening);
    this.#finder = undefined;
    this.#session = chosen.session;
    const harness = await opening;
    this.#show(harness);
    const { allCommands } = await import("./commands/all-commands.ts");
    this.#commands = allCommands({ harness, setup: this.#setup, io: this.#io });
  }

  /** The line that it begins with, and what was said before. */
  #show({ agent, model, session, toolset }: Harness): void {
    if (this.#isBegun) {
      const told = session ? `session ${session.header.id}, from here on` : "a new session";
      this.#transcript.note(told);
      replay(agent.state.messages, this.#transcript);
      return;
    }
    this.#isBegun = true;
    const facts = {
      version: version(),
      model: model.name,
      folder: toolset.env.workspace.root,
      trust: this.#trust,
      theme: this.#theme,
    };
    this.#window.show({ rows: (columns) => [bannerRow({ ...facts, columns })] });
    replay(agent.state.messages, this.#transcript);
    this.#window.draw();
  }

  async #reopen(request: OpenRequest): Promise<void> {
    const conversation = this.#conversation;
    const session = conversation?.harness?.session;
    if (!conversation || conversation.isWorking) return;
    if ("entry" in request) {
      if (!session) throw new Error("This conversation is not written down: it has one branch.");
      await session.branch(request.entry);
      const path = session.path;
      await this.#closeSession();
      const { openSession } = await import("@gyre/sessions");
      await this.#open({ session: await openSession(path) });
      if (request.edit !== undefined) this.#window.edit(request.edit);
      return;
    }
    const store = await openStore(this.#io);
    // Opened before the other is left: if that fails, nothing has changed.
    const next: ChosenSession =
      "session" in request
        ? { session: await store.open(request.session) }
        : { newSession: () => store.create({ cwd: this.#setup.cwd }) };
    await this.#closeSession();
    await this.#open(next);
    if ("prompt" in request && request.prompt !== undefined) this.#window.edit(request.prompt);
  }

  async #closeSession(): Promise<void> {
    await this.#conversation?.close();
    await this.#session?.close();
    this.#session = undefined;
  }

  async #closed(begun: Promise<void>): Promise<void> {
    await this.#closeSession();
    await begun;
  }

  #world(): CommandWorld {
    const world = this.#conversation?.world;
    if (!world) throw new Error("It is not open yet.");
    return world;
  }

  #files(): FileFinder {
    this.#finder ??= workspaceFinder(this.#world().harness.toolset.env.workspace, systemClock);
    return this.#finder;
  }

  #key(key: Key): void {
    if (this.#conversation) this.#conversation.key(key);
    else if (key.ctrl && (key.name === "c" || key.name === "d")) this.#leave(EXIT.done);
  }

  /** How to come back. */
  #sayGoodbye(): void {
    const session = this.#conversation?.harness?.session;
    if (!session || this.#models) return;
    this.#io.stdout.write(`gyre --resume ${session.header.id}\n`);
  }
}

/** Formatters are looked for when there is something to format. */
function formatIn(cwd: string, env: Environment): Format {
  let formatters: Promise<Format> | undefined;
  return async (language, code, signal) => {
    formatters ??= import("./formatters.ts").then(({ openFormatters }) =>
      openFormatters({ cwd, env }),
    );
    return (await formatters)(language, code, signal);
  };
}

function codeOf({ reason }: AbortSignal): ExitCode {
  return reason instanceof ExitError ? reason.exitCode : EXIT.interrupted;
}

function systemPause(ms: number): Promise<void> {
  return new Promise((settle) => systemClock.after(ms, settle));
}
