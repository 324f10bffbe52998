import { type AgentToolResult } from "@gyre/agent";
import { isRecord } from "@gyre/ai";
import { oneLine, shownLine } from "@gyre/coding/internal/text/shown-text";
import { dollars } from "../../../text/dollars.ts";
import { counted, readDetails, readText } from "../../../text/tool-text.ts";
import { type Row, row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/** A sub-agent may have sub-agents; a file that another program wrote may say more. */
const MAX_DEPTH = 4;

interface TreeCall {
  text: string;
  state: "running" | "ok" | "failed";
  calls: readonly TreeCall[];
}

/** The calls of a sub-agent. */
export interface CallTree {
  /** All of them; `calls` are the last. */
  count: number;
  calls: readonly TreeCall[];
  cost?: number;
}

/** What a sub-agent has done, where a result is that of one. It may have come from a file. */
export function readCallTree(result: Pick<AgentToolResult, "details">): CallTree | undefined {
  const { callCount, calls, usage } = readDetails(result);
  if (typeof callCount !== "number" || !Array.isArray(calls)) return undefined;
  const cost = isRecord(usage) && isRecord(usage["cost"]) ? usage["cost"]["total"] : undefined;
  return {
    count: callCount,
    calls: readCalls(calls, MAX_DEPTH),
    ...(typeof cost === "number" && { cost }),
  };
}

function readCalls(calls: unknown, depth: number): TreeCall[] {
  if (!Array.isArray(calls) || depth === 0) return [];
  return calls.filter(isRecord).map(({ tool, title, state, calls: below }) => ({
    text: shownLine(oneLine(`${readText(tool)} ${readText(title)}`.trim())),
    state: state === "running" || state === "failed" ? state : "ok",
    calls: readCalls(below, depth - 1),
  }));
}

/** "3 calls", "$0.0120". */
export function describeTree({ count, cost }: CallTree): string[] {
  return [
    ...(count > 0 ? [counted(count, "call")] : []),
    ...(cost === undefined ? [] : [dollars(cost)]),
  ];
}

/** The last calls, each below the one that it is made for, in at most `most` rows. */
export function treeRows({ count, calls }: CallTree, most: number, theme: Theme): Row[] {
  const all = layOut(calls, "", theme);
  if (all.length <= most && count <= calls.length) return all;
  const shown = all.slice(-Math.max(1, most - 1));
  const hidden = count - calls.length + all.length - shown.length;
  return [row(`  … ${counted(hidden, "call")} before`, theme.dim), ...shown];
}

function layOut(calls: readonly TreeCall[], margin: string, theme: Theme): Row[] {
  return calls.flatMap(({ text, state, calls: below }, index) => {
    const isLast = index === calls.length - 1;
    const sign =
      state === "failed"
        ? span("✗ ", theme.bad)
        : state === "running"
          ? span("○ ", theme.accent)
          : span("");
    const branch = span(`  ${margin}${isLast ? "└" : "├"} `, theme.dim);
    const inner = `${margin}${isLast ? "  " : "│ "}`;
    return [[branch, sign, span(text, theme.dim)], ...layOut(below, inner, theme)];
  });
}
