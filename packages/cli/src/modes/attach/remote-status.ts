import type { QueueName } from "@gyre/agent";
import { isRecord, type Usage } from "@gyre/ai";
import type { Payload } from "@gyre/protocol";
import type { McpQuestion } from "@gyre/mcp";
import type { PermissionMode, Todo } from "@gyre/tools";
import { isMode } from "@gyre/coding/internal/text/choices";
import type { NoticedJob } from "@gyre/coding/internal/conversation/job-notice";
import type { ConversedJobs } from "@gyre/coding/internal/conversation/types";

/** A queued message, as `session_status` has it. */
export interface WaitingMessage {
  queue: QueueName;
  id: string;
  role: string;
  text: string;
}

type ShownJob = NoticedJob & { isNews?: boolean };

/** What `session_status` has. A server of another version may leave parts out. */
export interface RemoteStatus {
  waiting: readonly WaitingMessage[];
  model: { provider: string; id: string; name: string } | undefined;
  usualThinking: string | undefined;
  compactAt: number | undefined;
  used: Usage;
  branch: string | undefined;
  jobs: readonly ShownJob[];
  todos: readonly Todo[];
  /** Those that the session may have; empty: not known. */
  modes: readonly PermissionMode[];
  /** Of MCP servers. */
  questions: readonly (McpQuestion & { id: string })[];
  plans: readonly { id: string; plan: string }[];
}

/** Before the first one. */
export const NO_STATUS: RemoteStatus = readStatus({});

/** Parts that are not as they should be are treated as absent. */
export function readStatus(status: Payload): RemoteStatus {
  const { waiting, model, usualThinking, compactAt, used, branch, jobs, todos } = status;
  const { modes, questions, plans } = status;
  return {
    waiting: listRecords(waiting).map(({ queue, id, role, text }) => ({
      queue: queue === "followUp" ? "followUp" : "steering",
      ...{ id: String(id), role: String(role), text: String(text) },
    })),
    model: isRecord(model)
      ? {
          provider: String(model["provider"]),
          id: String(model["id"]),
          name: String(model["name"]),
        }
      : undefined,
    usualThinking: typeof usualThinking === "string" ? usualThinking : undefined,
    compactAt: typeof compactAt === "number" ? compactAt : undefined,
    used: isRecord(used) ? used : {},
    branch: typeof branch === "string" ? branch : undefined,
    jobs: listRecords(jobs).map(readJob),
    todos: listRecords(todos).map(({ content, status: is }) => ({
      content: String(content),
      status: is === "done" || is === "in_progress" ? is : "pending",
    })),
    modes: Array.isArray(modes) ? modes.map(String).filter(isMode) : [],
    questions: Array.isArray(questions) ? questions.filter(isQuestion) : [],
    plans: listRecords(plans).map(({ id, plan }) => ({ id: String(id), plan: String(plan) })),
  };
}

/** As a server of `gyre` has made it from what an MCP server asks. */
function isQuestion(value: unknown): value is McpQuestion & { id: string } {
  if (!isRecord(value)) return false;
  const { id, kind, server, message, fields, url } = value;
  const isText = [id, server, message].every((each) => typeof each === "string");
  const isPage = kind === "url" && typeof url === "string" && /^https?:\/\//.test(url);
  return isText && (isPage || (kind === "form" && Array.isArray(fields)));
}

function readJob({ id, command, durationMs, end, isNews }: Record<string, unknown>): ShownJob {
  const job = { id: String(id), command: String(command), durationMs: Number(durationMs ?? 0) };
  if (!isRecord(end)) return job;
  const { exitCode, signal, timedOut, aborted } = end;
  return {
    ...job,
    end: {
      exitCode: typeof exitCode === "number" ? exitCode : null,
      signal: readSignal(signal),
      timedOut: timedOut === true,
      aborted: aborted === true,
    },
    ...(isNews === true && { isNews }),
  };
}

/** The name of a signal is shown, and nothing else is done with it. */
function readSignal(signal: unknown): NodeJS.Signals | null {
  return typeof signal === "string" && /^SIG[A-Z0-9]+$/.test(signal)
    ? (signal as NodeJS.Signals)
    : null;
}

function listRecords(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** How commands that run at the server go on in the background. */
export type JobsMoving = { hasMovable(): boolean; moveAll(): void };

/** The background jobs of a session on a server, as its status reports them. */
export class RemoteJobs implements ConversedJobs {
  readonly #moving: JobsMoving;
  readonly #listeners = new Set<(change: { job: NoticedJob; isNews: boolean }) => void>();
  /** Undefined before the first report, which is no news. */
  #jobs: readonly ShownJob[] | undefined;

  constructor(moving: JobsMoving) {
    this.#moving = moving;
  }

  get hasMovable(): boolean {
    return this.#moving.hasMovable();
  }

  list(): readonly NoticedJob[] {
    return this.#jobs ?? [];
  }

  onChange(listener: (change: { job: NoticedJob; isNews: boolean }) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  moveAll(): void {
    this.#moving.moveAll();
  }

  update(jobs: readonly ShownJob[]): void {
    const before = this.#jobs && new Map(this.#jobs.map((job) => [job.id, job]));
    this.#jobs = jobs;
    if (!before) return;
    for (const job of jobs) {
      const old = before.get(job.id);
      if (old && (old.end !== undefined) === (job.end !== undefined)) continue;
      const isNews = job.end !== undefined && job.isNews === true;
      for (const listener of [...this.#listeners]) listener({ job, isNews });
    }
  }
}
