import type { Agent, AgentMessage, QueueChange, QueuedMessage, QueueName } from "@gyre/agent";
import type { Journal } from "@gyre/sessions";
import type { QueueAnswer, QueueRequest } from "../contract/requests.ts";

/**
 * The queues of an agent, whose messages have the ids of those that sent them: the log has what
 * waits, so that the next worker has it, too.
 */
export class AgentQueues {
  readonly #getAgent: () => Agent;
  readonly #journal: Journal;
  readonly #ids = new WeakMap<AgentMessage, string>();
  /** The same by what the agent calls them. */
  readonly #names = new Map<string, string>();
  /** What the agent reported last, and what the log has of it. */
  readonly #last: Record<QueueName, Record<"messages" | "renamed", readonly QueuedMessage[]>> = {
    steering: { messages: [], renamed: [] },
    followUp: { messages: [], renamed: [] },
  };

  constructor(getAgent: () => Agent, journal: Journal) {
    this.#getAgent = getAgent;
    this.#journal = journal;
  }

  /** For the option of the agent. */
  readonly onChange = ({ queue, messages, removed }: QueueChange): void => {
    // What is added to a long queue is all that is looked at.
    const last = this.#last[queue];
    let same = 0;
    while (same < messages.length && messages[same] === last.messages[same]) same++;
    const renamed = last.renamed.slice(0, same);
    for (const item of messages.slice(same)) {
      const own = this.#rename(item);
      renamed.push(own);
      this.#names.set(item.id, own.id);
    }
    this.#last[queue] = { messages, renamed };
    this.#journal.onQueueChange({
      queue,
      messages: renamed,
      removed: removed.map((id) => this.#names.get(id) ?? id),
    });
  };

  list(queue: QueueName): QueuedMessage[] {
    return this.#getAgent()
      .queued(queue)
      .map((item) => this.#rename(item));
  }

  change(request: QueueRequest): QueueAnswer {
    return { ...this.#apply(request), queued: this.list(request.queue) };
  }

  #apply(request: QueueRequest): Omit<QueueAnswer, "queued"> {
    const agent = this.#getAgent();
    const { queue } = request;
    if (request.op === "clear") {
      if (queue === "steering") agent.clearSteeringQueue();
      else agent.clearFollowUpQueue();
      return { isDone: true };
    }
    if (request.op === "add") {
      this.#ids.set(request.message, request.id);
      if (queue === "steering") agent.steer(request.message);
      else agent.followUp(request.message);
      return { isDone: true };
    }
    const found = agent.queued(queue).find((item) => this.#rename(item).id === request.id);
    if (!found) return { isDone: false };
    if (request.op === "remove") {
      const message = agent.takeQueued(queue, found.id);
      return { isDone: message !== undefined, ...(message && { message }) };
    }
    if (request.op === "move") {
      return { isDone: agent.moveQueued(queue, found.id, request.place) };
    }
    this.#ids.set(request.message, request.id);
    return { isDone: agent.editQueued(queue, found.id, request.message) };
  }

  #rename({ id, message }: QueuedMessage): QueuedMessage {
    return { id: this.#ids.get(message) ?? id, message };
  }
}
