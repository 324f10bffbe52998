import { type AgentToolResult, present } from "@gyre/agent";
import { toRecord } from "@gyre/ai";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import { shownLine, shownText } from "@gyre/coding/internal/text/shown-text";

/** Lines of a tool's output that are shown; the rest is counted. */
export const MAX_SHOWN_LINES = 8;
/** Of a text that has to stay on one line: wider than any terminal. */
const MAX_LINE_CHARS = 1_000;

export type Args = Readonly<Record<string, unknown>>;

/** How long something took, for people. */
export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const MS_PER_SECOND = 1_000;
const SECONDS_PER_MINUTE = 60;

/** A time that goes by, in whole seconds: "4 s", "1 min 4 s". */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / MS_PER_SECOND));
  if (seconds < SECONDS_PER_MINUTE) return `${seconds} s`;
  const minutes = Math.floor(seconds / SECONDS_PER_MINUTE);
  return `${minutes} min ${seconds % SECONDS_PER_MINUTE} s`;
}

/** A whole number with its thousands apart. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** A count with its word: "1 line", "2 lines", "3 matches". */
export function counted(count: number, word: string, words = `${word}s`): string {
  return `${grouped(count)} ${count === 1 ? word : words}`;
}

/** How a call is shown on one line. */
export interface CallText {
  name: string;
  about: string;
  /** What it is for, in the model's own words. */
  purpose?: string;
}

/** The name of what is called, and what it is called for, as the tool describes it. */
export function callText(tool: string, args: Args): CallText {
  const presentation = findPresentation(tool);
  const inner = present(() => presentation?.unwrap?.(args));
  if (inner) return { name: shownLine(inner.name), about: argumentsText(inner.args) };
  const title = present(() => presentation?.title?.(args, (text) => text));
  const known = readText(args["command"]) || readText(args["path"]);
  const purpose = shownLine(present(() => presentation?.purpose?.(args)) ?? "");
  return {
    name: shownLine(tool),
    about: shownLine(title ?? (known || argumentsText(args))),
    ...(purpose !== "" && { purpose }),
  };
}

/** Arguments of a tool that nothing is known of: `name: value`, one behind the other. */
function argumentsText(args: Args): string {
  const parts = Object.entries(args).map(([name, value]) => {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return `${name}: ${text.slice(0, MAX_LINE_CHARS)}`;
  });
  return shownLine(parts.join(", "));
}

/** Lines with something on them. */
export function splitLines(text: string): string[] {
  return shownText(text)
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
}

export function resultText({ content }: Pick<AgentToolResult, "content">): string {
  return content.map((block) => (block.type === "text" ? block.text : "(image)")).join("\n");
}

/** What a tool reports to the application, which may have come from a file that anybody wrote. */
export function readDetails({ details }: Pick<AgentToolResult, "details">): Args {
  return toRecord(details);
}

export function readText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Why a call was denied, in short. */
export function deniedText(reason: string): string {
  return `denied: ${firstSentence(reason)}`;
}

export function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;
}
