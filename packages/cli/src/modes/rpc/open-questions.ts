import { randomUUID } from "node:crypto";
import type { Clock } from "@gyre/ai";

export interface QuestionEnds<Answer> {
  /** The answer where no client follows the session. */
  unfollowed: Answer;
  /** The answer where the question is not open any more, or its time is over. */
  canceled: Answer;
  /** How long a client has, in milliseconds. Default: as long as the question is open. */
  withinMs?: number;
}

/** Questions in a session, which any of its clients may answer. */
export class OpenQuestions<Question extends object, Answer> {
  readonly #clock: Pick<Clock, "after">;
  readonly #ends: QuestionEnds<Answer>;
  readonly #open = new Map<string, { question: Question; settle: (answer: Answer) => void }>();
  /** Called when there is another one, or one less. Absent: no client follows the session. */
  onChange: (() => void) | undefined;

  constructor(clock: Pick<Clock, "after">, ends: QuestionEnds<Answer>) {
    this.#clock = clock;
    this.#ends = ends;
  }

  /** Waits for a client. */
  protected async put(question: Question, signal: AbortSignal): Promise<Answer> {
    const { unfollowed, canceled, withinMs } = this.#ends;
    if (!this.onChange) return unfollowed;
    const id = randomUUID();
    const cancel = (): void => this.#open.get(id)?.settle(canceled);
    const stop = withinMs === undefined ? () => {} : this.#clock.after(withinMs, cancel);
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return await new Promise<Answer>((settle) => {
        this.#open.set(id, { question, settle });
        this.onChange?.();
        if (signal.aborted) cancel();
      });
    } finally {
      stop();
      signal.removeEventListener("abort", cancel);
      this.#open.delete(id);
      this.onChange?.();
    }
  }

  list(): (Question & { id: string })[] {
    return [...this.#open].map(([id, { question }]) => ({ ...question, id }));
  }

  /** Throws where there is no such question. `check` throws where the answer does not fit it. */
  protected settle(id: unknown, check: (question: Question) => Answer): void {
    const found = this.#open.get(String(id));
    if (!found) throw new Error(`No question ${JSON.stringify(id)} waits for an answer.`);
    found.settle(check(found.question));
  }
}
