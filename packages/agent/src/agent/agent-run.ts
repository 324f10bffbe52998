import { type AnySchema, EventStream, loadPart } from "@gyre/ai";
import type { AgentEndEvent, AgentEvent, PendingCall } from "../contract/types.ts";
import { joinUpdates } from "../loop/loop.ts";
import { type AgentEnd, assertSucceeded } from "./answer.ts";

/** The events of a run, to iterate. Leaving the `for await` detaches the iterator; the run goes on. */
export class AgentRun<T = undefined, Event = AgentEvent, Pending = PendingCall> extends EventStream<
  Event,
  AgentEndEvent<Pending>
> {
  readonly #schema: AnySchema | undefined;

  /** `schema`: of the answer. */
  constructor(schema?: AnySchema) {
    super(
      (event) => (event as AgentEvent).type === "agent_end",
      (event) => event as AgentEndEvent<Pending>,
      (last, next) => joinUpdates(last as AgentEvent, next as AgentEvent) as Event | undefined,
    );
    this.#schema = schema;
  }

  /** Whether it was given an `output` schema. */
  get hasOutput(): boolean {
    return this.#schema !== undefined;
  }

  /** How the run ended, with its answer. */
  override result(): Promise<AgentEnd<T, Pending>> {
    return super.result() as Promise<AgentEnd<T, Pending>>;
  }

  /** The validated answer, when the run was given an `output` schema. */
  async output(): Promise<T> {
    return (await this.result()).output;
  }

  /**
   * The answer so far, each time more of it has arrived, in a run with an `output` schema. It is
   * live: it grows in place. Nothing of it is validated yet, and after a repair it begins again.
   */
  get outputStream(): AsyncIterable<PartialOutput<T>> {
    return readOutputs(this as AsyncIterable<unknown>, this.#schema) as AsyncIterable<
      PartialOutput<T>
    >;
  }

  /**
   * The text of all answers, as it arrives. Throws `RunFailedError` at the end of a run that
   * ended with an error.
   */
  get textStream(): AsyncIterable<string> {
    return readText(this as AsyncIterable<unknown> as AsyncIterable<AgentEvent>);
  }
}

/** A value of which parts may be absent. */
export type PartialOutput<T> = T extends readonly (infer Item)[]
  ? PartialOutput<Item>[]
  : T extends object
    ? { [Name in keyof T]?: PartialOutput<T[Name]> }
    : T;

async function* readOutputs(
  events: AsyncIterable<unknown>,
  schema: AnySchema | undefined,
): AsyncGenerator<unknown, void, void> {
  const { readPartialOutputs } = await loadPart(import("./output.ts"));
  yield* readPartialOutputs(events as AsyncIterable<AgentEvent>, schema);
}

async function* readText(events: AsyncIterable<AgentEvent>): AsyncGenerator<string, void, void> {
  for await (const event of events) {
    if (event.type === "agent_end") assertSucceeded(event);
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update } = event;
    if (update.type === "text_delta") yield update.delta;
  }
}
