import type { AgentMessage, Middleware } from "@gyre/agent";
import { addUsage, errorMessage, computeCost, isRecord, type Model, type Usage } from "@gyre/ai";
import { type EntryBody, type Session, type SessionContext, SessionError } from "@gyre/sessions";
import { findTotal, type SpendingTotal, TOTAL_KIND } from "./spending-total.ts";

/** What models are asked for: answers of the conversation, and what goes on beside it. */
export const PURPOSES = ["answers", "summaries", "sideQuestions", "subAgents"] as const;
export type Purpose = (typeof PURPOSES)[number];

/** What one request has used, or a tool with all requests of its own. */
export interface Payment {
  purpose: Purpose;
  /** service/id; of a tool, its name. */
  model: string;
  usage: Usage;
}

/** What payments that are no answers are kept as in a session; answers are messages in it. */
const KIND = "usage";
const READ_AT_ONCE = 200;
/** After so many entries had to be read, their sums are kept: the next opening begins behind them. */
const MAX_READ_ENTRIES = 500;

/** All that was paid for a session, whatever has become of the messages since. */
export class Spending {
  session: Usage = {};
  /** Since the last message of the user. */
  prompt: Usage = {};
  readonly purposes: Map<Purpose, Usage> = new Map();
  /** In the order in which they were asked first. */
  readonly models: Map<string, Usage> = new Map();
  /** The sums at the time they were read, where that took many entries. */
  total: SpendingTotal | undefined;

  add({ purpose, model, usage }: Payment): void {
    this.session = addUsage(this.session, usage);
    this.prompt = addUsage(this.prompt, usage);
    addTo(this.purposes, purpose, usage);
    addTo(this.models, model, usage);
  }

  restore({ paid, prompt, purposes, models }: SpendingTotal): void {
    this.session = paid;
    this.prompt = prompt;
    for (const purpose of PURPOSES) {
      const usage = purposes[purpose];
      if (usage) this.purposes.set(purpose, usage);
    }
    for (const [model, usage] of Object.entries(models)) this.models.set(model, usage);
  }

  /** Counts a message that is new in the transcript. */
  addMessage(message: AgentMessage): void {
    if (message.role === "user") this.prompt = {};
    if (message.role !== "assistant") return;
    const { provider, model, usage } = message;
    this.add({ purpose: "answers", model: `${provider}/${model}`, usage });
  }
}

function addTo<K>(sums: Map<K, Usage>, key: K, usage: Usage): void {
  sums.set(key, addUsage(sums.get(key) ?? {}, usage));
}

/** What a response has used, with its cost where the service's client left that out. */
export function priceUsage(usage: Usage, { price }: Model): Usage {
  const cost = usage.cost ?? computeCost(usage, price);
  return cost ? { ...usage, cost } : usage;
}

/** What was paid for a session so far, on all of its branches, compacted messages included. */
export async function readSpending(
  session: Session | undefined,
  context: SessionContext | undefined,
): Promise<Spending> {
  const spending = new Spending();
  if (!session) return spending;
  const known = new Map(context?.entries.map((id, index) => [id, context.messages[index]]));
  const counted = await findTotal(session);
  if (counted) spending.restore(counted);
  const ids = session.findIds("message", "custom").filter((id) => id > (counted?.until ?? 0));
  for (let from = 0; from < ids.length; from += READ_AT_ONCE) {
    const read = ids
      .slice(from, from + READ_AT_ONCE)
      .map((id) => readEntry(session, id, known.get(id)));
    for (const entry of await Promise.all(read)) {
      if (entry?.type === "message") spending.addMessage(entry.message);
      else if (entry?.type === "custom" && entry.kind === KIND) {
        const payment = parsePayment(entry.data);
        if (payment) spending.add(payment);
      }
    }
  }
  const until = ids.at(-1);
  if (until !== undefined && ids.length > MAX_READ_ENTRIES) {
    spending.total = {
      session: session.header.id,
      until,
      paid: spending.session,
      prompt: spending.prompt,
      purposes: Object.fromEntries(spending.purposes),
      models: Object.fromEntries(spending.models),
    };
  }
  return spending;
}

async function readEntry(
  session: Session,
  id: number,
  message: AgentMessage | undefined,
): Promise<EntryBody | undefined> {
  if (message) return { type: "message", message };
  try {
    return await session.read(id);
  } catch (error) {
    // The session reports its damage itself; what such an entry has used is lost with it.
    if (error instanceof SessionError) return undefined;
    throw error;
  }
}

function parsePayment(data: unknown): Payment | undefined {
  if (!isRecord(data)) return undefined;
  const { model, usage } = data;
  const purpose = PURPOSES.find((each) => each === data["purpose"]);
  if (!purpose || typeof model !== "string" || !isRecord(usage)) return undefined;
  return { purpose, model, usage };
}

/** Writes payments that are no answers to a session, once there is one. */
export class PaymentLog {
  readonly #session: () => Session | undefined;
  readonly #warn: (text: string) => void;
  #unsaved: Payment[] = [];
  #saving: Promise<void> = Promise.resolve();

  constructor(session: () => Session | undefined, warn: (text: string) => void) {
    this.#session = session;
    this.#warn = warn;
  }

  add(payment: Payment): void {
    this.#unsaved.push(payment);
    void this.save();
  }

  /** Writes what is not written yet. Never rejects: what was paid for goes on without. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#saveAll());
    return this.#saving;
  }

  /** Writes the sums of what was read, where the session has grown since. Never rejects. */
  async saveTotal({ total }: Spending): Promise<void> {
    const session = this.#session();
    if (!total || !session || session.readOnly || session.header.id !== total.session) return;
    if ((session.findIds("message").at(-1) ?? 0) <= total.until) return;
    try {
      await session.append({ type: "custom", kind: TOTAL_KIND, data: total });
    } catch (error) {
      this.#warn(`The sums of what was spent are missing in the session: ${errorMessage(error)}`);
    }
  }

  async #saveAll(): Promise<void> {
    const session = this.#session();
    if (!session) return;
    const payments = this.#unsaved;
    this.#unsaved = [];
    try {
      for (const data of payments) await session.append({ type: "custom", kind: KIND, data });
    } catch (error) {
      this.#warn(`What was spent is missing in the session: ${errorMessage(error)}`);
    }
  }
}

/** Reports what tools have spent on models of their own, in nested and late calls too. */
export function countTools(pay: (payment: Payment) => void): Middleware {
  const count = (model: string, usage: Usage | undefined): void => {
    if (usage) pay({ purpose: "subAgents", model, usage });
  };
  return {
    async tool(call, next) {
      const result = await next();
      count(call.tool.name, result.usage);
      return result;
    },
    late: ({ name }, { usage }) => count(name, usage),
  };
}
