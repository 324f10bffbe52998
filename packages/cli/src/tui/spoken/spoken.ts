import { type Clock, systemClock } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { EXIT, type ExitCode, ExitError, interruption } from "../../exit-codes.ts";
import { type Harness, openHarness } from "../../harness/harness.ts";
import type { Io } from "../../io.ts";
import type { Models } from "../../models.ts";
import type { Values } from "../../options.ts";
import {
  type ChosenSession,
  chooseSession,
  openStore,
  readSetup,
  type Setup,
} from "../../setup.ts";
import type { Environment } from "../../terminal.ts";
import { shownLine } from "../../tool-text.ts";
import { version } from "../../version.ts";
import type { FolderTrust } from "../start/banner.ts";
import { NO_COLOURS } from "../theme.ts";
import type { OpenRequest, TerminalCommand } from "../ui.ts";
import { type LineStreams, LineTerminal } from "./line-terminal.ts";
import { LineUi } from "./line-ui.ts";
import { SpokenConversation } from "./spoken-conversation.ts";
import { SpokenEvents } from "./spoken-events.ts";
import { SPOKEN_COLUMNS } from "./spoken-words.ts";

/** How long what is still running may take to end when the user leaves. */
const LEAVING_MS = 3_000;

/** For tests. */
export interface SpokenParts {
  /** In place of those of the settings: nothing is asked about models then. */
  models?: Models;
  clock?: Clock;
}

/**
 * `gyre --screen-reader`: the same agent, sessions, permissions and commands as in the
 * interactive program, as lines one after the other, until the user leaves.
 */
export async function runSpoken(
  args: readonly string[],
  values: Values,
  io: Io,
  streams: LineStreams,
  parts: SpokenParts = {},
): Promise<ExitCode> {
  const setup = await readSetup(values, io, { quietAboutTrust: true });
  return new SpokenProgram(values, io, setup, streams, parts).run(args.join(" "));
}

class SpokenProgram {
  readonly #values: Values;
  readonly #io: Io;
  readonly #clock: Clock;
  readonly #terminal: LineTerminal;
  readonly #ui: LineUi;
  readonly #events: SpokenEvents;
  readonly #end: Promise<ExitCode>;
  #leave: (code: ExitCode) => void = () => {};
  #isLeaving = false;
  /** Whether there is somebody to talk to. */
  #isOpen = false;
  #setup: Setup;
  #trust: FolderTrust = "nothing to trust";
  #conversation: SpokenConversation | undefined;
  /** Lines that were typed before that. */
  #early: string[] = [];
  #models: Models | undefined;
  #isScripted = false;
  #variables: Environment = {};
  /** What is written to, where it is ours to close. */
  #session: Session | undefined;
  #commands: readonly TerminalCommand[] = [];

