import type { AgentMessage } from "@gyre/agent";
import type { RunEvent } from "@gyre/durable";

interface Rebuilt {
  readonly activation: number;
  readonly blocks: Map<number, string>;
}

/** Rebuilds messages from deltas, and compares each with the message at its end. */
export class Rebuilder {
  readonly #run: string;
  readonly #counts: Record<"deltas" | "messages" | "restarts", number>;
  readonly #problems: string[];
  #rebuilt: Rebuilt | undefined;

  constructor(
    run: string,
    counts: Record<"deltas" | "messages" | "restarts", number>,
    problems: string[],
  ) {
    this.#run = run;
    this.#counts = counts;
    this.#problems = problems;
  }

  /** Returns whether it is an end, which has a number of its own. */
  take({ activation, event }: RunEvent): boolean {
    switch (event.type) {
      case "message_start":
        this.#begin(activation);
        return false;
      case "message_update": {
        const { assistantMessageEvent: update } = event;
        if (!this.#rebuilt) this.#report("an update came before the start of its message");
        if (!("delta" in update) || !this.#rebuilt) return false;
        this.#counts.deltas++;
        const { blocks } = this.#rebuilt;
        blocks.set(update.contentIndex, (blocks.get(update.contentIndex) ?? "") + update.delta);
        return false;
      }
      case "message_end":
        if (event.message.role === "assistant") this.#finish(event.message);
        return true;
      case "tool_execution_end":
      case "agent_end":
        return true;
      default:
        return false;
    }
  }

  #begin(activation: number): void {
    if (this.#rebuilt) {
      this.#counts.restarts++;
      if (this.#rebuilt.activation >= activation) this.#report("a message began twice");
    }
    this.#rebuilt = { activation, blocks: new Map() };
  }

  #finish(message: Extract<AgentMessage, { role: "assistant" }>): void {
    const rebuilt = this.#rebuilt;
    this.#rebuilt = undefined;
    if (!rebuilt) return;
    this.#counts.messages++;
    for (const [index, block] of message.content.entries()) {
      const text = rebuilt.blocks.get(index) ?? "";
      const isSame =
        (block.type === "text" && text === block.text) ||
        (block.type === "thinking" && text === block.thinking) ||
        (block.type === "toolCall" &&
          JSON.stringify(JSON.parse(text)) === JSON.stringify(block.arguments));
      if (!isSame) this.#report(`block ${index} was rebuilt as ${text.slice(0, 60)}`);
    }
    if (rebuilt.blocks.size > message.content.length) this.#report("a block too many came");
  }

  #report(problem: string): void {
    this.#problems.push(`${this.#run}: ${problem}`);
  }
}
