import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessage, UserMessage } from "@gyre/ai";
import { userText } from "@gyre/coding/internal/conversation/prompt-text";
import { dollars } from "../../../text/dollars.ts";
import {
  countdownText,
  describeWaiting,
  failedAttemptText,
  fallbackText,
} from "../../print/progress.ts";
import { type Args, counted, duration, elapsed, grouped } from "../../../text/tool-text.ts";
import type { Block } from "../ui/block.ts";
import { BlockList } from "./block-list.ts";
import {
  createEndBlock,
  createErrorBlock,
  createNoticeBlock,
  createUserBlock,
  createWarningBlock,
  RetryBlock,
  ThinkingBlock,
} from "./message-blocks.ts";
import { MessageParts, type TranscriptOptions } from "./message-parts.ts";
import type { UserCommandMessage } from "@gyre/coding/internal/conversation/user-command";
import type { Row } from "../terminal/row.ts";
import { CallGroup, isCounted } from "./call-group.ts";
import { CommandPrompt } from "./command-prompt.ts";
import { RUNNING_LINES, ToolBlock } from "./tool-block.ts";

type Limit = Extract<AgentEvent, { type: "limit" }>;
type Retry = Extract<AgentEvent, { type: "retry" }>;

/**
 * Shows the events of a session, in order, as blocks one below the other. A block stays in its place while it changes.
 * `release` frees the rows that have left the screen.
 */
export class Transcript {
  readonly #options: TranscriptOptions;
  readonly #list = new BlockList();
  readonly #parts: MessageParts;
  /** Calls that have no result yet, by id. */
  readonly #calls = new Map<string, ToolBlock>();
  readonly #running = new Set<ToolBlock>();
  /** What was typed for prompts that commands made, by their text. */
  readonly #typed = new Map<string, string>();
  /** The running command of the user. */
  #userCommand: ToolBlock | undefined;
  /** Since when calls wait for an answer, and how long others have waited. */
  readonly #asking = new Map<string, number>();
  readonly #waited = new Map<string, number>();
  /** How long the user was asked for this prompt, by any number of calls at once. */
  #answerMs = 0;
  #askedAt = 0;
  /** Files that calls have changed for this prompt. */
  readonly #changed = new Set<string>();
  #activity = "";
  /** What is tried again, and when; until the next event. */
  #retrying: { event: Retry; at: number } | undefined;
  /** What the model is silent about, and since when; until the next event. */
  #waiting: { text: string; since: number } | undefined;
  /** Whether the newest answer broke off. */
  #isBroken = false;
  #isExpanded = false;

