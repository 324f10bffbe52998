import { errorMessage } from "@gyre/ai";
import type { AgentEvent, Decision, Middleware, PendingCall, QueueChange } from "@gyre/agent";
import {
  createJournal,
  type Journal,
  type Session,
  type SessionContext,
  type SessionSettings,
} from "@gyre/sessions";

/** What a harness writes to its session, once there is one. */
export class SessionLog {
  #session: Session | undefined;
  #journal: Journal | undefined;
  #saved: SessionSettings = {};
  readonly #isJournaled: boolean;
  /** Why the session could not be written to. */
  error: string | undefined;
  /** Writes that calls begin: the last of the agent's. */
  readonly middleware: Middleware = {
    run: (info) => this.#journal?.middleware.run?.(info),
    tool: (call, next) => this.#journal?.middleware.tool?.(call, next) ?? next(),
  };

  /** `isJournaled`: another writes what the agent does, and this the rest. */
  constructor(
    session: Session | undefined,
    context: SessionContext | undefined,
    isJournaled = false,
  ) {
    this.#isJournaled = isJournaled;
    this.use(session, context);
  }

  get session(): Session | undefined {
    return this.#session;
  }

  /** Writes to this session from now on. */
  use(session: Session | undefined, context?: SessionContext): void {
    if (!session) return;
    this.#session = session;
    if (context) this.#saved = context.settings;
    if (!this.#isJournaled) this.#journal = createJournal(session, context);
  }

  onQueueChange(change: QueueChange): void {
    this.#journal?.onQueueChange(change);
  }

  /** See `Journal`; nothing where nothing is written down. */
  async ask(toolCallId: string, question: Omit<PendingCall, "toolCall">): Promise<void> {
    await this.#journal?.ask(toolCallId, question);
  }

  async decide(decisions: Readonly<Record<string, Decision>>): Promise<void> {
    await this.#journal?.decide(decisions);
  }

  async saved(): Promise<void> {
    await this.#journal?.saved();
  }

  /** Writes an event. Rejects where that fails, and keeps the reason in `error`. */
  write(event: AgentEvent): void | Promise<void> {
    const writing = this.#journal?.(event);
    if (!(writing instanceof Promise)) return;
    return writing.catch((error: unknown) => {
      this.error = errorMessage(error);
      throw error;
    });
  }

  /** Writes those settings that differ from what the session has. */
  async saveSettings(now: SessionSettings): Promise<void> {
    if (!this.#session) return;
    const saved: Record<string, unknown> = { ...this.#saved };
    const changed = Object.entries(now).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(saved[key]),
    );
    if (changed.length === 0) return;
    await this.#session.append({ type: "settings", settings: Object.fromEntries(changed) });
    this.#saved = now;
  }
}
