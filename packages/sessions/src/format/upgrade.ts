import type { TextContent, ToolResultMessage, UserContent } from "@gyre/ai";

/** A text that earlier versions stored between two lines that say where it came from. */
const MARKED =
  /<source kind="([^"\n]*)" name="([^"\n]*)" mark="([0-9a-f]+)">\n([\s\S]*?)\n<\/source mark="\3">/g;

/**
 * A tool result of a file that was written before results recorded their outcome: marks in its
 * text become the `source` of a block. A newer result is passed on as it is, whatever its text
 * looks like.
 */
export function upgradeResult(message: ToolResultMessage): ToolResultMessage {
  if (message.outcome !== undefined) return message;
  return { ...message, content: upgradeContent(message.content) };
}

/** The same for the content alone. */
export function upgradeContent(content: readonly UserContent[]): UserContent[] {
  return content.flatMap((block): UserContent[] =>
    block.type === "text" ? splitMarked(block) : [block],
  );
}

function splitMarked(block: TextContent): TextContent[] {
  const { text } = block;
  if (!text.includes('<source kind="')) return [block];
  const parts: TextContent[] = [];
  const add = (plain: string): void => {
    const rest = plain.replace(/^\n|\n$/g, "");
    if (rest !== "") parts.push({ type: "text", text: rest });
  };
  let end = 0;
  for (const match of text.matchAll(MARKED)) {
    const [whole, kind = "", name = "", mark = "", inner = ""] = match;
    add(text.slice(end, match.index));
    parts.push({ type: "text", text: inner, source: { kind, name, mark } });
    end = match.index + whole.length;
  }
  add(text.slice(end));
  return parts;
}
