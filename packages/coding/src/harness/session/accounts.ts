import { addUsage, type Usage } from "@gyre/ai";
import type { Payment, PaymentLog, Purpose, Spending } from "./spending.ts";

export interface AccountsOptions {
  /** All that was paid for the session. */
  spending: Spending;
  payments: PaymentLog;
  /** Counts usage in the run that goes on. False: none does. */
  countUsage: (usage: Usage) => boolean;
}

/** Counts what is paid for models: for the session, for the run that goes on, and since the last prompt. */
export class Accounts {
  readonly #options: AccountsOptions;
  /** What was used since the last prompt ended: all of it by purpose, and what no run counts. */
  #recent = new Map<Purpose, Usage>();
  #outsideRuns: Usage = {};

  constructor(options: AccountsOptions) {
    this.#options = options;
  }

  /** Counts what was asked of a model beside the answers, in the run that goes on if one does. */
  pay(payment: Payment): void {
    const { usage } = payment;
    if (!this.#options.countUsage(usage)) this.#outsideRuns = addUsage(this.#outsideRuns, usage);
    this.record(payment);
  }

  record(payment: Payment): void {
    this.#options.spending.add(payment);
    this.addRecent(payment.purpose, payment.usage);
    this.#options.payments.add(payment);
  }

  addRecent(purpose: Purpose, usage: Usage): void {
    this.#recent.set(purpose, addUsage(this.#recent.get(purpose) ?? {}, usage));
  }

  takeOutsideRuns(): Usage {
    const usage = this.#outsideRuns;
    this.#outsideRuns = {};
    return usage;
  }

  takeSpending(): Partial<Record<Purpose, Usage>> {
    const recent = Object.fromEntries(this.#recent);
    this.#recent = new Map();
    return recent;
  }
}
