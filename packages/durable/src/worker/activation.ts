import { type AgentEndEvent, type AgentMessage, SinkError } from "@gyre/agent";
import { errorMessage, type Usage } from "@gyre/ai";
import { type EntryInfo, openEntryLog, type Session, SessionError } from "@gyre/sessions";
import type { DurableAgent, OpenRun } from "../contract/agent.ts";
import { DurableError } from "../contract/errors.ts";
import { decodeMessages } from "../contract/messages.ts";
import type { Runs } from "../runs/runs.ts";
import { StoreFiles } from "../sessions/store-files.ts";
import { toHeader } from "../sessions/store-sessions.ts";
import type { Claim, Finish, Inbox, InboxItem, RunRow } from "../contract/store.ts";
import type { Observer } from "./observer.ts";
import type { Outage } from "./outage.ts";
import { toSummary } from "../runs/summary.ts";
import { readShared } from "./budget.ts";
import { ClientTools } from "./client-tools.ts";
import { FencedError, RunLog } from "./run-log.ts";
import { planReport, planWaits, readDepth, toWaitingCall } from "./waiting.ts";
import { CannotRunError, toStoredEnd, Work, type WorkParts } from "./work.ts";
import type { WorkerOptions } from "./worker.ts";

/** After an error that is not the run's another worker may have more luck. */
const RETRY_MS = 1_000;

/** How an activation ended. `lost`: another worker has the session. */
export type ActivationOutcome = "parked" | "ended" | "released" | "lost";

/** What the activations of a worker share. */
export interface ActivationParts {
  readonly runs: Runs;
  readonly admit: WorkerOptions["admit"];
  readonly outage: Outage;
  readonly observer: Observer;
}

/** One worker's work on a session, from its claim until it is parked. */
export class Activation {
  readonly claim: Claim;
  readonly #runs: Runs;
  readonly #definition: DurableAgent;
  readonly #admit: WorkerOptions["admit"];
  readonly #observer: Observer;
  readonly #lost = new AbortController();
  readonly #log: RunLog;
  /** The inbox is not looked at while the session is parked: what comes wakes it. */
  #isParking = true;
  #isLooking = false;
  #shouldLook = false;
  #isDraining = false;
  #work: Work | undefined;
  #clientTools: ClientTools | undefined;
  /** What identifies the span of the activation. */
  #span: string | undefined;
  /** The newest inbox that was read. */
  #inbox: Inbox = { wakes: 0, toolChanges: 0, items: [] };
  /** What was sent after this item is read alone; 0: all of the inbox has to be read. */
  #newest = 0;

  constructor(parts: ActivationParts, claim: Claim, definition: DurableAgent) {
    const { runs, admit, outage, observer } = parts;
    this.claim = claim;
    this.#runs = runs;
    this.#definition = definition;
    this.#admit = admit;
    this.#observer = observer;
    this.#log = new RunLog(runs.store, claim, this.#lost.signal, outage, observer.meter);
  }

  /** The wakes of the newest inbox that was read. */
  get seen(): number {
    return this.#inbox.wakes;
  }

