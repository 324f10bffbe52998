import { EventStream } from "@gyre/ai";
import type { AgentEndEvent, AgentEvent, PendingCall } from "../contract/types.ts";
import { joinUpdates } from "../loop/loop.ts";
import { type AgentEnd, assertSucceeded } from "./answer.ts";

/** The events of a run, to iterate. Leaving the `for await` detaches the iterator; the run goes on. */
export class AgentRun<T = undefined, Event = AgentEvent, Pending = PendingCall> extends EventStream<
  Event,
  AgentEndEvent<Pending>
> {
  constructor() {
    super(
      (event) => (event as AgentEvent).type === "agent_end",
      (event) => event as AgentEndEvent<Pending>,
      (last, next) => joinUpdates(last as AgentEvent, next as AgentEvent) as Event | undefined,
    );
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
   * The text of all answers, as it arrives. Throws `RunFailedError` at the end of a run that
   * ended with an error.
   */
  get textStream(): AsyncIterable<string> {
    return readText(this as AsyncIterable<unknown> as AsyncIterable<AgentEvent>);
  }
}

async function* readText(events: AsyncIterable<AgentEvent>): AsyncGenerator<string, void, void> {
  for await (const event of events) {
    if (event.type === "agent_end") assertSucceeded(event);
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update } = event;
    if (update.type === "text_delta") yield update.delta;
  }
}
