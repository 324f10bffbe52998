import type { AssistantContent, AssistantMessage, AssistantMessageEvent } from "@gyre/ai";

/**
 * The events that lead from the part of a message that was shown to as much of it as there is now, for a view that
 * keeps what it has shown. Undefined: it is another message. `shown` is absent where nothing was shown of it; `isWhole`:
 * nothing more comes.
 */
export function listRestEvents(
  shown: AssistantMessage | undefined,
  now: AssistantMessage,
  isWhole: boolean,
): AssistantMessageEvent[] | undefined {
  const before = shown?.content ?? [];
  if (before.length > now.content.length) return undefined;
  const events: AssistantMessageEvent[] = [];
  for (const [contentIndex, block] of now.content.entries()) {
    const old = before[contentIndex];
    if (old && !isGrown(old, block)) return undefined;
    const wasEnded = contentIndex < before.length - 1;
    if (wasEnded) continue;
    const isEnded = isWhole || contentIndex < now.content.length - 1;
    events.push(...listBlockEvents({ contentIndex, partial: now }, old, block, isEnded));
  }
  return events;
}

/** Whether a block is what another has become. */
function isGrown(old: AssistantContent, now: AssistantContent): boolean {
  if (old.type === "text") return now.type === "text" && now.text.startsWith(old.text);
  if (old.type === "thinking") {
    return now.type === "thinking" && now.thinking.startsWith(old.thinking);
  }
  if (old.type === "toolCall") return now.type === "toolCall" && now.id === old.id;
  return old.type === now.type;
}

function listBlockEvents(
  at: { contentIndex: number; partial: AssistantMessage },
  old: AssistantContent | undefined,
  block: AssistantContent,
  isEnded: boolean,
): AssistantMessageEvent[] {
  switch (block.type) {
    case "text": {
      const delta = block.text.slice(old?.type === "text" ? old.text.length : 0);
      return [
        ...(old ? [] : [{ type: "text_start", ...at } as const]),
        ...(delta === "" ? [] : [{ type: "text_delta", ...at, delta } as const]),
        ...(isEnded ? [{ type: "text_end", ...at, content: block.text } as const] : []),
      ];
    }
    case "thinking": {
      const delta = block.thinking.slice(old?.type === "thinking" ? old.thinking.length : 0);
      return [
        ...(old ? [] : [{ type: "thinking_start", ...at } as const]),
        ...(delta === "" ? [] : [{ type: "thinking_delta", ...at, delta } as const]),
        ...(isEnded ? [{ type: "thinking_end", ...at, content: block.thinking } as const] : []),
      ];
    }
    case "toolCall":
      return [
        ...(old ? [] : [{ type: "toolcall_start", ...at } as const]),
        // The arguments so far are those of the message.
        { type: "toolcall_delta", ...at, delta: "" },
        ...(isEnded ? [{ type: "toolcall_end", ...at, toolCall: block } as const] : []),
      ];
    case "serviceTool":
      return old ? [] : [{ type: "service_tool", ...at, content: block }];
    case "image":
      return old ? [] : [{ type: "image", ...at, content: block }];
    case "file":
      return old ? [] : [{ type: "file", ...at, content: block }];
    default:
      return block satisfies never;
  }
}
