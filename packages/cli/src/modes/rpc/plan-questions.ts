import type { Clock } from "@gyre/ai";
import type { PlanAnswer, ReviewPlan } from "@gyre/coding/internal/conversation/plan";
import { OpenQuestions } from "./open-questions.ts";

const UNFOLLOWED = "No person can be asked now. Write the plan as your answer.";

/** Plans of a session that wait for one of its clients. */
export class PlanQuestions extends OpenQuestions<{ plan: string }, PlanAnswer | undefined> {
  /** A client has said that it shows plans: without one, a plan is an answer. */
  isShown = false;

  constructor(clock: Clock) {
    super(clock, { unfollowed: { approve: false, reason: UNFOLLOWED }, canceled: undefined });
  }

  readonly review: ReviewPlan = (plan, signal) => this.put({ plan }, signal);

  /** Whether there is a client to ask. */
  readonly canReview = (): boolean => this.isShown && this.onChange !== undefined;

  /** Throws where there is no such plan. */
  answer(id: unknown, given: PlanAnswer): void {
    this.settle(id, () => given);
  }
}
