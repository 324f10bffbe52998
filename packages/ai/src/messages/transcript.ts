import type { Message, ToolCall } from "./messages.ts";

/** What is wrong with a transcript, for programs. */
export type TranscriptFault =
  | "call-without-result"
  | "result-without-call"
  | "doubled-id"
  | "result-out-of-place"
  | "empty-content";

/** Something that every real service would refuse. */
export interface TranscriptProblem {
  /** Index of the message that is at fault. */
  index: number;
  fault: TranscriptFault;
  /** A sentence for people: which value, what is wrong with it. */
  reason: string;
}

/** Whether there is anything in a message that a service would take: more than empty text. */
export function hasContent(message: Message): boolean {
  if (typeof message.content === "string") return message.content !== "";
  // What comes from a file or a program without types may lack it.
  if (!Array.isArray(message.content)) return false;
  for (const block of message.content) {
    if (block.type !== "text" || block.text !== "") return true;
  }
  return false;
}

/**
 * Checks what is about to be sent against what every real service refuses, and
 * answers with all problems in order; an empty list means it is valid.
 */
export function validateTranscript(messages: readonly Message[]): TranscriptProblem[] {
  const validator = new TranscriptValidator();
  for (const message of messages) validator.append(message);
  return validator.finish();
}

/** Call ids, and the index of the message that used each first. */
type Ids = ReadonlyMap<string, number>;

const NO_IDS: Ids = new Map();

/**
 * The same check, one message at a time, so that a growing transcript is not read
 * again. `append` takes the next message; `finish` lists what is wrong so far, and
 * may be followed by more messages.
 */
export class TranscriptValidator {
  #length = 0;
  #problems: TranscriptProblem[] = [];
  /** Calls of the last assistant message that have no result yet. */
  #awaited: ToolCall[] = [];
  #awaitedAt = -1;
  #ids = new Map<string, number>();
  /** What another one had seen before this one went its own way. */
  #known: Ids = NO_IDS;
  #knownBefore = 0;

  /** Whether a call of this id was seen. */
  hasId(id: string): boolean {
    return this.#ids.has(id) || (this.#known.get(id) ?? this.#knownBefore) < this.#knownBefore;
  }

  /** Whether a result for a call of this id may come next. */
  awaits(id: string): boolean {
    return this.#awaited.some((call) => call.id === id);
  }

  /**
   * One that goes on from here on its own, knowing the ids that were used. Only
   * where nothing is wrong so far. Costs nothing, but for a fork of a fork.
   */
  fork(): TranscriptValidator {
    const fork = new TranscriptValidator();
    const known = [...this.#known].filter(([, at]) => at < this.#knownBefore);
    fork.#known = known.length === 0 ? this.#ids : new Map([...known, ...this.#ids]);
    fork.#knownBefore = this.#length;
    fork.#length = this.#length;
    return fork;
  }

  append(message: Message): void {
    const index = this.#length++;
    if (message.role === "toolResult") {
      this.#result(index, message.toolCallId);
      return;
    }
    this.#closeCalls();
    if (!hasContent(message)) {
      this.#report(index, "empty-content", `The ${message.role} message has no content.`);
    }
    if (message.role !== "assistant") return;
    for (const block of message.content) {
      if (block.type !== "toolCall") continue;
      if (this.hasId(block.id)) {
        this.#report(index, "doubled-id", `The call id "${block.id}" was used before.`);
      }
      if (!this.#ids.has(block.id)) this.#ids.set(block.id, index);
      if (!this.#awaited.some(({ id }) => id === block.id)) this.#awaited.push(block);
      this.#awaitedAt = index;
    }
  }

  finish(): TranscriptProblem[] {
    if (this.#awaited.length === 0 && this.#problems.length === 0) return [];
    return [...this.#problems, ...this.#unanswered()].sort((a, b) => a.index - b.index);
  }

  #result(index: number, id: string): void {
    const answered = this.#awaited.findIndex((call) => call.id === id);
    if (answered >= 0) {
      this.#awaited.splice(answered, 1);
      return;
    }
    if (this.hasId(id)) {
      this.#report(
        index,
        "result-out-of-place",
        `The result for call "${id}" does not follow the message that made the call, or is a second one.`,
      );
    } else {
      this.#report(index, "result-without-call", `No call has the id "${id}" of this result.`);
    }
  }

  #closeCalls(): void {
    if (this.#awaited.length === 0) return;
    this.#problems.push(...this.#unanswered());
    this.#awaited = [];
  }

  #unanswered(): TranscriptProblem[] {
    return this.#awaited.map((call) => ({
      index: this.#awaitedAt,
      fault: "call-without-result",
      reason: `The call "${call.id}" of tool "${call.name}" has no result.`,
    }));
  }

  #report(index: number, fault: TranscriptFault, reason: string): void {
    this.#problems.push({ index, fault, reason });
  }
}