  /** Works until the session is parked. Never rejects. */
  async work(): Promise<ActivationOutcome> {
    try {
      return await this.#run();
    } catch (error) {
      if (isFenced(error)) return "lost";
      this.#runs.report(error, `run of the session "${this.claim.session}"`);
      return this.#giveBack();
    } finally {
      this.#work?.end();
      await this.#work
        ?.close()
        .catch((error: unknown) => this.#runs.report(error, `close of "${this.claim.agent}"`));
    }
  }

  /** Looks at the inbox: something was sent. */
  look(): void {
    this.#shouldLook = true;
    if (this.#isParking || this.#isLooking) return;
    this.#isLooking = true;
    this.#look()
      // The worker looks again after a while.
      .catch((error: unknown) => this.#runs.report(error, "inbox"))
      .finally(() => (this.#isLooking = false));
  }

  /** Ends after the turn that goes on, so that another worker can continue. */
  drain(): void {
    this.#isDraining = true;
  }

  /** The claim is lost, or is to be: nothing is written any more. */
  lose(): void {
    this.#lost.abort();
    this.#work?.agent.abort();
  }

  async #look(): Promise<void> {
    while (this.#shouldLook) {
      this.#shouldLook = false;
      const after = this.#newest;
      const inbox = await this.#runs.store.readInbox(this.claim.session, after);
      if (this.#isParking) return;
      // The session was parked meanwhile, and all of the inbox read.
      if (after !== this.#newest) continue;
      this.#noteInbox(
        after === 0 ? inbox : { ...inbox, items: [...this.#inbox.items, ...inbox.items] },
      );
      if (after === 0) this.#work?.accept(inbox.items);
      else this.#work?.acceptMore(inbox.items);
      await this.#loadClientTools();
    }
  }

  async #loadClientTools(): Promise<void> {
    if (await this.#clientTools?.load(this.#inbox.toolChanges)) this.#work?.updateClientTools();
  }

  async #readInbox(): Promise<Inbox> {
    this.#noteInbox(await this.#runs.store.readInbox(this.claim.session));
    return this.#inbox;
  }

  #noteInbox(inbox: Inbox): void {
    this.#inbox = inbox;
    const { items } = inbox;
    // What is not due yet is read again: until then less and less time is left.
    const isDue = items.every(({ dueInMs }) => dueInMs <= 0);
    this.#newest = isDue ? (items.at(-1)?.id ?? 0) : 0;
  }

  async #run(): Promise<ActivationOutcome> {
    const { store } = this.#runs;
    const { claim } = this;
    const infos = await this.#log.load();
    const { items } = await this.#readInbox();
    const prompt = items.find(({ kind, dueInMs }) => kind === "prompt" && dueInMs <= 0);
    const id = claim.run ?? prompt?.run;
    const row = id === undefined ? undefined : await store.readRun(id);
    if (!row) return this.#pass(id, claim.run === undefined ? prompt : undefined);
    const waitMs = await this.#readWait(row, items);
    if (waitMs > 0) {
      await this.#log.finish({ status: "ready", readyInMs: waitMs });
      return "released";
    }
    return this.#observer.trace({ claim, row }, (span) => {
      this.#span = span;
      return this.#workOn(row, infos, claim.run === undefined ? prompt : undefined);
    });
  }

  /** There is nothing to do, or it was removed by hand: what waits behind it goes on. */
  async #pass(run: string | undefined, prompt: InboxItem | undefined): Promise<ActivationOutcome> {
    const { claim } = this;
    if (run !== undefined) {
      const text = `The session "${claim.session}" has no run "${run}" any more: it is left out.`;
      this.#runs.report(new DurableError("not_found", text), "claim");
    }
    if (prompt) this.#log.take(prompt.id);
    const outcome = await this.#log.finish({
      ...{ seen: this.seen, ...planNext(this.#inbox.items, run) },
      ...(claim.run !== undefined && {
        end: { run: claim.run, stop: "error", abortsChildren: true },
      }),
    });
    return outcome === "woken" ? this.#giveBack() : "parked";
  }

  /** `prompt`: the run begins with it. */
  async #workOn(
    row: RunRow,
    entries: readonly EntryInfo[],
    prompt: InboxItem | undefined,
  ): Promise<ActivationOutcome> {
    const { claim } = this;
    const session = openEntryLog({
      header: toHeader(claim.session, claim.header),
      entries,
      log: this.#log,
      files: new StoreFiles(this.#runs.store, claim.session, this.#lost.signal),
    });
    const messages = prompt && readPrompt(prompt);
    if (typeof messages === "string") return this.#refuse(row, prompt, messages);
    if (claim.version === "") this.#log.open({ run: row.id, version: this.#definition.version });
    if (prompt && messages) await this.#openNext(session, prompt, messages);
    const work = await this.#open(session, row);
    if (typeof work === "string") return this.#fail(row, work);
    this.#work = work;
    for (; ; await this.#readInbox()) {
      work.accept(this.#inbox.items);
      await this.#loadClientTools();
      this.#isParking = false;
      let end: AgentEndEvent | undefined;
      try {
        end = await work.proceed(() => this.#isDraining);
      } catch (error) {
        if (!(error instanceof CannotRunError)) throw error;
        this.#isParking = true;
        return this.#fail(row, `The agent "${claim.agent}" cannot run: ${error.message}`);
      }
      // From here on nothing is accepted, so that what comes wakes the session.
      this.#isParking = true;
      const isLeft = work.hasMore(end) || (!end && work.isLeft());
      if (isLeft && !this.#isDraining && !work.needsReopening) continue;
      if (isLeft || work.needsReopening || (end && work.wasDrained(end))) {
        this.#log.resume();
        await this.#log.finish({ status: "ready" });
        return "released";
      }
      const outcome = await this.#park(work, row, end);
      if (outcome) return outcome;
    }
  }

  /** How long the run has to wait until it is admitted. */
  async #readWait(row: RunRow, items: readonly InboxItem[]): Promise<number> {
    const isAborted = items.some(({ kind, run }) => kind === "abort" && run === row.id);
    return isAborted ? 0 : ((await this.#admit?.(toSummary(row))) ?? 0);
  }

  /** The prompt of a run that waited for the one before it. */
  async #openNext(
    session: Session,
    { id }: InboxItem,
    messages: readonly AgentMessage[],
  ): Promise<void> {
    await this.#log.deliver(id, async () => {
      for (const message of messages) {
        await session.append({ type: "message", message });
      }
    });
    await this.#log.flush();
  }

  /** Opens the agent; a text says why that failed. */
  async #open(session: Session, row: RunRow): Promise<Work | string> {
    let read: Pick<WorkParts, "context" | "shared"> & { meta: OpenRun["meta"] };
    try {
      read = {
        context: await session.context(),
        shared: await readShared(this.#runs.store, row, JSON.parse(row.usage)),
        meta: row.meta === undefined ? {} : JSON.parse(row.meta),
      };
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#runs.report(error, `run "${row.id}"`);
      return `Run "${row.id}" cannot be read from its store: ${errorMessage(error)} Put it right there, and retry the run.`;
    }
    return this.#openAgent(session, row, read);
  }

  async #openAgent(
    session: Session,
    row: RunRow,
    { context, shared, meta }: Pick<WorkParts, "context" | "shared"> & { meta: OpenRun["meta"] },
  ): Promise<Work | string> {
    const { claim } = this;
    const clientTools = new ClientTools({
      ...{ store: this.#runs.store, session: claim.session, run: row.id },
      ...{ transcript: session, log: this.#log },
      report: (error, where) => this.#runs.report(error, where),
    });
    await clientTools.load(this.#inbox.toolChanges);
    this.#clientTools = clientTools;
    const open: OpenRun = {
      ...{ id: row.id, session: claim.session, tenant: claim.tenant, activation: claim.token },
      ...{ meta, settings: context.settings, transcript: session, signal: this.#lost.signal },
    };
    try {
      const options = await this.#definition.open(open);
      const close = async (): Promise<void> => this.#definition.close?.(open);
      const { meter } = this.#observer;
      const parts = {
        runs: this.#runs,
        claim,
        row,
        shared,
        session,
        context,
        options,
        log: this.#log,
        clientTools,
        meter,
        span: this.#span,
      };
      return new Work({ ...parts, close, isDraining: () => this.#isDraining });
    } catch (error) {
      if (isFenced(error)) throw error;
      this.#runs.report(error, `open of the agent "${claim.agent}"`);
      return `The agent "${claim.agent}" could not be opened: ${errorMessage(error)}`;
    }
  }

  async #park(
    work: Work,
    row: RunRow,
    end: AgentEndEvent | undefined,
  ): Promise<ActivationOutcome | undefined> {
    const { pending } = work.agent.state;
    const { items } = this.#inbox;
    if (pending.length > 0 && (!end || end.stop === "suspended")) {
      const dues = items.flatMap(({ run, dueInMs }) =>
        run === row.id && dueInMs > 0 ? dueInMs : [],
      );
      const finish: Finish = {
        seen: this.seen,
        status: "waiting",
        pending: JSON.stringify(pending.map(toWaitingCall)),
        ...planWaits(row, pending, readDepth(row), work.budget),
        ...(dues.length > 0 && { readyInMs: Math.min(...dues) }),
      };
      const outcome = await this.#log.finish(finish);
      return outcome === "woken" ? undefined : "parked";
    }
    const last = end ?? work.inferEnd();
    const answer = await work.readAnswer(last);
    const outcome = await this.#end(row, last, !work.hasWrittenEnd, answer);
    if (outcome === "woken") return undefined;
    this.#noteEnd(row, last, work.activeMs);
    return "ended";
  }

  #end(
    row: RunRow,
    end: AgentEndEvent,
    writesEnd: boolean,
    answer?: string,
  ): Promise<"done" | "woken"> {
    const report = planReport(row, end);
    const error = end.errorMessage ?? end.finalMessage?.errorMessage;
    return this.#log.finish(
      {
        seen: this.seen,
        ...planNext(this.#inbox.items, row.id),
        end: {
          ...{ run: row.id, stop: end.stop, abortsChildren: true },
          ...(error !== undefined && { error }),
          ...(answer !== undefined && { answer }),
          ...(report && { report }),
        },
      },
      writesEnd ? toStoredEnd(row.id, end) : undefined,
    );
  }

  #noteEnd({ id: run }: RunRow, { stop, turns }: AgentEndEvent, activeMs: number): void {
    this.#observer.meter.countRun(activeMs);
    this.#observer.log({ event: "end", session: this.claim.session, run, stop, turns, activeMs });
  }

  /** Ends a run that has not begun, and never can. */
  #refuse(
    row: RunRow,
    prompt: InboxItem | undefined,
    errorText: string,
  ): Promise<ActivationOutcome> {
    this.#runs.report(new Error(errorText), "inbox: prompt");
    if (prompt) this.#log.take(prompt.id);
    return this.#fail(row, errorText, false);
  }

  /** Ends a run that cannot be worked on. `retry()` tries again. */
  async #fail(row: RunRow, errorText: string, writesEnd = true): Promise<ActivationOutcome> {
    for (;;) {
      await this.#readInbox();
      const end: AgentEndEvent = {
        ...{ type: "agent_end", messages: [], stop: "error", errorMessage: errorText },
        ...{ turns: row.turns, usage: readUsage(row), undelivered: [], pending: [] },
      };
      if ((await this.#end(row, end, writesEnd)) === "woken") continue;
      this.#noteEnd(row, end, row.activeMs);
      return "ended";
    }
  }

  /** Leaves the session to any worker. */
  async #giveBack(): Promise<ActivationOutcome> {
    const report = (error: unknown): void =>
      this.#runs.report(error, `run of the session "${this.claim.session}"`);
    const isReleased = await this.#log.release({ status: "ready", readyInMs: RETRY_MS }, report);
    return isReleased ? "released" : "lost";
  }
}

/** What a session does after a run: the next one may wait for its time. */
function planNext(
  items: readonly InboxItem[],
  ended?: string,
): Pick<Finish, "status" | "readyInMs"> {
  const dues = items.flatMap(({ kind, run, dueInMs }) =>
    kind === "prompt" && run !== ended ? [dueInMs] : [],
  );
  if (dues.length === 0) return { status: "idle" };
  const readyInMs = Math.min(...dues);
  return { status: "ready", ...(readyInMs > 0 && { readyInMs }) };
}

/** The messages of a prompt; a text says why there are none. */
function readPrompt({ run, data }: InboxItem): AgentMessage[] | string {
  try {
    return decodeMessages(JSON.parse(data));
  } catch (error) {
    return `The prompt of run "${run}" cannot be read: ${errorMessage(error)} It stays in the inbox of its session: send it again as another run.`;
  }
}

/** Of a run that ends, also where it cannot be read. */
function readUsage({ usage }: RunRow): Usage {
  try {
    return JSON.parse(usage);
  } catch {
    // The error that the run ends with says so.
    return {};
  }
}

/** Whether a row has something else than was written to it: another worker cannot read it either. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof SyntaxError || error instanceof TypeError) return true;
  return error instanceof SessionError && error.code === "unreadable";
}

function isFenced(error: unknown): boolean {
  if (error instanceof SinkError) return isFenced(error.cause);
  return error instanceof FencedError;
}
