import type { AgentMessage, AgentToolResult } from "@gyre/agent";
import type { JobChange } from "@gyre/tools";
import { noticeOfJob } from "../conversation/job-notice.ts";
import type { NoticeMessage } from "../conversation/notice.ts";
import type { FactSources } from "../guidance/opening-facts.ts";

/** What the model gets to know beside prompts and results: jobs that ended, other guidance, facts of the start. */
export class PromptNotices {
  /** What precedes the next prompt. */
  #pending: string | undefined;
  /** What has happened since the last run, for the next prompt. */
  readonly #notices: NoticeMessage[] = [];
  /** Whether the next prompt comes with what holds now. */
  #isWithFacts: boolean;
  #isClosing = false;

  constructor(pending: string | undefined, isWithFacts: boolean) {
    this.#pending = pending;
    this.#isWithFacts = isWithFacts;
  }

  /** A job that ends from now on is no news. */
  close(): void {
    this.#isClosing = true;
  }

  /** A prompt, with what precedes it. */
  addTo(text: string): string {
    const notice = this.#pending;
    this.#pending = undefined;
    return notice === undefined ? text : `${notice}\n\n${text}`;
  }

  /** Something for the next prompt or result. */
  add(notice: NoticeMessage): void {
    this.#notices.push(notice);
  }

  /** What has happened, which is then known. */
  take(): NoticeMessage[] {
    return this.#notices.splice(0);
  }

  /** With the first prompt since the harness was opened. */
  async findFacts(
    sources: () => FactSources,
    messages: readonly AgentMessage[],
  ): Promise<NoticeMessage | undefined> {
    if (!this.#isWithFacts) return undefined;
    this.#isWithFacts = false;
    const { findFacts } = await import("../guidance/opening-facts.ts");
    return findFacts(sources(), messages);
  }

  /** The model gets to know that a job has ended: with the next result or prompt. */
  onJob({ job, isNews }: JobChange): void {
    if (isNews && job.end && !this.#isClosing) this.#notices.push(noticeOfJob(job));
  }

  /** A result, with what has happened meanwhile. */
  addToResult(result: AgentToolResult): AgentToolResult {
    const notices = this.#notices.splice(0);
    if (notices.length === 0) return result;
    const texts = notices.map(({ text }) => ({ type: "text" as const, text: `[${text}]` }));
    return { ...result, content: [...result.content, ...texts] };
  }
}
