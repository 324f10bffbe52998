import type { LiveCall, LiveWire } from "../contract/bus.ts";
import { MessageSoFar } from "./message-so-far.ts";

type CallEvent = Extract<LiveWire, { type: "tool_execution_start" | "tool_execution_update" }>;

/** The beginning of a call, where the log does not have it, and what it last reported. */
type CallState = Partial<Record<CallEvent["type"], CallEvent>>;

/** What goes on in an activation, beside what is stored. */
export class LiveState {
  message: MessageSoFar | undefined;
  /** Calls that run, by their id. Each event has the arguments. */
  readonly #calls = new Map<string, CallState>();

  take(event: LiveWire): void {
    switch (event.type) {
      case "message_start":
        this.message = new MessageSoFar(event.message);
        break;
      case "message_update":
        this.message?.take(event.event);
        break;
      case "message_end":
        this.message = undefined;
        break;
      case "tool_execution_start":
      case "tool_execution_update":
        this.#calls.set(event.toolCallId, {
          ...this.#calls.get(event.toolCallId),
          [event.type]: { ...event, args: this.readArgs(event) },
        });
        break;
      case "tool_execution_end":
        this.#calls.delete(event.toolCallId);
        break;
      default:
        break;
    }
  }

  /** The arguments of a call, which its first event has. */
  readArgs({ toolCallId, args }: LiveCall): Record<string, unknown> {
    const [known] = Object.values(this.#calls.get(toolCallId) ?? {});
    return args ?? known?.args ?? {};
  }

  hasCall(toolCallId: string): boolean {
    return this.#calls.has(toolCallId);
  }

  listCalls(): CallEvent[] {
    return [...this.#calls.values()].flatMap((call) => Object.values(call));
  }

  /** The events that lead to it from nothing. */
  list(): LiveWire[] {
    const { message } = this;
    const updates = message?.list() ?? [];
    return [
      ...(message ? [{ type: "message_start" as const, message: message.head }] : []),
      ...updates.map((event) => ({ type: "message_update" as const, event })),
      ...this.listCalls(),
    ];
  }
}
