import type { Agent, AgentMessage, QueueName } from "@gyre/agent";
import type { UserContent } from "@gyre/ai";
import { userText } from "./prompt-text.ts";

/** A message that waits for the agent. */
export interface Waiting {
  queue: QueueName;
  id: string;
  text: string;
}

/** The messages that wait for an agent, wherever it runs. */
export interface ConversationQueue {
  /** In the order in which they will be delivered. */
  list(): readonly Waiting[];
  /** Settles when the message is saved. Rejects where it could not be: it does not wait then. */
  add(queue: QueueName, message: string | AgentMessage): Promise<void>;
  /** Empties the queues. The texts of the messages, without those that were delivered meanwhile. */
  take(): readonly string[] | Promise<readonly string[]>;
}

/**
 * The queues of an agent of this process. `saved` settles when their changes so far are saved; `store` puts
 * large files of a message where the agent keeps them.
 */
export function createAgentQueue(
  agent: Agent,
  saved: () => Promise<void>,
  store: (content: readonly UserContent[]) => Promise<readonly UserContent[]> = async (content) =>
    content,
): ConversationQueue {
  return {
    list: () => listWaiting(agent),
    async add(queue, given) {
      const message = await withStored(given, store);
      const id = queue === "followUp" ? agent.followUp(message) : agent.steer(message);
      try {
        await saved();
      } catch (error) {
        // One that was delivered meanwhile is in the run, which reports what it cannot save.
        if (agent.takeQueued(queue, id)) throw error;
      }
    },
    take: () => takeWaiting(agent),
  };
}

async function withStored(
  message: string | AgentMessage,
  store: (content: readonly UserContent[]) => Promise<readonly UserContent[]>,
): Promise<string | AgentMessage> {
  if (typeof message === "string" || message.role !== "user") return message;
  const { content } = message;
  return typeof content === "string"
    ? message
    : { ...message, content: [...(await store(content))] };
}

/** All messages that wait, in the order in which they will be delivered. */
export function listWaiting(agent: Pick<Agent, "queued">): Waiting[] {
  return (["steering", "followUp"] as const).flatMap((queue) =>
    agent
      .queued(queue)
      // A notice is the program's own: it is neither shown as waiting nor taken back.
      .filter(({ message }) => message.role !== "notice")
      .map(({ id, message }) => ({
        queue,
        id,
        text: message.role === "user" ? userText(message.content) : "",
      })),
  );
}

/** Empties the queues. The texts of the messages, in the order in which they waited. */
export function takeWaiting(agent: Pick<Agent, "queued" | "takeQueued">): string[] {
  return listWaiting(agent).map(({ queue, id, text }) => {
    agent.takeQueued(queue, id);
    return text;
  });
}
