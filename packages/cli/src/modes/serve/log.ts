import { type Clock, redact, systemClock } from "@gyre/ai";
import type { WorkerLogLine } from "@gyre/durable";
import { ProtocolError } from "@gyre/protocol";
import type { Sink } from "../../core/io.ts";

/** A path that a client made up may be as long as a header. */
const MAX_PATH_CHARS = 200;

/** Codes of a session that could not be saved, whose words name its file and the reason. */
const SAVING: ReadonlySet<string | undefined> = new Set(["write_failed", "sink"]);

/** What happens to a server. */
export type ServeEvent =
  | {
      event: "listen";
      transport: string;
      url?: string;
    }
  | { event: "connect"; connection: number; transport: string }
  | { event: "disconnect"; connection: number; reason: string; durationMs: number }
  | { event: "refused"; reason: string }
  | { event: "request_error"; type: string; code: string }
  | { event: "http_error"; method: string; path: string; status: number; durationMs: number }
  | { event: "drain"; sessions: number; streams: number; drainMs: number }
  | { event: "abort"; sessions: number; streams: number }
  | { event: "exit"; code: number }
  | WorkerLogLine;

export interface ServeLogOptions {
  /** Errors alone. */
  isQuiet?: boolean;
  clock?: Pick<Clock, "now">;
}

/**
 * The log of a server: one JSON object a line, with `time`, `level` and `event`. Nothing of
 * what clients and models say to each other is in it, no key and no token.
 */
export class ServeLog {
  readonly #sink: Sink;
  readonly #isQuiet: boolean;
  readonly #clock: Pick<Clock, "now">;

  constructor(sink: Sink, { isQuiet = false, clock = systemClock }: ServeLogOptions = {}) {
    this.#sink = sink;
    this.#isQuiet = isQuiet;
    this.#clock = clock;
  }

  info({ event, ...fields }: ServeEvent): void {
    if (this.#isQuiet) return;
    const path = "path" in fields && { path: fields.path.slice(0, MAX_PATH_CHARS) };
    this.#write("info", event, { ...fields, ...path });
  }

  /** Something that the operator should know, in words of ours. */
  warning(message: string): void {
    if (!this.#isQuiet) this.#write("warning", "warning", { message: redact(message) });
  }

  /**
   * Something went wrong here. The words of an error may repeat what was said to it: only
   * those of the system itself, and why a session could not be saved, are written.
   */
  error(error: unknown, where: string): void {
    const isSystem = error instanceof Error && ("syscall" in error || SAVING.has(errorCode(error)));
    this.#write("error", "error", {
      where,
      error: error instanceof Error ? error.name : typeof error,
      code: errorCode(error),
      message: isSystem ? redact(error.message) : undefined,
    });
  }

  #write(level: string, event: string, fields: object): void {
    const time = new Date(this.#clock.now()).toISOString();
    this.#sink.write(`${JSON.stringify({ time, level, event, ...fields })}\n`);
  }
}

/** For programs: what a request was answered with. */
export function errorCode(error: unknown): string | undefined {
  if (error instanceof ProtocolError) return error.code;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
