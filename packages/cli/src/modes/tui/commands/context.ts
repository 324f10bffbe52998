import { type ContextBreakdown, contextBreakdown } from "@gyre/agent";
import {
  COMMAND_ABOUTS,
  CONTEXT_PARTS,
  contextSentence,
  count,
} from "../../../text/command-text.ts";
import type { TerminalCommand } from "../ui/ui.ts";
import { codeBlock, table } from "./markdown-text.ts";

/** A bar is no wider, however wide the terminal is. */
const MAX_BAR_COLUMNS = 60;
const MIN_BAR_COLUMNS = 10;
/** What a block of code is indented by, at most. */
const MARGIN_COLUMNS = 8;
const FREE = "·";
/** Told apart without colours. */
const FILLS = { system: "█", tools: "▓", files: "▒", results: "░", messages: "▄" } as const;

/** `/context`: what the next request is made of, as a bar and a table. */
export const contextCommand: TerminalCommand = {
  name: "context",
  about: COMMAND_ABOUTS.context,
  anytime: true,
  run(_rest, { harness, ui }) {
    const parts = contextBreakdown(harness.agent.state, {});
    const columns = Math.min(MAX_BAR_COLUMNS, ui.columns - MARGIN_COLUMNS);
    const rows = CONTEXT_PARTS.map((name) => [
      FILLS[name],
      name,
      count(parts[name]),
      percent(parts[name], parts.trigger),
    ]);
    ui.say(
      [
        contextSentence(parts),
        codeBlock(barOf(parts, Math.max(MIN_BAR_COLUMNS, columns))),
        table(
          ["", "part", "tokens", "of the limit"],
          [...rows, [FREE, "free", count(parts.free), percent(parts.free, parts.trigger)]],
        ),
      ].join("\n\n"),
    );
  },
};

/** The parts one after the other, as wide as they are large. What is there takes a column at least. */
export function barOf(parts: ContextBreakdown, columns: number): string {
  const whole = Math.max(parts.trigger, parts.total, 1);
  let bar = "";
  let sum = 0;
  for (const name of CONTEXT_PARTS) {
    if (parts[name] <= 0) continue;
    sum += parts[name];
    const end = Math.max(bar.length + 1, Math.round((sum / whole) * columns));
    bar += FILLS[name].repeat(Math.max(0, Math.min(columns, end) - bar.length));
  }
  return bar + FREE.repeat(columns - bar.length);
}

function percent(part: number, whole: number): string {
  const share = whole > 0 ? (part / whole) * 100 : 0;
  return `${share > 0 && share < 1 ? "<1" : Math.round(share)} %`;
}
