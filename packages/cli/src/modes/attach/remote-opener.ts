import { errorMessage } from "@gyre/ai";
import { createRemoteClient, type Payload, ProtocolError, type WireClient } from "@gyre/protocol";
import { RemoteAgent } from "@gyre/server/client";
import type { OpenRequest } from "@gyre/coding/internal/conversation/command";
import type { ConnectionFact, ShownAgent } from "@gyre/coding/internal/conversation/types";
import { type ModelChoice, modelValue } from "@gyre/coding/internal/text/choices";
import { EXIT, ExitError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import { copyBy, type ViewContext } from "../../slash-commands/command-context.ts";
import {
  listRemoteCommands,
  readServedCommands,
  type RemoteCommand,
  type RemoteContext,
} from "../../slash-commands/remote/commands.ts";
import type { ConversationOpener, OpenerPlace, Reopened } from "../tui/start/opener.ts";
import { RemoteHarness, type RemoteHarnessOptions } from "./remote-harness.ts";
import { readRemoteTree } from "./remote-tree.ts";
import { listSessionChoices } from "./session-choices.ts";

/** How long it may take to leave a server that does not answer. */
const LEAVING_MS = 1_000;

/** Sessions that are looked through for the beginning of an id. */
const MAX_LISTED = 1_000;

/** What is asked for of a new session. */
export type SessionWish = Readonly<
  Partial<Record<"cwd" | "model" | "thinkingLevel" | "mode", string>>
>;

export interface RemoteOpenerOptions extends OpenerPlace {
  io: Io;
  setup: Setup;
  /** Warnings from before there was a place for them. */
  warnings: readonly string[];
  client: WireClient;
  connection: () => ConnectionFact;
  /** The session to attach to; undefined: it is chosen, unless a new one is wished for. */
  session: string | undefined;
  wish: SessionWish;
  /** The command that comes back to a session. */
  describeReturn: (session: string) => string;
}

type Chosen = { id: string } | { create: SessionWish };

/** Opens sessions of a server for the user at a terminal. */
export class RemoteOpener implements ConversationOpener {
  readonly trust = "nothing to trust";
  readonly setup: Setup;
  readonly #options: RemoteOpenerOptions;
  #chosen: Chosen | undefined;
  #harness: RemoteHarness | undefined;
  #commands: readonly RemoteCommand[] = [];

  constructor(options: RemoteOpenerOptions) {
    this.#options = options;
    this.setup = { ...options.setup, warn: (text) => options.ui.warn(text) };
  }

  get commands(): readonly RemoteCommand[] {
    return this.#commands;
  }

  get resumeHint(): string | undefined {
    return this.#harness && this.#options.describeReturn(this.#harness.sessionId);
  }

  get leaveNote(): string | undefined {
    return this.#harness?.isRunning ? "It goes on at the server." : undefined;
  }

  /** Asks for a session where none is named. */
  async prepare(): Promise<boolean> {
    const { client, clock, session, ui, warnings, wish } = this.#options;
    for (const text of warnings) ui.warn(text);
    if (session !== undefined) this.#chosen = { id: await this.#findId(session) };
    else if (Object.keys(wish).length > 0) this.#chosen = { create: wish };
    if (this.#chosen) return true;
    const choices = await listSessionChoices(client, clock.now());
    if (choices.length === 0) {
      this.#chosen = { create: {} };
      return true;
    }
    const id = await ui.choose({
      title: "Sessions of the server",
      choices: [{ value: "", label: "A new session" }, ...choices],
      start: 1,
      filter: true,
    });
    if (id !== undefined) this.#chosen = id === "" ? { create: {} } : { id };
    return id !== undefined;
  }

  async openFirst(): Promise<ShownAgent | undefined> {
    return this.#chosen && this.#open(this.#chosen);
  }

  async reopen(request: OpenRequest): Promise<Reopened> {
    const harness = this.#harness;
    if (!harness || this.#options.conversation()?.controller.isWorking) return {};
    if ("entry" in request) {
      const { entry, edit } = request;
      await harness.goTo(entry);
      return { harness, id: harness.sessionId, ...(edit !== undefined && { edit }) };
    }
    const isNew = "new" in request;
    const next: Chosen = isNew ? { create: { cwd: harness.folder } } : { id: request.session };
    // Opened before the other is left: if that fails, nothing has changed.
    const opened = await this.#open(next);
    await harness.close();
    const edit = isNew ? request.prompt : undefined;
    return {
      harness: opened,
      ...(!isNew && { id: opened?.sessionId }),
      ...(edit !== undefined && { edit }),
    };
  }

  createContext({ control, ...own }: ViewContext): RemoteContext {
    const harness = this.#requireHarness();
    const { client, clock, io } = this.#options;
    const request = (name: string, payload: Payload, signal?: AbortSignal): Promise<Payload> =>
      harness.request(name, payload, signal);
    return {
      ...own,
      harness,
      request,
      abort: () => harness.agent.abort(),
      models: () => this.#listModels(),
      commands: () => this.#commands,
      sessions: () => listSessionChoices(client, clock.now(), harness.sessionId),
      tree: () => readRemoteTree(request),
      copy: (text) => copyBy(control, text, io.env),
    };
  }

  async findFiles(query: string, signal: AbortSignal): Promise<readonly string[]> {
    try {
      const { paths } = await this.#requireHarness().request("find_files", { query }, signal);
      return Array.isArray(paths) ? paths.map(String) : [];
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.code !== "not_implemented") throw error;
      throw new Error("The server does not offer its files: write the path.", { cause: error });
    }
  }

  async closeSoon(begun: Promise<void>): Promise<void> {
    const { client, clock, conversation } = this.#options;
    let forget = (): void => {};
    const late = new Promise<void>((settle) => {
      forget = clock.after(LEAVING_MS, settle);
    });
    const closed = (async () => {
      await conversation()?.close();
      await client.close();
      await begun;
    })();
    await Promise.race([closed, late]).finally(forget);
  }

  async #open(chosen: Chosen): Promise<RemoteHarness | undefined> {
    const { client, clock, connection, conversation, io, ui, update, view } = this.#options;
    const controller = conversation()?.controller;
    if (!controller) return undefined;
    const options: RemoteHarnessOptions = {
      client,
      clock,
      connection,
      pictureFolder: io.cwd,
      approve: (request, readText) => controller.approve(request, readText),
      answerServer: (question, signal) => controller.answerServer(question, signal),
      reviewPlan: controller.reviewPlan,
      warn: (text) => ui.warn(text),
      update,
      replay: (note) => this.#replay(note),
      lost: (error) => ui.warn(`The session cannot be reached any more: ${errorMessage(error)}`),
    };
    const opening = RemoteHarness.open(options, chosen).catch((error: unknown) => {
      throw explainOpening(error, chosen);
    });
    // It is known before the controller has it: commands get it from here.
    const before = this.#harness;
    const known = opening.then((harness) => (this.#harness = harness));
    if (!before) controller.use(known);
    const harness = await known;
    if (before) controller.use(Promise.resolve(harness));
    this.#commands = listRemoteCommands(view, []);
    const served = await readServedCommands((name, payload) => harness.request(name, payload));
    this.#commands = listRemoteCommands(view, served);
    return harness;
  }

  #replay(note: string): void {
    if (this.#harness) this.#options.replay(this.#harness, note);
  }

  /** The whole id of a session, of which the beginning is enough. */
  async #findId(given: string): Promise<string> {
    const { sessions } = await RemoteAgent.listPage(this.#options.client, { limit: MAX_LISTED });
    const ids = sessions.map(({ id }) => id).filter((id) => id.startsWith(given));
    return ids.includes(given) || ids.length !== 1 ? given : (ids[0] ?? given);
  }

  #requireHarness(): RemoteHarness {
    if (!this.#harness) throw new Error("The session is not open yet.");
    return this.#harness;
  }

  async #listModels(): Promise<readonly ModelChoice[]> {
    const models = await createRemoteClient({ peer: this.#options.client }).models();
    return models.map((model) => ({ value: modelValue(model), name: model.name }));
  }
}

function explainOpening(error: unknown, chosen: Chosen): unknown {
  if (!(error instanceof ProtocolError)) return error;
  const what = "id" in chosen ? `The session "${chosen.id}"` : "A new session";
  const hint =
    error.code === "session_not_found" ? " gyre attach without an id lists the sessions." : "";
  const message = `${what} cannot be opened at the server: ${error.message}${hint}`;
  return new ExitError(EXIT.failed, message, { cause: error });
}
