import { createHash } from "node:crypto";
import { type ApprovalAnswer, type ApprovalRequest, NETWORK } from "@gyre/tools";
import { readHostRule, type RuleBook } from "./rule-book.ts";

/** Asks a person; absent where none is there: the answer is no. */
type Ask = ((request: ApprovalRequest) => Promise<ApprovalAnswer>) | undefined;

/** Whether a command that may use the network connects to a host: a person is asked once about each. */
export class HostGate {
  readonly #askPerson: Ask;
  readonly #ruleBook: RuleBook;
  /** By host and port; also while the person thinks. */
  readonly #answers = new Map<string, Promise<boolean>>();

  constructor(ask: Ask, ruleBook: RuleBook) {
    this.#askPerson = ask;
    this.#ruleBook = ruleBook;
  }

  decide(host: string, port: number): Promise<boolean> {
    const isWeb = port === 80 || port === 443;
    const name = isWeb ? host : `${host}:${port}`;
    const isGiven = this.#ruleBook.all.some(({ rule }) => readHostRule(rule) === name);
    if (isGiven) return Promise.resolve(true);
    const known = this.#answers.get(name);
    if (known && !this.#ruleBook.isRevoked(`${NETWORK}(${name})`)) return known;
    const answer = this.#ask(name);
    this.#answers.set(name, answer);
    // A question that failed is no answer.
    answer.catch(() => this.#answers.delete(name));
    return answer;
  }

  async #ask(name: string): Promise<boolean> {
    if (!this.#askPerson) return false;
    const request: ApprovalRequest = {
      callId: `${NETWORK}:${name}`,
      tool: NETWORK,
      args: { host: name },
      access: { kind: "network", targets: [name], summary: `Connect to ${name}` },
      reason: `A command in the sandbox wants to connect to ${name}.`,
      fingerprint: createHash("sha256").update(`${NETWORK} ${name}`).digest("hex"),
    };
    const answer = await this.#askPerson(request);
    if (answer.allow === "always") await this.#ruleBook.add(answer.rule, answer.scope ?? "session");
    return answer.allow !== false;
  }
}
