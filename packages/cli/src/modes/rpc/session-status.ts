import type { NoticedJob } from "@gyre/coding/internal/conversation/job-notice";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Todo } from "@gyre/tools";
import { readBranch } from "../tui/app/branch.ts";

/** A background job in the status of a session. */
export interface ShownJob extends Omit<NoticedJob, "durationMs"> {
  /** Of one that has ended. */
  durationMs?: number;
  /** It ended without anybody asking for that. */
  isNews?: true;
}

/** What `gyre` adds to `session_status`: what the rows around the editor of a terminal show. */
export interface ShownStatus {
  model: { provider: string; id: string; name: string };
  /** What the model does where nothing is set. */
  usualThinking: string;
  /** The tokens at which the context is compacted. */
  compactAt: number;
  /** What the session has used. */
  used: object;
  branch?: string;
  jobs: readonly ShownJob[];
  todos: readonly Todo[];
  /** Those that the session may have. */
  modes: readonly string[];
}

/** Reads the status of a session, and reports what changes it. */
export class StatusReader {
  /** Jobs that have ended without anybody asking for that. */
  readonly #news = new Set<string>();
  #unwatch: () => void = () => {};

  read({ model, modes, usualThinking, compactAt, spending, toolset }: Harness): ShownStatus {
    const branch = readBranch(toolset.env.workspace.root);
    return {
      model: { provider: model.provider, id: model.id, name: model.name },
      usualThinking,
      compactAt,
      used: spending.session,
      ...(branch !== undefined && { branch }),
      jobs: toolset.jobs.list().map((job) => this.#describeJob(job)),
      todos: toolset.todos.items,
      modes,
    };
  }

  #describeJob({ id, command, end, durationMs }: NoticedJob): ShownJob {
    if (!end) return { id, command };
    const { timedOut, aborted, exitCode, signal } = end;
    const isNews = this.#news.has(id) && ({ isNews: true } as const);
    return { id, command, durationMs, end: { timedOut, aborted, exitCode, signal }, ...isNews };
  }

  /** Follows the jobs and the steps of this harness, in place of those before. */
  watch({ toolset }: Harness, changed: () => void): void {
    this.#unwatch();
    const endJobs = toolset.jobs.onChange(({ job, isNews }) => {
      if (isNews) this.#news.add(job.id);
      changed();
    });
    const endTodos = toolset.todos.onChange(changed);
    this.#unwatch = () => {
      endJobs();
      endTodos();
    };
  }

  stop(): void {
    this.#unwatch();
  }
}
