import type { AgentEvent, AgentMessage } from "@gyre/agent";
import type { ToolCall, ToolResultMessage } from "@gyre/ai";

/** The parts of a turn, in the only order that they may come in. */
const PARTS = ["repair", "injected", "asking", "answer", "tools"] as const;
type Part = (typeof PARTS)[number];

interface Turn {
  first: boolean;
  part: Part;
  /** A message whose start has come and whose end has not. */
  open?: AgentMessage | undefined;
  streaming: boolean;
  answer?: AgentMessage;
  calls: readonly ToolCall[];
  started: string[];
  running: Set<string>;
  ended: Set<string>;
  results: ToolResultMessage[];
}

/**
 * The grammar of the events of one run (R1, R2, R8, R13), as a machine that takes
 * them one by one and says what is wrong with one that does not fit.
 *
 *     run  = agent_start turn+ limit? agent_end
 *     turn = turn_start repair* injected* (compaction | retry | fallback)* answer tools* turn_end
 */
export class Grammar {
  readonly #isSuspended: (callId: string) => boolean;
  readonly #mayRunTogether: (one: string, other: string) => boolean;
  #state: "before" | "between" | "turn" | "limit" | "after" = "before";
  #turn: Turn | undefined;
  turns = 0;

  constructor(
    isSuspended: (callId: string) => boolean,
    mayRunTogether: (one: string, other: string) => boolean,
  ) {
    this.#isSuspended = isSuspended;
    this.#mayRunTogether = mayRunTogether;
  }

  get isOver(): boolean {
    return this.#state === "after";
  }

