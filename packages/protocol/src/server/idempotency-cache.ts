import type { Envelope, Payload } from "../frames/envelope.ts";
import { MAX_KEPT_ANSWER_CHARS, MAX_KEPT_ANSWERS } from "../frames/limits.ts";
import { invalidRequest } from "../frames/protocol-error.ts";

/** How a request was answered. */
export interface Answer {
  readonly type: "ack" | "nack";
  readonly payload: Payload;
}

interface Kept {
  readonly print: string;
  answer: Answer | undefined;
  /** The length of the answer as JSON, once there is one. */
  chars: number;
  readonly waiting: ((answer: Answer) => void)[];
}

/** Keeps the answers to requests by their ids: a repeated request gets its first answer. */
export class IdempotencyCache {
  readonly #kept = new Map<string, Kept>();
  readonly #max: number;
  readonly #maxChars: number;
  #chars = 0;

  /** Above `max` answers, or `maxChars` characters of them, the oldest are forgotten. */
  constructor(max: number = MAX_KEPT_ANSWERS, maxChars: number = MAX_KEPT_ANSWER_CHARS) {
    this.#max = max;
    this.#maxChars = maxChars;
  }

  /**
   * Whether a request is repeated; then `send` gets its answer, now or when there is one. Throws
   * where another request had its id.
   */
  recall(frame: Envelope, send: (answer: Answer) => void): boolean {
    const kept = this.#kept.get(frame.id);
    if (!kept) return false;
    if (kept.print !== computeFingerprint(frame)) {
      throw invalidRequest("Another message had this id.");
    }
    if (kept.answer) send(kept.answer);
    else kept.waiting.push(send);
    return true;
  }

  /** Records a request that the server works on. The returned function takes its answer, once. */
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
      for (const send of kept.waiting.splice(0)) send(answer);
    };
  }

  /** Forgets old answers above the limit. The newest is kept, however long it is. */
  #weigh(kept: Kept, { payload }: Answer): void {
    kept.chars = toJson(payload).length;
    this.#chars += kept.chars;
    for (const [id, oldest] of this.#kept) {
      if (this.#chars <= this.#maxChars) break;
      // A request without an answer is not forgotten: it would be done twice.
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

/** Distinguishes requests that share an id by mistake; not a defense against intent. */
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
    // Nested too deeply for JSON: such requests count as the same.
    return "";
  }
}