  constructor(options: TranscriptOptions) {
    this.#options = options;
    this.#parts = new MessageParts({
      ...options,
      add: (block) => this.#addPart(block),
      isExpanded: () => this.#isExpanded,
    });
  }

  /** Shows paths relative to this folder from now on. */
  workIn(cwd: string): void {
    this.#parts.cwd = cwd;
  }

  /** Whether the model is writing. */
  get isStreaming(): boolean {
    return this.#parts.isOpen;
  }

  /** Why a request is sent again, and in how long: "overloaded, trying again in 12 s (3 of 10)". */
  get countdown(): string | undefined {
    if (!this.#retrying) return undefined;
    const { event, at } = this.#retrying;
    return countdownText(event, at - this.#options.now());
  }

  /** The current activity: "thinking", "writing", "running npm test". */
  get activity(): string {
    if (this.#asking.size > 0) return "waiting for your answer";
    if (this.#waiting) {
      const { text, since } = this.#waiting;
      return `${text}, ${elapsed(this.#options.now() - since)}`;
    }
    const [first] = this.#running;
    if (!first) return this.#activity;
    return this.#running.size === 1
      ? `running ${first.activity}`
      : `running ${this.#running.size} calls`;
  }

  /** Expands or collapses results and thoughts that are still on the screen. */
  expand(): void {
    this.#isExpanded = !this.#isExpanded;
    for (const block of this.#list.blocks) {
      if (isExpandable(block)) block.expand(this.#isExpanded);
    }
    this.#options.changed();
  }

  add(block: Block): void {
    this.#list.add(block);
    this.#options.changed();
  }

  /** A message with this text was made by a command: that is what is shown of it. */
  expectPrompt(text: string, typed: string): void {
    this.#typed.set(text, typed);
  }

  #createPrompt(content: UserMessage["content"]): Block {
    const { expandKey, theme } = this.#options;
    const typed = this.#typed.get(userText(content));
    if (typed === undefined) return createUserBlock(theme, content);
    return new CommandPrompt(typed, content, { theme, expandKey, isExpanded: this.#isExpanded });
  }

  /** Reads and searches that follow each other are a group. */
  #addPart(block: Block): void {
    const isLook = block instanceof ToolBlock && isCounted(block.verb);
    const last = isLook ? this.#list.blocks.at(-1) : undefined;
    if (!isLook) this.#list.add(block);
    else if (!(last instanceof CallGroup && last.join(block))) {
      const { expandKey, theme } = this.#options;
      this.#list.add(new CallGroup(block, { theme, expandKey, isExpanded: this.#isExpanded }));
    }
  }

  /** Adds a dim note. */
  note(text: string): void {
    this.add(createNoticeBlock(text, this.#options.theme.dim));
  }

  /** A call waits for the user until the returned function is called. That time does not count as its own. */
  asks(toolCallId: string): () => void {
    const { changed, now } = this.#options;
    if (this.#asking.size === 0) this.#askedAt = now();
    this.#asking.set(toolCallId, now());
    changed();
    return () => {
      const waited = now() - (this.#asking.get(toolCallId) ?? now());
      if (this.#asking.delete(toolCallId) && this.#asking.size === 0) {
        this.#answerMs += now() - this.#askedAt;
      }
      this.#waited.set(toolCallId, (this.#waited.get(toolCallId) ?? 0) + waited);
      changed();
    };
  }

  /** How long the user has taken for answers to this prompt. */
  get answerMs(): number {
    const asked = this.#asking.size > 0 ? this.#options.now() - this.#askedAt : 0;
    return this.#answerMs + asked;
  }

  /** A prompt is done: its time without that of the user, the files that were edited, and the cost. */
  showEnd({ durationMs, cost }: { durationMs: number; cost?: number | undefined }): void {
    const facts = [
      elapsed(durationMs - this.answerMs),
      ...(this.#changed.size > 0 ? [`${counted(this.#changed.size, "file")} edited`] : []),
      ...(cost === undefined ? [] : [dollars(cost)]),
    ];
    this.add(createEndBlock(this.#options.theme, facts));
  }

  /** What is counted for a prompt begins again. */
  resetCounts(): void {
    this.#answerMs = 0;
    this.#askedAt = this.#options.now();
    this.#changed.clear();
  }

  /** Rows that can still change or are on the screen; `base` counts the rows before them. */
  rows(columns: number): { base: number; rows: readonly Row[] } {
    return this.#list.rows(columns);
  }

  /** Rows before `top` have left the screen and stay as they were shown last. */
  release(top: number): void {
    this.#list.release(top);
  }

  /** Lays out all kept blocks again for another width; `base` begins at 0. */
  relayout(): void {
    this.#list.relayout();
  }

  handle(event: AgentEvent): void {
    this.#retrying = undefined;
    this.#waiting = undefined;
    this.#handleEvent(event);
    this.#options.changed();
  }

  #handleEvent(event: AgentEvent): void {
    const { now } = this.#options;
    switch (event.type) {
      case "agent_start":
        this.#activity = "thinking";
        this.#isBroken = false;
        break;
      case "turn_start":
        this.#activity = "thinking";
        if (this.#isBroken) this.note("The answer broke off: asking again.");
        this.#isBroken = false;
        break;
      case "message_start":
        if (event.message.role === "user") this.add(this.#createPrompt(event.message.content));
        // The end of a job is shown when it happens.
        if (event.message.role === "notice" && event.message.mode !== undefined) {
          this.note(event.message.summary);
        }
        // Open parts of another message stay as they are.
        if (event.message.role === "assistant") this.#parts.close();
        break;
      case "message_update":
        this.#activity = this.#parts.take(event.assistantMessageEvent) ?? this.#activity;
        break;
      case "message_end":
        if (event.message.role === "assistant") this.#finish(event.message);
        break;
      case "tool_execution_start": {
        const call = this.#findCall(event.toolCallId, event.toolName, event.args);
        call.start(event.toolName, event.args);
        this.#running.add(call);
        this.#share();
        break;
      }
      case "tool_execution_update":
        this.#calls.get(event.toolCallId)?.update(event.partialResult);
        break;
      case "tool_execution_end": {
        const call = this.#findCall(event.toolCallId, event.toolName, {});
        const waited = this.#waited.get(event.toolCallId) ?? 0;
        this.#waited.delete(event.toolCallId);
        call.end(event, Math.max(0, event.durationMs - waited));
        for (const path of call.changedFiles) this.#changed.add(path);
        this.#calls.delete(event.toolCallId);
        this.#running.delete(call);
        this.#share();
        this.#activity = "thinking";
        break;
      }
      case "waiting":
        this.#waiting = { text: describeWaiting(event), since: now() - event.silentMs };
        break;
      case "retry":
        this.#retry(event);
        this.#retrying = { event, at: now() + event.delayMs };
        break;
      case "fallback":
        this.note(fallbackText(event));
        break;
      case "compaction":
        this.note(
          `context made smaller: ${grouped(event.before)} → ${grouped(event.after)} tokens`,
        );
        break;
      case "limit":
        this.#warn(limitText(event));
        break;
      case "agent_end":
        this.endRun();
        break;
      case "turn_end":
        break;
      default:
        event satisfies never;
    }
  }

  /** Shows a command of the user. */
  startUserCommand({ command, aside }: Pick<UserCommandMessage, "command" | "aside">): void {
    const call = this.#parts.newCall("shell", { command }, { aside });
    this.#userCommand = call;
    call.start("shell", { command });
    this.#running.add(call);
    this.#share();
    this.#options.changed();
  }

  /** Shows the end of the output so far. */
  updateUserCommand(output: string): void {
    this.#userCommand?.update({ content: [{ type: "text", text: output }] });
    this.#options.changed();
  }

  endUserCommand({ output, exitCode, durationMs }: UserCommandMessage): void {
    const call = this.#userCommand;
    if (!call) return;
    this.#userCommand = undefined;
    const details = { stdout: output, stderr: "", exitCode };
    const content = [{ type: "text" as const, text: output }];
    const outcome = exitCode === 0 ? "ok" : "error";
    call.end({ result: { content, details }, outcome }, durationMs);
    this.#running.delete(call);
    this.#share();
    this.#options.changed();
  }

  /** One row for all attempts, as long as nothing else is added. */
  #retry(event: Retry): void {
    const text = failedAttemptText(event);
    const last = this.#list.blocks.at(-1);
    if (last instanceof RetryBlock) last.replace(text);
    else this.#list.add(new RetryBlock(text, this.#options.theme.dim));
  }

  #warn(text: string): void {
    this.#list.add(createWarningBlock(this.#options.theme, text));
  }

  /** The block of a call; a call that was not streamed gets one now. */
  #findCall(id: string, name: string, args: Args): ToolBlock {
    const known = this.#calls.get(id);
    if (known) return known;
    const call = this.#parts.newCall(name, args);
    this.#calls.set(id, call);
    return call;
  }

  /** Running calls share the rows of one. */
  #share(): void {
    const lines = Math.floor(RUNNING_LINES / Math.max(1, this.#running.size));
    for (const call of this.#running) call.share(lines);
  }

  /** Ends a message of the model. */
  #finish(message: AssistantMessage): void {
    const { theme } = this.#options;
    for (const [id, call] of this.#parts.finish(message)) this.#calls.set(id, call);
    this.#isBroken = message.stopReason === "error";
    if (message.stopReason === "error") {
      const text = message.errorMessage ?? "The model failed.";
      this.#list.add(createErrorBlock(theme, text, message.failure?.kind));
    } else if (message.stopReason === "aborted") this.note("interrupted");
    else if (message.stopReason === "length") {
      this.#warn("The answer is cut short: the model may write no more at once.");
    }
  }

  /** Ends everything that is open, but for these calls. */
  endRun(except: ReadonlySet<string> = new Set()): void {
    this.#parts.close();
    for (const [id, call] of [...this.#calls]) {
      if (except.has(id)) continue;
      call.leave();
      this.#calls.delete(id);
      this.#running.delete(call);
    }
    this.#activity = "";
  }
}

const EXPANDABLE = [ToolBlock, ThinkingBlock, CallGroup, CommandPrompt] as const;

function isExpandable(block: Block): block is InstanceType<(typeof EXPANDABLE)[number]> {
  return EXPANDABLE.some((kind) => block instanceof kind);
}

function limitText({ limit, value }: Limit): string {
  const texts: Partial<Record<Limit["limit"], string>> = {
    maxTurns: `The limit of ${counted(value, "turn")} is reached.`,
    maxCostUsd: `The limit of the cost is reached: ${dollars(value)}.`,
    maxDurationMs: `The limit of ${duration(value)} is reached.`,
    maxTotalTokens: `The limit of the tokens is reached: ${grouped(value)}.`,
    maxIdenticalCalls: `Stopped: the same call came ${value} times in a row with the same result.`,
  };
  return texts[limit] ?? `Stopped by a limit: ${limit} (${grouped(value)}).`;
}
