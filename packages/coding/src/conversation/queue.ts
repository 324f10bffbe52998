import type { Agent, QueueName } from "@gyre/agent";
import { userText } from "./prompt-text.ts";

/** A message that waits for the agent. */
export interface Waiting {
  queue: QueueName;
  id: string;
  text: string;
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
