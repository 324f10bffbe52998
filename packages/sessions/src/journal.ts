import type { AgentEvent, AgentSink, AgentToolResult } from "@gyre/agent";
import { isDeepStrictEqual } from "node:util";
import type { Entry, EntryBody } from "./format/entry.ts";
import { Transcript } from "./format/transcript.ts";
import type { Session, SessionContext } from "./format/types.ts";

type CompactionEvent = Extract<AgentEvent, { type: "compaction" }>;
type CompactionEntry = Extract<Entry, { type: "compaction" }>;
type ToolEndEvent = Extract<AgentEvent, { type: "tool_execution_end" }>;

/**
 * A sink that writes what an agent does into a session file (R25): messages, results of calls, and
 * compactions, each on the disk before a listener gets it. `context` is what the agent began with;
 * without it, that of the session. One journal is for one agent whose messages come from its runs
 * alone: after `replaceMessages` and the like, branch and create a new one.
 */
export function createJournal(session: Session, context?: SessionContext): AgentSink {
  let notes: Promise<JournalWriter> | undefined;
  const start = async (): Promise<JournalWriter> =>
    new JournalWriter(session, context ?? (await session.context()));
  return (event) => {
    const { type } = event;
    if (type !== "message_end" && type !== "tool_execution_end" && type !== "compaction") {
      return undefined;
    }
    notes ??= start();
    return notes.then((ready) => ready.write(event));
  };
}

class JournalWriter {
  readonly #session: Session;
  readonly #context: SessionContext;
  /** What the agent's own list of messages is, with the entries. */
  readonly #transcript: Transcript;

  constructor(session: Session, context: SessionContext) {
    this.#session = session;
    this.#context = context;
    this.#transcript = new Transcript(context.messages, context.entries);
  }

  async write(event: AgentEvent): Promise<void> {
    if (event.type === "message_end") {
      const { message } = event;
      const { id } = await this.#session.append({ type: "message", message });
      this.#transcript.add(message, id);
    } else if (event.type === "tool_execution_end") {
      if (this.#isRecorded(event)) return;
      const { toolCallId, toolName, isError, outcome, reason } = event;
      // Once: they are fields of the entry.
      const { outcome: _outcome, reason: _reason, ...result } = event.result;
      await this.#session.append({
        type: "result",
        toolCallId,
        toolName,
        result,
        isError,
        outcome,
        ...(reason !== undefined && { reason }),
      });
    } else if (event.type === "compaction") {
      await this.#session.append(await this.#compaction(event));
    }
  }

  /** Whether this is a result that was found in the file and is used now (R19). */
  #isRecorded({ toolCallId, result }: ToolEndEvent): boolean {
    const recorded = this.#context.recordedResult(toolCallId);
    return recorded !== undefined && isDeepStrictEqual(shown(recorded), shown(result));
  }

  async #compaction({ compaction }: CompactionEvent): Promise<EntryBody> {
    const { from, to, message, shortened, facts } = compaction;
    const more = { ...(shortened && { shortened }), ...(facts && { facts }) };
    if (!message) return { type: "compaction", first: 0, until: 0, ...more };
    const { entries } = this.#transcript;
    const earlier = await this.#earlier(entries[from]);
    // Where there is nothing to stand for, it stands behind all there is.
    const first = earlier?.first ?? entries[from] ?? (this.#session.leaf ?? 0) + 1;
    const until = entries[to] ?? null;
    const body = { type: "compaction", first, until, message, ...more } as const;
    const isBetween = (id: number): boolean => id >= first && (until === null || id < until);
    const isSimple = entries.every((id, index) => {
      if (earlier && index === from) return !earlier.entries;
      return isBetween(id) === (index >= from && index < to);
    });
    if (isSimple) return body;
    const kept = new Set(entries.toSpliced(from, to - from));
    const messages = new Set(this.#session.findIds("message"));
    const left = this.#session.findBranch().filter((id) => messages.has(id) && !kept.has(id));
    return { ...body, entries: left };
  }

  /** The compaction that made a message, if one did: what it stands for is taken over. */
  async #earlier(id: number | undefined): Promise<CompactionEntry | undefined> {
    const entry = id === undefined ? undefined : await this.#session.read(id);
    return entry?.type === "compaction" ? entry : undefined;
  }
}

/** The parts of a result that the model and people see. */
function shown({ content, details, isError = false }: AgentToolResult): unknown {
  return { content, details, isError };
}
