import type { Envelope, Payload } from "../frames/envelope.ts";
import { MAX_KEPT_ANSWER_CHARS, MAX_KEPT_ANSWERS } from "../frames/limits.ts";
import { ProtocolError } from "../frames/protocol-error.ts";

/** How a request was answered. */
export interface Answer {
  readonly type: "ack" | "nack";
  readonly payload: Payload;
}

interface Kept {
  readonly print: string;
  answer: Answer | undefined;
  /** The length of the answer as JSON, once it is there. */
  chars: number;
  readonly waiting: ((answer: Answer) => void)[];
}

/** The answers to messages by their ids: one that is sent again gets the first one. */
export class IdempotencyCache {
  readonly #kept = new Map<string, Kept>();
  readonly #max: number;
  readonly #maxChars: number;
  #chars = 0;

  /** Beyond `max`, or so many characters of answers, the oldest are forgotten. */
  constructor(max: number = MAX_KEPT_ANSWERS, maxChars: number = MAX_KEPT_ANSWER_CHARS) {
    this.#max = max;
    this.#maxChars = maxChars;
  }

  /**
   * Whether a message was here before; then `tell` gets its answer, now or when there is
   * one. Throws where another message had its id.
   */
  recall(frame: Envelope, tell: (answer: Answer) => void): boolean {
    const kept = this.#kept.get(frame.id);
    if (!kept) return false;
    if (kept.print !== computeFingerprint(frame)) {
      throw new ProtocolError("invalid_request", "Another message had this id.");
    }
    if (kept.answer) tell(kept.answer);
    else kept.waiting.push(tell);
    return true;
  }

  /** Notes a message that is being worked on. What this gives takes its answer, once. */
  begin(frame: Envelope): (answer: Answer) => void {
    const kept: Kept = {
      print: computeFingerprint(frame),
      answer: undefined,
      chars: 0,
      waiting: [],
    };
    this.#kept.set(frame.id, kept);
    for (const [id, oldest] of this.#kept) {
      if (this.#kept.size <= this.#max) break;
      this.#forget(id, oldest);
    }
    return (answer) => {
      if (kept.answer) return;
      kept.answer = answer;
      if (this.#kept.get(frame.id) === kept) this.#weigh(kept, answer);
      for (const tell of kept.waiting.splice(0)) tell(answer);
    };
  }

  /** The newest answer is kept, however long it is. */
  #weigh(kept: Kept, { payload }: Answer): void {
    kept.chars = toJson(payload).length;
    this.#chars += kept.chars;
    for (const [id, oldest] of this.#kept) {
      if (this.#chars <= this.#maxChars) break;
      // What is being worked on is not forgotten: it would be done twice.
      if (oldest.answer && oldest !== kept) this.#forget(id, oldest);
    }
  }

  #forget(id: string, { chars }: Kept): void {
    this.#kept.delete(id);
    this.#chars -= chars;
  }
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Tells messages apart that have one id by mistake; no defence against intent. */
function computeFingerprint({ type, payload }: Envelope): string {
  const text = toJson(payload);
  let hash = FNV_OFFSET;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), FNV_PRIME);
  }
  return `${type} ${text.length} ${hash}`;
}

function toJson(payload: Payload): string {
  try {
    return JSON.stringify(payload);
  } catch {
    // Nested too deep to be told apart.
    return "";
  }
}