  /** Takes the next event; answers what is wrong with it, if anything is. */
  take(event: AgentEvent): string | undefined {
    const turn = this.#turn;
    if (turn) return this.#inTurn(turn, event);
    const { type } = event;
    if (this.#state === "before") {
      if (type !== "agent_start") return "a run begins with agent_start";
      this.#state = "between";
      return undefined;
    }
    if (this.#state === "between" && type === "turn_start") {
      this.#begin();
      return undefined;
    }
    if (this.#state === "between" && type === "limit") {
      if (this.turns === 0) return "there is a limit before the first turn";
      this.#state = "limit";
      return undefined;
    }
    if ((this.#state === "between" || this.#state === "limit") && type === "agent_end") {
      if (this.turns === 0) return "a run has at least one turn";
      this.#state = "after";
      return undefined;
    }
    return `${type} has no place ${this.#state === "after" ? "after agent_end" : "between turns"}`;
  }

  #begin(): void {
    this.#turn = {
      first: this.turns === 0,
      part: "repair",
      streaming: false,
      calls: [],
      started: [],
      running: new Set(),
      ended: new Set(),
      results: [],
    };
    this.turns++;
    this.#state = "turn";
  }

  #inTurn(turn: Turn, event: AgentEvent): string | undefined {
    if (event.type === "waiting") {
      if (turn.open) return turn.streaming ? undefined : "waiting comes inside a user message";
      return enter(turn, "asking");
    }
    if (turn.open && event.type !== "message_end" && event.type !== "message_update") {
      return `${event.type} comes between the start and the end of a message`;
    }
    switch (event.type) {
      case "message_start":
        return this.#messageStart(turn, event.message);
      case "message_update":
        if (!turn.open || !turn.streaming)
          return "message_update comes outside an assistant message";
        return undefined;
      case "message_end":
        return this.#messageEnd(turn, event.message);
      case "retry":
      case "fallback":
      case "compaction":
        return enter(turn, "asking");
      case "tool_execution_start":
        return this.#toolStart(turn, event.toolCallId);
      case "tool_execution_update":
        if (!turn.running.has(event.toolCallId))
          return "an update comes while its call does not run";
        return undefined;
      case "tool_execution_end":
        if (!turn.running.delete(event.toolCallId)) return "a call ends that does not run";
        turn.ended.add(event.toolCallId);
        return undefined;
      case "turn_end":
        return this.#end(turn, event);
      default:
        return `${event.type} has no place inside a turn`;
    }
  }

  #messageStart(turn: Turn, message: AgentMessage): string | undefined {
    turn.open = message;
    turn.streaming = false;
    if (message.role === "assistant") {
      if (turn.answer) return "a turn has a second assistant message";
      turn.streaming = true;
      return enter(turn, "answer");
    }
    if (message.role === "toolResult") return this.#result(turn, message);
    return enter(turn, "injected");
  }

  #messageEnd(turn: Turn, message: AgentMessage): string | undefined {
    const { open } = turn;
    turn.open = undefined;
    if (!open) return "a message ends that has not started";
    if (open.role !== message.role) return "the message that ends is not the one that started";
    if (message.role !== "assistant") {
      return open === message ? undefined : "the message that ends is not the one that started";
    }
    turn.answer = message;
    turn.calls = message.content.filter((block) => block.type === "toolCall");
    turn.started = [];
    turn.ended = new Set();
    turn.results = [];
    return undefined;
  }

  #toolStart(turn: Turn, id: string): string | undefined {
    const wrongPart = enter(turn, turn.answer ? "tools" : "repair");
    if (wrongPart) return wrongPart;
    if (!turn.answer && !turn.first) return "only the first turn answers calls of an earlier one";
    if (turn.started.includes(id)) return `call ${id} is started twice`;
    if (turn.answer && turn.calls[turn.started.length]?.id !== id) {
      return `call ${id} is started out of call order`;
    }
    const others = [...turn.running].filter((other) => !this.#isSuspended(other));
    const unpublished = [...turn.ended].filter(
      (other) => !turn.results.some((result) => result.toolCallId === other),
    );
    for (const other of [...others, ...unpublished]) {
      if (!this.#mayRunTogether(other, id)) return `call ${id} starts before ${other} is answered`;
    }
    turn.started.push(id);
    turn.running.add(id);
    return undefined;
  }

  #result(turn: Turn, { toolCallId: id }: ToolResultMessage): string | undefined {
    const running = [...turn.running].find((other) => !this.#isSuspended(other));
    if (running) return `the result of ${id} is published while ${running} runs`;
    if (!turn.ended.has(id)) return `a result of ${id} comes before its call has ended`;
    if (turn.results.some((result) => result.toolCallId === id)) return `${id} has two results`;
    if (turn.answer) {
      const place = turn.calls.findIndex((call) => call.id === id);
      const last = turn.results.at(-1)?.toolCallId;
      const lastPlace = turn.calls.findIndex((call) => call.id === last);
      if (place < lastPlace) return `the result of ${id} is out of call order`;
    }
    turn.results.push(turn.open as ToolResultMessage);
    return undefined;
  }

  #end(turn: Turn, event: Extract<AgentEvent, { type: "turn_end" }>): string | undefined {
    this.#turn = undefined;
    this.#state = "between";
    const waits = [...turn.running].every((id) => this.#isSuspended(id));
    if (!waits) return "a turn ends while a call runs";
    if (!turn.answer) {
      // Calls that still wait for a person: there was no person to ask.
      return turn.first ? undefined : "a turn ends without an assistant message";
    }
    if (event.message !== turn.answer) return "turn_end does not carry the turn's message";
    if (event.toolResults.length !== turn.results.length) {
      return `turn_end carries ${event.toolResults.length} results of ${turn.results.length}`;
    }
    const isSame = turn.results.every((result, index) => event.toolResults[index] === result);
    if (!isSame) return "turn_end does not carry the turn's results";
    const unanswered = turn.calls.find(
      ({ id }) => !this.#isSuspended(id) && !turn.results.some((r) => r.toolCallId === id),
    );
    return unanswered && `call ${unanswered.id} has no result`;
  }
}

function enter(turn: Turn, part: Part): string | undefined {
  if (PARTS.indexOf(part) < PARTS.indexOf(turn.part)) {
    return `what belongs to "${part}" comes after "${turn.part}"`;
  }
  turn.part = part;
  return undefined;
}
