import { answerServer } from "@gyre/coding/internal/conversation/server-question";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { McpAnswer, McpQuestion } from "@gyre/mcp";
import { row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Panel } from "../ui/ui.ts";
import { SelectPanel } from "./select.ts";
import { TextPanel } from "./text.ts";

/** What the question works with. */
export interface QuestionPlace {
  theme: Theme;
  open<T>(panel: Panel<T>): Promise<T | undefined>;
  withdraw(panel: Panel<unknown>): void;
  /** Absent where there is no browser. */
  openPage?: (url: string) => void;
}

/** Asks what an MCP server wants to know, one panel after the other. An abort leaves the open one. */
export function answerInPanels(
  question: McpQuestion,
  signal: AbortSignal,
  place: QuestionPlace,
): Promise<McpAnswer> {
  const { theme, openPage } = place;
  const show = async <T>(panel: Panel<T>): Promise<T | undefined> => {
    if (signal.aborted) return undefined;
    const leave = (): void => place.withdraw(panel);
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await place.open(panel);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  };
  const toRows = (lines: readonly string[] = []) => lines.map((line) => row(oneLine(line)));
  return answerServer(question, {
    choose: ({ about, ...rest }) =>
      show(new SelectPanel({ ...rest, about: toRows(about), requiresConfirmation: true }, theme)),
    line: ({ about, ...rest }) => show(new TextPanel({ ...rest, about: toRows(about) }, theme)),
    ...(openPage && { openPage }),
  });
}
