import { errorMessage } from "@gyre/ai";
import type { AgentEvent, AgentSink } from "@gyre/agent";
import {
  createJournal,
  type Session,
  type SessionContext,
  type SessionSettings,
} from "@gyre/sessions";

/** What a harness writes to its session, once there is one. */
export class SessionLog {
  #session: Session | undefined;
  #sink: AgentSink | undefined;
  #saved: SessionSettings;
  /** Why the session could not be written to. */
  error: string | undefined;

  constructor(session: Session | undefined, context: SessionContext | undefined) {
    this.#saved = context?.settings ?? {};
    this.use(session, context);
  }

  get session(): Session | undefined {
    return this.#session;
  }

  /** Writes to this session from now on. */
  use(session: Session | undefined, context?: SessionContext): void {
    if (!session) return;
    this.#session = session;
    this.#sink = createJournal(session, context);
  }

  /** Writes an event. Rejects where that fails, and keeps the reason in `error`. */
  write(event: AgentEvent): void | Promise<void> {
    const writing = this.#sink?.(event);
    if (!(writing instanceof Promise)) return;
    return writing.catch((error: unknown) => {
      this.error = errorMessage(error);
      throw error;
    });
  }

  /** Writes those settings that differ from what the session has. */
  async saveSettings(now: Required<SessionSettings>): Promise<void> {
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
