import type { AgentToolResult } from "@gyre/agent";
import { patchedPaths } from "../modes/acp/tool-call.ts";
import { shownLine, shownText } from "./shown-text.ts";

/** Lines of a tool's output that are shown; the rest is counted. */
export const MAX_SHOWN_LINES = 8;
/** Of a text that has to stay on one line: wider than any terminal. */
const MAX_LINE_CHARS = 1_000;

/** Of a patch, looked through for the files that it names. */
const MAX_PATCH_CHARS = 20_000;

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

/** What a call is about, in one line: the argument that a person would name. */
export function aboutOf(args: Args): string {
  const about = args["command"] ?? args["path"] ?? "";
  return typeof about === "string" ? shownText(about).replaceAll("\n", " ") : "";
}

/** How a call is told on one line. */
export interface CallText {
  name: string;
  about: string;
}

/** The name of what is called, and what it is called for. The tool behind `mcp_call` is named itself. */
export function callText(tool: string, args: Args): CallText {
  const { tool: meant, arguments: inner } = args;
  if (tool === "mcp_call" && typeof meant === "string") {
    return { name: shownLine(meant), about: argumentsText(isRecord(inner) ? inner : {}) };
  }
  return { name: shownLine(tool), about: shownLine(purposeOf(tool, args)) };
}

function purposeOf(tool: string, args: Args): string {
  const path = wordOf(args["path"]);
  switch (tool) {
    case "shell":
      return wordOf(args["command"]);
    case "read":
    case "write":
    case "edit":
      return path;
    case "ls":
      return path || ".";
    case "grep":
    case "find":
      return path === "" ? wordOf(args["pattern"]) : `${wordOf(args["pattern"])} in ${path}`;
    case "apply_patch":
      return patchedPaths({ patch: wordOf(args["patch"]).slice(0, MAX_PATCH_CHARS) }).join(", ");
    case "git":
    case "jobs":
      return `${wordOf(args["action"])} ${wordOf(args["id"])}`.trim();
    case "fetch":
      return wordOf(args["url"]);
    case "oracle":
      return wordOf(args["question"]);
    case "task":
      return wordOf(args["description"]);
    case "tool_search":
      return wordOf(args["query"]);
    case "todo":
      return Array.isArray(args["todos"]) ? counted(args["todos"].length, "step") : "";
    case "notes":
      return "";
    default:
      return wordOf(args["command"]) || path || argumentsText(args);
  }
}

/** Arguments of a tool that nothing is known of: `name: value`, one behind the other. */
function argumentsText(args: Args): string {
  const told = Object.entries(args).map(([name, value]) => {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return `${name}: ${text.slice(0, MAX_LINE_CHARS)}`;
  });
  return shownLine(told.join(", "));
}

/** Lines with something on them. */
export function linesOf(text: string): string[] {
  return shownText(text)
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
}

export function resultText({ content }: Pick<AgentToolResult, "content">): string {
  return content.map((block) => (block.type === "text" ? block.text : "(image)")).join("\n");
}

/** What a tool tells the application, which may have come from a file that anybody wrote. */
export function detailsOf({ details }: Pick<AgentToolResult, "details">): Args {
  return isRecord(details) ? details : {};
}

/** How a command ended. */
export function exitOf({ aborted, exitCode, timedOut }: Args): string {
  if (timedOut === true) return "out of time";
  if (aborted === true) return "aborted";
  return typeof exitCode === "number" ? `exit code ${exitCode}` : "ended by a signal";
}

/** What `ls` tells of a file beside its name. */
const LISTED_SIZE = / \([\d.]+ [KMGTP]?B\)$/;

/** A line of `ls` without the size. */
export function listedName(line: string): string {
  return line.replace(LISTED_SIZE, "");
}

export function wordOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
