import type { Model } from "../../messages/messages.ts";
import type { FakeAnswer } from "../../testing/fake-service.ts";
import type { RequestCheck } from "./problems.ts";

/** What the tests of all formats know of one: `request-check.ts` in its folder exports it. */
export interface FormatFixture {
  /** Checks a request by the rules in the documentation of the service. */
  check: RequestCheck;
  /** Other rules of some services, by their ids. */
  serviceChecks?: Readonly<Record<string, RequestCheck>>;
  /** Models to write requests for: one for each way in which requests differ. */
  models: readonly Model[];
  /** The format whose messages a model takes, if that is another one. */
  findShape?: (model: Model) => string;
  /**
   * A whole response with the thought `Thought #n#`, the text `Said #n#` and a call of the tool
   * `read_file`. `seal` is its signature, if the format has any.
   */
  respond: (n: number, seal: string, by: Model) => FakeAnswer;
}

export function createModel(
  api: string,
  provider: string,
  id: string,
  more: Partial<Model> = {},
): Model {
  return { id, name: id, api, provider, maxTokens: 64_000, reasoning: true, ...more };
}
