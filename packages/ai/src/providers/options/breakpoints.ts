import type { CacheBreakpoint } from "../../client/generation-options.ts";
import type { Draft } from "./table.ts";

interface Written {
  role?: string;
  content?: unknown;
}

/**
 * Where the message of a breakpoint ends in a written request: the index of the written message, and
 * of its last block. Formats join neighbors, so an index of ours is not one of theirs. Throws a
 * `TypeError` if there is no such message.
 */
export function locateMessage(
  after: number,
  { formatMessages, request: { context, model } }: Pick<Draft, "formatMessages" | "request">,
): { message: number; block: number } {
  const { messages } = context;
  const index = after < 0 ? messages.length + after : after;
  const last = messages[index];
  if (!last) throw new TypeError(`there is no message ${after} among ${messages.length}.`);
  const written: readonly Written[] = formatMessages(messages.slice(0, index + 1), model);
  // A call without a result gets one behind it, which is not there in the whole.
  const isOwn = last.role === "assistant";
  const at = written.findLastIndex(
    ({ role }) => !isOwn || role === "assistant" || role === "model",
  );
  const content = written[at]?.content;
  if (at < 0) throw new TypeError(`message ${after} is not sent.`);
  return { message: at, block: Array.isArray(content) ? content.length - 1 : 0 };
}

/** Breakpoints from the last to the first, so that what is inserted moves none of the others. */
export function sortBreakpoints(
  points: readonly CacheBreakpoint[],
  { context }: Pick<Draft["request"], "context">,
): readonly CacheBreakpoint[] {
  const rank = ({ after }: CacheBreakpoint): number => {
    if (after === "tools") return -2;
    if (after === "system") return -1;
    return after < 0 ? context.messages.length + after : after;
  };
  return points.toSorted((one, other) => rank(other) - rank(one));
}
