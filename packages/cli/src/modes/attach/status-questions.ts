import { errorMessage } from "@gyre/ai";

/** What asks the user, and sends the answer. Undefined: the question was left. */
export interface StatusAsker<Question, Answer> {
  ask: (question: Question, signal: AbortSignal) => Promise<Answer | undefined>;
  send: (id: string, answer: Answer) => Promise<unknown>;
  warn: (text: string) => void;
}

/**
 * Questions that a session has in its status: each is asked once, and withdrawn when another client has answered it. One
 * whose answer is refused is asked again.
 */
export class StatusQuestions<Question extends { id: string }, Answer> {
  readonly #asker: StatusAsker<Question, Answer>;
  readonly #open = new Map<string, AbortController>();

  constructor(asker: StatusAsker<Question, Answer>) {
    this.#asker = asker;
  }

  /** These wait, and no others. */
  update(questions: readonly Question[]): void {
    const ids = new Set(questions.map(({ id }) => id));
    for (const id of [...this.#open.keys()]) if (!ids.has(id)) this.#withdraw(id);
    for (const question of questions) {
      if (!this.#open.has(question.id)) void this.#ask(question);
    }
  }

  #withdraw(id: string): void {
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  async #ask(question: Question): Promise<void> {
    const { ask, send, warn } = this.#asker;
    const withdrawal = new AbortController();
    const { signal } = withdrawal;
    this.#open.set(question.id, withdrawal);
    while (!signal.aborted) {
      try {
        const answer = await ask(question, signal);
        if (signal.aborted || answer === undefined) return;
        await send(question.id, answer);
        return;
      } catch (error) {
        // Another client was faster, or it does not fit.
        if (!signal.aborted) warn(errorMessage(error));
      }
    }
  }
}
