import { type Decision, type PendingCall, present } from "@gyre/agent";
import { errorMessage } from "@gyre/ai";
import { ProtocolError } from "@gyre/protocol";
import type { RemoteAgent } from "@gyre/server/client";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { findPresentation } from "@gyre/tools/catalog";
import type { ReadText } from "@gyre/coding/internal/conversation/view";
import { readQuestion } from "../../text/pending-question.ts";

/** Asks the user about a call; `readText` reads what it would change. */
export type Approve = (request: ApprovalRequest, readText?: ReadText) => Promise<ApprovalAnswer>;

export interface QuestionsOptions {
  remote: () => RemoteAgent;
  approve: Approve;
  warn: (text: string) => void;
}

interface OpenQuestion {
  /** Fires when it needs no answer any more. */
  withdrawal: AbortController;
}

/**
 * The questions about calls of a session that wait for a decision. Any client may answer: what another has answered
 * is withdrawn here. Answers are sent one after the other, each when no run goes on.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #open = new Map<string, OpenQuestion>();
  #deciding: Promise<void> = Promise.resolve();

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** These calls wait, and no others. */
  update(pending: readonly PendingCall[]): void {
    const ids = new Set(pending.map(({ toolCall }) => toolCall.id));
    for (const id of [...this.#open.keys()]) if (!ids.has(id)) this.withdraw(id);
    for (const call of pending) {
      if (!this.#open.has(call.toolCall.id)) void this.#ask(call);
    }
  }

  /** A call is decided on, here or elsewhere. */
  withdraw(id: string): void {
    this.#open.get(id)?.withdrawal.abort();
    this.#open.delete(id);
  }

  withdrawAll(): void {
    for (const id of [...this.#open.keys()]) this.withdraw(id);
  }

  async #ask(call: PendingCall): Promise<void> {
    const { id } = call.toolCall;
    const question: OpenQuestion = { withdrawal: new AbortController() };
    const { signal } = question.withdrawal;
    this.#open.set(id, question);
    const request = { ...readQuestion(call), signal };
    try {
      const texts = await this.#readTexts(request);
      if (signal.aborted) return;
      const answer = await this.#options.approve(request, (path) => texts.get(path));
      if (signal.aborted || isInterruption(answer)) return;
      this.#deciding = this.#deciding.then(() => this.#decide(id, answer, request, signal));
      await this.#deciding;
    } catch (error) {
      this.#options.warn(errorMessage(error));
    }
    // It was not accepted: it waits on, and is asked about again.
    if (!signal.aborted && this.#open.get(id) === question) {
      this.#open.delete(id);
      const { isStreaming, pending } = this.#options.remote().state;
      if (!isStreaming) this.update(pending);
    }
  }

  async #decide(
    id: string,
    answer: ApprovalAnswer,
    { fingerprint }: ApprovalRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { remote, warn } = this.#options;
    for (;;) {
      // The run of another answer may go on.
      await remote().waitForIdle();
      const isWaiting = remote().state.pending.some(({ toolCall }) => toolCall.id === id);
      if (!isWaiting || signal.aborted) return this.withdraw(id);
      if (answer.allow === "always") {
        const rules = [answer.rule, ...(answer.moreRules ?? [])];
        await remote()
          .request("allow", { call: id, rules })
          .catch((error: unknown) =>
            warn(
              `It is allowed this once: the server has not kept the rule. ${errorMessage(error)}`,
            ),
          );
      }
      try {
        await remote().approve({ [id]: toDecision(answer, fingerprint) });
        return;
      } catch (error) {
        // It was refused, and holds for exactly this call: it is sent again if that still waits.
        if (!isPassing(error)) throw error;
      }
    }
  }

  /** The text that a call would change, as the server has it. */
  async #readTexts({ callId, tool, args }: ApprovalRequest): Promise<ReadonlyMap<string, string>> {
    const proposal = present(() => findPresentation(tool)?.proposal?.(args));
    if (!proposal || proposal.type === "patch") return new Map();
    try {
      const { files } = await this.#options.remote().request("call_files", { call: callId });
      return new Map(Array.isArray(files) ? files.map(({ path, text }) => [path, text]) : []);
    } catch {
      // It is not served: the change is shown without what was there.
      return new Map();
    }
  }
}

function toDecision(answer: ApprovalAnswer, fingerprint: string): Decision {
  if (answer.allow !== false) {
    const { keep, direct } = answer.allow === true ? answer : {};
    return {
      type: "approve",
      ...(fingerprint !== "" && { fingerprint }),
      ...(keep && { keep }),
      ...(direct && { direct }),
    };
  }
  const { reason } = answer;
  return { type: "deny", ...(reason !== undefined && { reason }) };
}

/** The user has left the question, which ends the run: all that waits is denied with it. */
function isInterruption(answer: ApprovalAnswer): boolean {
  return answer.allow === false && answer.reason === "interrupted";
}

/** Another run goes on, or the session was opened again since. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  return error.code === "session_busy" || error.code === "stream_not_found";
}
