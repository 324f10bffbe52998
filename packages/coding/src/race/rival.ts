import type { AgentEvent, Limits } from "@gyre/agent";
import { errorMessage, toRecord, type Usage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import type { Outcome } from "../conversation/types.ts";
import type { Harness } from "../harness/types.ts";
import type { RivalRecord } from "./race-folder.ts";

/** The longest that a command that tests may take. */
const TEST_TIMEOUT_MS = 600_000;

/** What one of the rivals is doing, or how it ended. */
export type RivalState =
  | "starting"
  | "working"
  | "asking"
  | "testing"
  | "done"
  | "limit"
  | "failed"
  | "stopped";

/** What it does right now. */
export type RivalActivity =
  | { type: "call"; tool: string; args: Readonly<Record<string, unknown>> }
  | { type: "thinking" }
  | { type: "answering" };

/** Where one of the rivals works. */
export interface RivalPlace {
  /** The folder, absolute. */
  cwd: string;
  /** Open; closed by the race. */
  session: Session;
  approvals: (request: ApprovalRequest) => Promise<ApprovalAnswer>;
  /** Its share of what the prompt may cost. */
  limits: Limits;
}

/** What all rivals of a race have in common. */
export interface RivalWork {
  prompt: string;
  /** Run in the copy when the agent has ended, through permissions. */
  test: string | undefined;
  limits: Limits;
  open: (place: RivalPlace) => Promise<Harness>;
  /** Asks the person, one question at a time. */
  ask: (request: ApprovalRequest, rival: Rival) => Promise<ApprovalAnswer>;
  /** Milliseconds. */
  now: () => number;
  onChange: () => void;
  signal: AbortSignal;
}

/** One of several agents that work on the same prompt, each in a copy of the folder. */
export class Rival {
  readonly record: RivalRecord;
  readonly #session: Session;
  #harness: Harness | undefined;
  #state: RivalState = "starting";
  #activity: RivalActivity | undefined;
  #error: string | undefined;
  #passes: boolean | undefined;
  #testError: string | undefined;
  #model: string;
  #usage: Usage = {};
  #startedAt = 0;
  #endedAt: number | undefined;
  #askedMs = 0;

  constructor(record: RivalRecord, session: Session) {
    this.record = record;
    this.#session = session;
    this.#model = record.model ?? "";
  }

  get number(): number {
    return this.record.number;
  }

  get state(): RivalState {
    return this.#state;
  }

  get activity(): RivalActivity | undefined {
    return this.#activity;
  }

  /** Why it failed. */
  get error(): string | undefined {
    return this.#error;
  }

  /** Whether the command that tests succeeded; undefined where it did not run. */
  get passes(): boolean | undefined {
    return this.#passes;
  }

  /** Why the command that tests did not run. */
  get testError(): string | undefined {
    return this.#testError;
  }

  /** What the model is called. */
  get model(): string {
    return this.#model;
  }

  /** What it has used so far. */
  get usage(): Usage {
    return this.#harness?.spending.prompt ?? this.#usage;
  }

  /** How long it has worked, without the time that the person took to answer. */
  elapsedMs(now: number): number {
    return this.#startedAt === 0 ? 0 : (this.#endedAt ?? now) - this.#startedAt - this.#askedMs;
  }

  /** Has a rule hold for it that the person gave to another one. */
  async giveRule(rule: string): Promise<void> {
    await this.#harness?.giveRule?.(rule);
  }

  /** Works on the prompt, and tests. Never rejects: `state` and `error` say how it ended. */
  async run(work: RivalWork): Promise<void> {
    this.#startedAt = work.now();
    try {
      await this.#work(work);
    } catch (error) {
      this.#error = errorMessage(error);
      this.#set(work.signal.aborted ? "stopped" : "failed", work);
    } finally {
      this.#usage = this.usage;
      this.#endedAt = work.now();
      await this.#close(work);
    }
  }

  async #work(work: RivalWork): Promise<void> {
    const { limits, open, prompt, signal, test } = work;
    signal.throwIfAborted();
    const approvals = (request: ApprovalRequest): Promise<ApprovalAnswer> =>
      this.#ask(request, work);
    const { cwd } = this.record.copy;
    const harness = await open({ cwd, session: this.#session, approvals, limits });
    this.#harness = harness;
    const abort = (): void => harness.agent.abort();
    signal.addEventListener("abort", abort, { once: true });
    try {
      if (this.record.model !== undefined) await harness.setModel(this.record.model);
      this.#model = harness.model.name;
      signal.throwIfAborted();
      // All files are known before the first command: what it changes can be adopted.
      await harness.fileHistory?.lines();
      await harness.fileHistory?.lookAround();
      harness.agent.subscribe((event) => this.#onEvent(event, work));
      this.#set("working", work);
      const { filesIn } = await import("../conversation/prompt-files.ts");
      const { files } = await filesIn(prompt, cwd);
      const attached = files.length > 0 && { attachments: files };
      const outcome = await harness.prompt({ text: prompt, signal, ...attached });
      await harness.fileHistory?.lines();
      this.#activity = undefined;
      this.#error = describeError(outcome);
      const end = findState(outcome);
      if (test !== undefined && end !== "failed" && !signal.aborted) {
        this.#set("testing", work);
        await this.#test(test, harness, signal);
      }
      this.#set(end, work);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  async #test(command: string, harness: Harness, signal: AbortSignal): Promise<void> {
    try {
      await harness.toolset.add("shell");
      const args = { command, timeoutMs: TEST_TIMEOUT_MS };
      const result = await harness.callTool({ tool: "shell", args, signal });
      this.#passes = toRecord(result.details)["exitCode"] === 0;
    } catch (error) {
      // Not allowed, or stopped: what the agent did counts all the same.
      this.#testError = errorMessage(error);
    }
  }

  async #ask(request: ApprovalRequest, work: RivalWork): Promise<ApprovalAnswer> {
    const askedAt = work.now();
    const before = this.#state;
    this.#set("asking", work);
    try {
      return await work.ask(request, this);
    } finally {
      this.#askedMs += work.now() - askedAt;
      this.#set(before, work);
    }
  }

  async #close(work: RivalWork): Promise<void> {
    try {
      await this.#harness?.close();
      await this.#session.close();
    } catch (error) {
      this.#error ??= errorMessage(error);
    }
    this.#harness = undefined;
    work.onChange();
  }

  #onEvent(event: AgentEvent, { onChange }: RivalWork): void {
    const activity = findActivity(event);
    if (activity === undefined) return;
    this.#activity = activity ?? undefined;
    onChange();
  }

  #set(state: RivalState, { onChange }: RivalWork): void {
    this.#state = state;
    onChange();
  }
}

/** Null: nothing in particular. Undefined: as before. */
function findActivity(event: AgentEvent): RivalActivity | null | undefined {
  switch (event.type) {
    case "tool_execution_start":
      return { type: "call", tool: event.toolName, args: event.args };
    case "tool_execution_end":
    case "turn_start":
      return null;
    case "message_update":
      switch (event.assistantMessageEvent.type) {
        case "thinking_start":
          return { type: "thinking" };
        case "text_start":
          return { type: "answering" };
        default:
          return undefined;
      }
    default:
      return undefined;
  }
}

function findState({ end }: Outcome): RivalState {
  switch (end.stop) {
    case "done":
      return "done";
    case "limit":
      return "limit";
    case "aborted":
      return "stopped";
    default:
      return "failed";
  }
}

function describeError({ end, sessionError }: Outcome): string | undefined {
  return sessionError ?? end.errorMessage ?? end.finalMessage?.errorMessage;
}
