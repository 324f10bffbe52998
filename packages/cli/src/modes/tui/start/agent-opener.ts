import { errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import {
  type Harness,
  type HarnessOptions,
  openHarness,
} from "@gyre/coding/internal/harness/harness";
import { findRuleFile } from "@gyre/coding/internal/permissions/rule-book";
import type { Environment, Io } from "../../../core/io.ts";
import type { Models } from "@gyre/coding/internal/models/models";
import type { Values } from "../../../core/options.ts";
import { UsageError } from "../../../core/exit-codes.ts";
import {
  type ChosenSession,
  chooseSession,
  createStored,
  openStore,
  readSetup,
  type Setup,
} from "../../../core/setup.ts";
import type { OpenRequest } from "@gyre/coding/internal/conversation/command";
import { titleText } from "@gyre/coding/internal/text/session-title";
import {
  createSlashContext,
  type SlashCommand,
  type SlashContext,
  type ViewContext,
} from "../../../slash-commands/command-context.ts";
import type { FileFinder } from "../editor/file-finder.ts";
import type { FolderTrust } from "./banner.ts";
import type { ConversationOpener, OpenerPlace, Reopened } from "./opener.ts";

/** How long running work may take to end when the user leaves. */
const LEAVING_MS = 3_000;

/** Settings that take precedence over those of a session, once the user has set them. */
const CARRIED = ["model", "thinking"] as const;

/** The setup before the user can answer questions. */
export interface FirstSetup {
  /** Read without the files of a folder that is not trusted. */
  setup: Setup;
  /** Shown later: there is no place for them yet. */
  warnings: readonly string[];
}

/** Throws `UsageError` for an invalid command line. */
export async function readFirstSetup(values: Values, io: Io): Promise<FirstSetup> {
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  return { setup: await readSetup(values, io, { quietAboutTrust: true, warn }), warnings };
}

export interface OpenerOptions extends OpenerPlace {
  values: Values;
  io: Io;
  first: FirstSetup;
  /** Replaces the models of the settings: the user is not asked for a model then. */
  models?: Models | undefined;
}

/**
 * Opens the agent for a user at a terminal: asks for trust and for a model first, finds the session, switches to other
 * sessions, and closes what it opened.
 */
export class AgentOpener implements ConversationOpener {
  readonly #options: OpenerOptions;
  #setup: Setup;
  #trust: FolderTrust = "nothing to trust";
  #models: Models | undefined;
  #isScripted = false;
  #variables: Environment = {};
  /** The agent that is open, or was last. */
  #harness: Harness | undefined;
  #finder: FileFinder | undefined;
  /** The session file that the opener has to close. */
  #session: Session | undefined;
  #commands: readonly SlashCommand[] = [];
  /** Warnings that were shown already: the setup is read more than once. */
  readonly #warned = new Set<string>();

  constructor(options: OpenerOptions) {
    this.#options = options;
    this.#models = options.models;
    this.#setup = this.#withWarnings(options.first.setup);
  }

  get setup(): Setup {
    return this.#setup;
  }

  get trust(): FolderTrust {
    return this.#trust;
  }

  /** Of the agent that is open. */
  get commands(): readonly SlashCommand[] {
    return this.#commands;
  }

  /** The command that resumes the session; undefined where there is nothing to resume. */
  get resumeHint(): string | undefined {
    const session = this.#harness?.session;
    // In a clone of the repository there is no program of this name.
    const isInstalled = this.#options.io.env["npm_lifecycle_event"] !== "start";
    return session && !this.#isScripted && isInstalled
      ? `gyre --resume ${session.header.id}`
      : undefined;
  }

  async prepare(): Promise<boolean> {
    await this.askForTrust();
    return this.askForModel();
  }

  createContext(own: ViewContext): SlashContext {
    const { io } = this.#options;
    const harness = this.#harness;
    if (!harness) throw new Error("The agent is not open yet.");
    const parts = { io, setup: () => this.#setup, commands: () => this.#commands };
    const openRival: SlashContext["openRival"] = async (place) => {
      const { openRivalHarness } = await import("./rival-opener.ts");
      const setup = this.#carry(harness, false);
      return openRivalHarness(await this.#harnessOptions(setup), setup, place);
    };
    return createSlashContext(parts, { ...own, harness, openRival });
  }

  async findFiles(query: string, signal: AbortSignal): Promise<readonly string[]> {
    const { toolset } = this.#harness ?? {};
    if (!toolset) throw new Error("The agent is not open yet.");
    const { createWorkspaceFinder } = await import("../editor/file-finder.ts");
    this.#finder ??= createWorkspaceFinder(toolset.env.workspace, this.#options.clock);
    return this.#finder.find(query, signal);
  }

  /** Nothing of the folder is used before the answer. */
  async askForTrust(): Promise<void> {
    const { first, io, ui, values } = this.#options;
    for (const text of first.warnings) this.#warnOnce(text);
    const { applyTrust, askAboutTrust: trustQuestion } = await import("./trust-question.ts");
    const { env } = io;
    const { columns, theme } = ui;
    const { cwd, policy } = this.#setup;
    const refusal = policy?.refusesProjects;
    const place = { env, cwd, start: io.cwd, flags: values, theme, columns, refusal };
    const finding = await trustQuestion(place);
    this.#trust = finding.trust;
    for (const note of finding.notes) ui.warn(note);
    if (!finding.question) return;
    if (finding.listing) ui.show(finding.listing);
    const answer = await ui.choose(finding.question);
    const { messages, trust, trustOnce } = await applyTrust(answer, finding, { env });
    this.#trust = trust;
    for (const each of messages) ui.say(each);
    const now = { ...values, ...(trustOnce && { trust: true }) };
    const warn = (text: string): void => this.#warnOnce(text);
    this.#setup = this.#withWarnings(await readSetup(now, io, { quietAboutTrust: true, warn }));
  }

  /** What an agent wrote for agents is used once the user has seen it. */
  async askAboutGuidance(): Promise<void> {
    const { io, ui } = this.#options;
    const { cwd, settings } = this.#setup;
    const { acceptHeldTexts, findHeldTexts } =
      await import("@gyre/coding/internal/guidance/guidance");
    const held = await findHeldTexts({ cwd, env: io.env }, settings);
    if (held.length === 0) return;
    const { askAboutGuidance } = await import("./guidance-question.ts");
    const { columns, theme } = ui;
    const { listing, question } = askAboutGuidance(held, { cwd, theme, columns });
    ui.show(listing);
    if ((await ui.choose(question)) === "accept") acceptHeldTexts(held, io.env);
  }

  /** False: there is no model, and the user wants to leave. */
  async askForModel(): Promise<boolean> {
    if (this.#models) return true;
    const { askSecret, io, ui } = this.#options;
    const { env, signal } = io;
    const { settings } = this.#setup;
    const { askForModel, hasModel } = await import("./no-key.ts");
    if (await hasModel(settings, env)) return true;
    const { findLocalServers } = await import("./local-servers.ts");
    const servers = await findLocalServers({ env, signal });
    const way = await askForModel({ ui, env, servers, askSecret });
    if (way.type === "scripted") await this.#useScripted(env);
    else if (way.type === "model") {
      this.#setup = { ...this.#setup, settings: { ...settings, model: way.name } };
      this.#variables = way.variables;
    }
    return way.type !== "leave";
  }

  /** Opens the session that the command line asks for, with an agent in it. */
  async openFirst(): Promise<Harness | undefined> {
    const { io, values } = this.#options;
    if (values.database !== undefined) {
      throw new UsageError(
        "--database needs --print: the terminal keeps sessions in files. gyre serve --database shares them.",
      );
    }
    const chosen = values.resume === "" ? await this.#chooseStored(values) : values;
    const harness = await this.#open(
      await chooseSession(chosen, this.#setup, io, { isAttended: true }),
    );
    void this.#reportRaces();
    return harness;
  }

  /** `--resume` without an id: the user chooses. Without a choice it is a new session. */
  async #chooseStored({ resume: _asked, fork: _fork, ...values }: Values): Promise<Values> {
    const { io, ui } = this.#options;
    const { fork } = this.#options.values;
    const { chooseStored } = await import("../../../slash-commands/resume.ts");
    const choose: SlashContext["choose"] = ({ about: _about, ...question }) => ui.choose(question);
    const place = { choose, cwd: this.#setup.cwd };
    try {
      const path = await chooseStored("", await openStore(io), place);
      return path === undefined ? values : { ...values, resume: path, ...(fork && { fork }) };
    } catch (error) {
      ui.warn(errorMessage(error));
      return values;
    }
  }

  async reopen(request: OpenRequest): Promise<Reopened> {
    const controller = this.#options.conversation()?.controller;
    if (controller?.isWorking) return {};
    const harness = this.#harness;
    const { edit, next } = await this.#findNext(request);
    if (harness) this.#setup = this.#carry(harness, "session" in request);
    const opened = await this.#open(next);
    const id = opened?.session?.header.id;
    return { harness: opened, id, ...(edit !== undefined && { edit }) };
  }

  /** Closes the agent and the session within `LEAVING_MS`. `begun` is an opening that may still run. */
  async closeSoon(begun: Promise<void>): Promise<void> {
    let forget = (): void => {};
    const late = new Promise<void>((settle) => {
      forget = this.#options.clock.after(LEAVING_MS, settle);
    });
    const closed = this.#close().then(() => begun);
    await Promise.race([closed, late]).finally(forget);
  }

  /** The settings of the open session; another session has a model of its own. */
  #carry({ agent, givenRules = [], mode, model }: Harness, isOther: boolean): Setup {
    const { settings } = this.#setup;
    const { allow = [] } = settings;
    const answers = {
      ...(!this.#models && { model: `${model.provider}/${model.id}` }),
      thinking: agent.state.thinkingLevel,
    };
    const given = givenRules.filter(({ scope }) => scope === "session").map(({ rule }) => rule);
    const rules = [...new Set([...allow, ...given])];
    return {
      ...this.#setup,
      settings: { ...settings, mode, allow: rules, ...(!isOther && answers) },
      explicit: new Set([...this.#setup.explicit, ...(isOther ? [] : CARRIED)]),
    };
  }

  async #useScripted(env: Environment): Promise<void> {
    const { createDemoEnvironment: demoEnvironment, createDemoFolder: demoFolder } =
      await import("./demo-folder.ts");
    const { createScriptedModels: scriptedModels } = await import("./scripted.ts");
    const { path } = await demoFolder();
    const { settings } = this.#setup;
    // It shows how questions look, and takes what comes first for a prompt.
    const scripted = { mode: "ask", ...settings, facts: false } as const;
    this.#setup = { ...this.#setup, cwd: path, settings: scripted };
    this.#variables = demoEnvironment(env);
    this.#models = scriptedModels({ folder: path, fast: env["GYRE_FAST"] === "1" });
    this.#isScripted = true;
  }

  async #open(chosen: ChosenSession): Promise<Harness | undefined> {
    const { view, io } = this.#options;
    const controller = this.#options.conversation()?.controller;
    if (!controller) return undefined;
    await this.askAboutGuidance();
    const { reviewPlan } = controller;
    const opening = openHarness({
      ...(await this.#harnessOptions(this.#setup)),
      ...chosen,
      approvals: (request) => controller.approve(request),
      answerServer: (question, signal) => controller.answerServer(question, signal),
      ...(reviewPlan && { reviewPlan }),
    });
    // It is known before the controller has it: commands get it from here.
    const known = opening.then((harness) => (this.#harness = harness));
    this.#finder = undefined;
    controller.use(known);
    this.#session = chosen.session;
    const harness = await known;
    if (chosen.session) this.#checkFiles(harness);
    const { findCommands } = await import("../../../slash-commands/find-commands.ts");
    this.#commands = await findCommands(view, { harness, setup: this.#setup, env: io.env });
    return harness;
  }

  /** What all agents of this program have in common. */
  async #harnessOptions(setup: Setup): Promise<Omit<HarnessOptions, "approvals">> {
    const { io } = this.#options;
    const { builtinCommands } = await import("../../../slash-commands/builtin.ts");
    return {
      ...setup,
      env: { ...io.env, ...this.#variables },
      ...(!this.#isScripted && { ruleFile: findRuleFile(io.env) }),
      fileHistory: true,
      rehearse: true,
      onForeignCode: io.onForeignCode,
      reservedCommands: builtinCommands
        .filter(({ isReplaceable }) => !isReplaceable)
        .map(({ name }) => name),
      ...(this.#models && { models: this.#models }),
    };
  }

  /** Never rejects. A race that was cut off is reported; nothing waits for that. */
  async #reportRaces(): Promise<void> {
    try {
      const { findLeftRaces } = await import("@gyre/coding/internal/race/race-folder");
      const [left] = await findLeftRaces(this.#options.io.env, this.#setup.cwd);
      if (!left) return;
      const { prompt, session } = left.record;
      const isHere = this.#harness?.session?.header.id === session;
      const where = isHere ? "/race" : `gyre --resume ${session}, then /race,`;
      this.#warnOnce(
        `A race was cut off: “${titleText(prompt)}”. ${where} compares what its rivals did, or removes it.`,
      );
    } catch (error) {
      this.#warnOnce(errorMessage(error));
    }
  }

  /** Files that were being brought to another place when the program was ended are reported at once. */
  #checkFiles({ fileHistory }: Harness): void {
    fileHistory?.lines().catch((error: unknown) => this.#warnOnce(errorMessage(error)));
  }

  /** Finds the next session, and closes the open one. */
  async #findNext(
    request: OpenRequest,
  ): Promise<{ next: ChosenSession; edit?: string | undefined }> {
    if ("entry" in request) {
      const session = this.#harness?.session;
      if (session?.path === undefined)
        throw new Error("This conversation is not written down: it has one branch.");
      await session.branch(request.entry);
      await this.#close();
      const { openSession } = await import("@gyre/sessions");
      return { next: { session: await openSession(session.path) }, edit: request.edit };
    }
    const store = await openStore(this.#options.io);
    // Opened before the other is closed: if that fails, nothing has changed.
    const next: ChosenSession =
      "session" in request
        ? { session: await store.open(request.session) }
        : { newSession: () => createStored(store, this.#setup.cwd) };
    await this.#close();
    return { next, edit: "new" in request ? request.prompt : undefined };
  }

  async #close(): Promise<void> {
    await this.#options.conversation()?.close();
    await this.#session?.close();
    this.#session = undefined;
  }

  #warnOnce(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#options.ui.warn(text);
  }

  #withWarnings(setup: Setup): Setup {
    return { ...setup, warn: (text) => this.#options.ui.warn(text) };
  }
}
