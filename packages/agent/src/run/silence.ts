import type { AssistantMessageEvent } from "@gyre/ai";
import type { ContentPhase } from "../contract/types.ts";

/** How long a response has brought no content, and what is waited for. */
export interface Silence {
  phase: ContentPhase;
  /** The tool of the call that is being written. */
  toolName?: string;
  silentMs: number;
}

/** A silence that is over its limit. */
export interface ContentTimeout extends Silence {
  /** The service had begun to answer: it may be at work, and is paid for it. */
  hasBegun: boolean;
  /** The option that sets the limit. */
  option: string;
}

/** What comes next, after the last event of a response. */
export function describePhase(last: AssistantMessageEvent | undefined): Omit<Silence, "silentMs"> {
  switch (last?.type) {
    case "thinking_start":
    case "thinking_delta":
      return { phase: "thinking" };
    case "text_start":
    case "text_delta":
      return { phase: "text" };
    case "toolcall_start":
    case "toolcall_delta": {
      const call = last.partial.content[last.contentIndex];
      return call?.type === "toolCall" && call.name !== ""
        ? { phase: "call", toolName: call.name }
        : { phase: "call" };
    }
    default:
      return { phase: "response" };
  }
}