  constructor(values: Values, io: Io, setup: Setup, streams: LineStreams, parts: SpokenParts) {
    this.#values = values;
    this.#io = io;
    this.#clock = parts.clock ?? systemClock;
    this.#models = parts.models;
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
    this.#ui = new LineUi({
      terminal: this.#terminal,
      session: () => this.#conversation?.harness?.session,
      edit: (text) => this.#conversation?.keep(text),
    });
    this.#events = new SpokenEvents((text) => this.#terminal.line(text));
    this.#setup = this.#spoken(setup);
  }

  async run(prompt: string): Promise<ExitCode> {
    const { signal } = this.#io;
    const stop = (): void => this.#leave(codeOf(signal));
    signal.addEventListener("abort", stop, { once: true });
    interruption.take = () => this.#interrupted();
    let failure: unknown;
    const begun = this.#begin(prompt).catch((error: unknown) => {
      failure = error;
      this.#leave(EXIT.failed);
    });
    try {
      const code = await this.#end;
      this.#terminal.close();
      await this.#closedSoon(begun);
      if (failure !== undefined) throw failure;
      this.#sayGoodbye();
      return code;
    } finally {
      delete interruption.take;
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
    if (this.#isOpen) this.#conversation?.take(text);
    else this.#early.push(text);
  }

  /** Asks what has to be asked first, and opens the agent. */
  async #begin(prompt: string): Promise<void> {
    await this.#askForTrust();
    if (this.#isLeaving) return;
    if (!(await this.#askForModel())) return this.#leave(EXIT.done);
    if (this.#isLeaving) return;
    const chosen = await chooseSession(this.#values, this.#setup, this.#io);
    const conversation = new SpokenConversation({
      terminal: this.#terminal,
      ui: this.#ui,
      events: this.#events,
      clock: this.#clock,
      io: this.#io,
      setup: () => this.#setup,
      commands: () => this.#commands,
      reopen: (request) => this.#reopen(request),
      quit: () => this.#leave(EXIT.done),
    });
    this.#conversation = conversation;
    await this.#open(chosen, conversation);
    this.#isOpen = true;
    if (this.#isLeaving) return;
    const [first, ...rest] = [...(prompt === "" ? [] : [prompt]), ...this.#early];
    if (first === undefined) return conversation.takeUp();
    for (const line of [first, ...rest]) conversation.take(line);
  }

  /** Nothing of the folder is used before that. */
  async #askForTrust(): Promise<void> {
    const { applyTrust, trustQuestion } = await import("../start/trust-question.ts");
    const { env } = this.#io;
    const finding = await trustQuestion({
      env,
      cwd: this.#setup.cwd,
      start: this.#io.cwd,
      flags: this.#values,
      theme: NO_COLOURS,
      columns: SPOKEN_COLUMNS,
    });
    this.#trust = finding.trust;
    for (const note of finding.notes) this.#ui.warn(note);
    if (!finding.question) return;
    if (finding.listing) this.#ui.show(finding.listing);
    const answer = await this.#ui.choose(finding.question);
    const { said, trust, trustOnce } = await applyTrust(answer, finding, { env });
    this.#trust = trust;
    for (const each of said) this.#ui.say(each);
    const values = { ...this.#values, ...(trustOnce && { trust: true }) };
    this.#setup = this.#spoken(await readSetup(values, this.#io, { quietAboutTrust: true }));
  }

  #spoken(setup: Setup): Setup {
    return { ...setup, warn: (text) => this.#ui.warn(text) };
  }

  /** False: the user wants to leave. */
  async #askForModel(): Promise<boolean> {
    if (this.#models) return true;
    const { env } = this.#io;
    const start = await import("../start/no-key.ts");
    if (await start.hasModel(this.#setup.settings, env)) return true;
    const { findLocalServers } = await import("../start/local-servers.ts");
    const way = await start.askForModel({
      ui: this.#ui,
      env,
      servers: await findLocalServers({ env, signal: this.#io.signal }),
      askSecret: async () => {
        // The terminal shows what is typed, and may read it aloud.
        this.#ui.warn("A key would be shown here. Leave, and store it with: gyre login SERVICE");
        return undefined;
      },
    });
    if (way.type === "leave") return false;
    if (way.type === "scripted") {
      const { demoEnvironment, demoFolder } = await import("../start/demo-folder.ts");
      const { scriptedModels } = await import("../start/scripted.ts");
      const { path } = await demoFolder();
      this.#setup = { ...this.#setup, cwd: path };
      this.#variables = demoEnvironment(env);
      this.#models = scriptedModels({ folder: path, fast: env["GYRE_FAST"] === "1" });
      this.#isScripted = true;
    } else if (way.type === "model") {
      const { settings } = this.#setup;
      this.#setup = { ...this.#setup, settings: { ...settings, model: way.name } };
      this.#variables = way.variables;
    }
    return true;
  }

  async #open(chosen: ChosenSession, conversation: SpokenConversation): Promise<void> {
    const opening = openHarness({
      ...this.#setup,
      ...chosen,
      env: { ...this.#io.env, ...this.#variables },
      approvals: (request) => conversation.approve(request),
      fileHistory: true,
      ...(this.#models && { models: this.#models }),
    });
    conversation.use(opening);
    this.#session = chosen.session;
    const harness = await opening;
    this.#sayWhere(harness);
    this.#events.replay(harness.agent.state.messages);
    const { allCommands } = await import("../commands/all-commands.ts");
    this.#commands = allCommands({ harness, setup: this.#setup, io: this.#io });
  }

  /** What it begins with. */
  #sayWhere({ model, toolset }: Harness): void {
    const folder = shownLine(toolset.env.workspace.root);
    const trust = this.#trust === "nothing to trust" ? "" : `, which is ${this.#trust}`;
    this.#terminal.line(
      `This is gyre ${version()} with ${shownLine(model.name)} in ${folder}${trust}. /help tells what can be written.`,
    );
  }

  async #reopen(request: OpenRequest): Promise<void> {
    const conversation = this.#conversation;
    if (!conversation || conversation.isWorking) return;
    const { edit, next } = await this.#nextOf(request, conversation);
    await this.#open(next, conversation);
    if (edit !== undefined) this.#ui.edit(edit);
  }

  /** What to open next; what is open is closed. */
  async #nextOf(
    request: OpenRequest,
    conversation: SpokenConversation,
  ): Promise<{ next: ChosenSession; edit?: string | undefined }> {
    if ("entry" in request) {
      const session = conversation.harness?.session;
      if (!session) throw new Error("This conversation is not written down: it has one branch.");
      await session.branch(request.entry);
      await this.#closeSession();
      const { openSession } = await import("@gyre/sessions");
      return { next: { session: await openSession(session.path) }, edit: request.edit };
    }
    const store = await openStore(this.#io);
    // Opened before the other is left: if that fails, nothing has changed.
    const next: ChosenSession =
      "session" in request
        ? { session: await store.open(request.session) }
        : { newSession: () => store.create({ cwd: this.#setup.cwd }) };
    await this.#closeSession();
    return { next, edit: "new" in request ? request.prompt : undefined };
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

  async #closedSoon(begun: Promise<void>): Promise<void> {
    let forget = (): void => {};
    const late = new Promise<void>((settle) => {
      forget = this.#clock.after(LEAVING_MS, settle);
    });
    await Promise.race([this.#closed(begun), late]).finally(forget);
  }

  /** How to come back. */
  #sayGoodbye(): void {
    const session = this.#conversation?.harness?.session;
    const isKept = session && !this.#isScripted;
    this.#terminal.line(isKept ? `To come back: gyre --resume ${session.header.id}` : "Goodbye.");
  }
}

function codeOf({ reason }: AbortSignal): ExitCode {
  return reason instanceof ExitError ? reason.exitCode : EXIT.interrupted;
}
