import type { AgentEvent } from "@gyre/agent";
import { WireEventWriter } from "../../events/wire-event.ts";
import { findThrownFailure, type OnError } from "../common/failures.ts";
import { RequestError, toErrorResponse } from "../common/http.ts";
import { formatEvent, type SseOptions, toSseResponse } from "../common/sse.ts";
import { type RunLog, toPageEvent } from "./run-log.ts";

export interface RunResponseOptions extends SseOptions {
  /** Keeps the events: the response can be resumed, and the run goes on when its client leaves. */
  log?: RunLog;
  /** The run is aborted when its client leaves, unless there is a log. */
  agent?: { abort(): void };
  /** Gets the error itself, of which the page reads the kind alone: why a run failed, or did not start. */
  onError?: OnError;
  /** Its `Last-Event-ID` says where to go on. */
  request?: Pick<Request, "headers">;
}

/**
 * The events of a run as server-sent events, in the form of the protocol: `WireEventReader` makes agent events of
 * them. With a log they have numbers, and `resumeResponse` goes on after any of them. Without, a request that wants
 * to go on is refused with 409: the run was aborted when its connection broke.
 */
export function toResponse(
  run: AsyncIterable<AgentEvent>,
  { log, agent, request, onError, ...sse }: RunResponseOptions = {},
): Response {
  if (log) {
    log.record(run, agent, onError);
    return toSseResponse(log.read(readLastId(request) ?? 0), sse, () => {});
  }
  if (readLastId(request) !== undefined) {
    agent?.abort();
    const text = "This stream cannot be resumed: the server keeps no log of it. Ask again.";
    return toErrorResponse(new RequestError(409, "not_resumable", text));
  }
  return toSseResponse(writeEvents(run, onError), sse, () => agent?.abort());
}

/** What a log has after `Last-Event-ID` of the request, and what comes; all of it without one. */
export function resumeResponse(
  log: RunLog,
  { request, ...sse }: Pick<RunResponseOptions, "request"> & SseOptions = {},
): Response {
  return toSseResponse(log.read(readLastId(request) ?? 0), sse, () => {});
}

async function* writeEvents(
  run: AsyncIterable<AgentEvent>,
  onError: OnError | undefined,
): AsyncGenerator<string, void> {
  const writer = new WireEventWriter();
  try {
    for await (const event of run) {
      const { type, payload } = writer.write(toPageEvent(event, onError));
      yield formatEvent(payload, undefined, type);
    }
  } catch (error) {
    yield formatEvent(findThrownFailure(error, onError), undefined, "error");
  }
}

/** An id that is no number is beyond every log: its reader gets a snapshot. */
function readLastId(request: Pick<Request, "headers"> | undefined): number | undefined {
  const id = request?.headers.get("last-event-id") ?? undefined;
  if (id === undefined || id === "") return undefined;
  return /^\d{1,15}$/.test(id) ? Number(id) : Infinity;
}
