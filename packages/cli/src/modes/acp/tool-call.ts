import { isAbsolute, join } from "node:path";
import type {
  ContentBlock,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from "@agentclientprotocol/sdk";
import type { AgentToolResult } from "@gyre/agent";
import type { UserContent } from "@gyre/ai";

type Args = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, ToolKind>> = {
  read: "read",
  ls: "read",
  find: "search",
  grep: "search",
  edit: "edit",
  write: "edit",
  apply_patch: "edit",
  shell: "execute",
  jobs: "execute",
  git: "execute",
  fetch: "fetch",
  oracle: "think",
  task: "think",
  todo: "think",
  tool_search: "search",
};

/** Of a title. Editors show it on one line. */
const MAX_TITLE_CHARS = 200;

/** How a call is told to an editor before there is a result. */
export interface CallView {
  title: string;
  kind: ToolKind;
  locations: ToolCallLocation[];
}

export function viewOf(tool: string, args: Args, cwd: string): CallView {
  return {
    title: titleOf(tool, args),
    kind: KINDS[tool] ?? "other",
    locations: locationsOf(tool, args, cwd),
  };
}

/** What is known of a call when only its name has come. */
export function announcedView(tool: string): CallView {
  return { title: tool, kind: KINDS[tool] ?? "other", locations: [] };
}

function titleOf(tool: string, args: Args): string {
  const path = textOf(args["path"]);
  const pattern = textOf(args["pattern"]);
  const where = path === undefined ? "" : ` in ${code(path)}`;
  switch (tool) {
    case "read":
      return `Read ${code(path)}${linesTold(args)}`;
    case "ls":
      return `List ${code(path ?? ".")}`;
    case "find":
      return `Find ${code(pattern)}${where}`;
    case "grep":
      return `Search ${code(pattern)}${where}`;
    case "edit":
      return `Edit ${code(path)}`;
    case "write":
      return `Write ${code(path)}`;
    case "apply_patch":
      return `Patch ${patchedPaths(args).map(code).join(", ")}`.slice(0, MAX_TITLE_CHARS);
    case "shell":
      return code(textOf(args["command"]));
    case "jobs":
      return ["Job", textOf(args["action"]), textOf(args["id"])].filter(Boolean).join(" ");
    case "git":
      return `git ${textOf(args["action"]) ?? ""}`.trim();
    case "fetch":
      return `Fetch ${code(textOf(args["url"]))}`;
    case "oracle":
      return `Ask: ${oneLine(textOf(args["question"]) ?? "")}`;
    case "todo":
      return "Update the plan";
    case "tool_search":
      return `Find tools: ${oneLine(textOf(args["query"]) ?? "")}`;
    case "mcp_call":
      return oneLine(textOf(args["tool"]) ?? tool);
    default:
      return tool;
  }
}

function linesTold({ offset, limit }: Args): string {
  if (typeof offset !== "number") return typeof limit === "number" ? ` (${limit} lines)` : "";
  return typeof limit === "number"
    ? ` (lines ${offset}-${offset + limit - 1})`
    : ` (from line ${offset})`;
}

/** Markdown that shows a text as it is, whatever marks it has. */
function code(text: string | undefined): string {
  if (text === undefined || text === "") return "";
  const line = oneLine(text);
  const fence = "`".repeat(longestRun(line) + 1);
  const pad = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

function oneLine(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length <= MAX_TITLE_CHARS ? line : `${line.slice(0, MAX_TITLE_CHARS)}…`;
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}

/** Tools that look at or change what their argument `path` names. */
const PATH_TOOLS = new Set(["read", "edit", "write", "ls", "grep", "find"]);

function locationsOf(tool: string, args: Args, cwd: string): ToolCallLocation[] {
  if (tool === "apply_patch") {
    return patchedPaths(args).map((path) => ({ path: absolute(path, cwd) }));
  }
  const path = textOf(args["path"]);
  if (!PATH_TOOLS.has(tool) || path === undefined) return [];
  const line = tool === "read" && typeof args["offset"] === "number" ? args["offset"] : undefined;
  return [{ path: absolute(path, cwd), ...(line !== undefined && { line }) }];
}

/** The files that a patch names. */
export function patchedPaths(args: Args): string[] {
  const patch = textOf(args["patch"]) ?? "";
  return [...patch.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].flatMap(
    ([, path]) => path?.trim() ?? [],
  );
}

/** The files that a call would change, as the model wrote them. */
export function changedPaths(tool: string, args: Args): string[] {
  if (tool === "apply_patch") return patchedPaths(args);
  const path = textOf(args["path"]);
  return (tool === "edit" || tool === "write") && path !== undefined ? [path] : [];
}

export function absolute(path: string, cwd: string): string {
  return isAbsolute(path) ? path : join(cwd, path);
}

/** The text of a file now, or nothing: by its path from the workspace. */
export type TextNow = (path: string) => string | undefined;

/**
 * What a call gave: the change as a diff where it changed files, else the text without the
 * marks that are for the model. `before` and `after` tell whole files; without them a diff
 * has the changed places.
 */
export function contentOf(
  tool: string,
  result: Pick<AgentToolResult, "content" | "details">,
  cwd: string,
  before: TextNow = () => undefined,
  after: TextNow = () => undefined,
): ToolCallContent[] {
  const diffs = changesOf(tool, result.details).flatMap((change) =>
    diffsOf(change, cwd, before, after),
  );
  if (diffs.length > 0) return diffs;
  return result.content.map((block) => ({
    type: "content",
    content: blockOf(block, FENCED.has(tool)),
  }));
}

/** Tools whose output is no prose. */
const FENCED = new Set(["read", "ls", "find", "grep", "shell", "jobs", "git"]);

/** A piece of a message or result, as an editor shows it. */
export function blockOf(block: UserContent, isFenced = false): ContentBlock {
  if (block.type === "image") {
    return { type: "image", data: block.data, mimeType: block.mimeType };
  }
  const text = withoutMarks(block.text);
  return { type: "text", text: isFenced && text !== "" ? fenced(text) : text };
}

function fenced(text: string): string {
  const MIN_FENCE = 3;
  const fence = "`".repeat(Math.max(MIN_FENCE, longestRun(text) + 1));
  return `${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** The lines that tell a model where a text is from. */
const MARKS = /^<(?:source kind="[^"\n]*" name="[^"\n]*"|\/source) mark="[0-9a-f]+">\n?/gm;

/** A result without the lines that are for the model alone. */
export function withoutMarks(text: string): string {
  return text.replace(MARKS, "");
}

/** Where the first change is by now, for editors that follow. */
export function changedLocations(tool: string, details: unknown, cwd: string): ToolCallLocation[] {
  return changesOf(tool, details).map(({ path, movedTo, firstLine }) => ({
    path: absolute(movedTo ?? path, cwd),
    ...(firstLine !== undefined && { line: firstLine }),
  }));
}

/** What one file became. */
interface Change {
  path: string;
  movedTo?: string;
  isDeleted?: boolean;
  firstLine?: number;
  /** Unified. */
  diff?: string;
  whole?: { oldText?: string; newText: string };
}

/** What the details of a result say, which may have come from a file that anybody wrote. */
function changesOf(tool: string, details: unknown): Change[] {
  if (!isRecord(details)) return [];
  if (tool === "apply_patch") {
    const { files } = details;
    return Array.isArray(files) ? files.flatMap((file: unknown) => editOf(file)) : [];
  }
  if (tool === "edit") return editOf(details);
  if (tool !== "write") return [];
  const { path, oldText, newText, created } = details;
  if (typeof path !== "string" || typeof newText !== "string") return [];
  // A replaced file whose old text is not known must not look like a new one.
  if (typeof oldText !== "string" && created !== true) return [];
  return [{ path, whole: { newText, ...(typeof oldText === "string" && { oldText }) } }];
}

function editOf(details: unknown): Change[] {
  if (!isRecord(details)) return [];
  const { path, diff, edits, type, movedTo } = details;
  if (typeof path !== "string" || typeof diff !== "string") return [];
  const first: unknown = Array.isArray(edits) ? edits[0] : undefined;
  const lines = isRecord(first) ? Number.parseInt(String(first["lines"]), 10) : Number.NaN;
  return [
    {
      path,
      diff,
      ...(typeof movedTo === "string" && { movedTo }),
      ...(type === "delete" && { isDeleted: true }),
      ...(lines > 0 && { firstLine: lines }),
    },
  ];
}

function diffsOf(change: Change, cwd: string, before: TextNow, after: TextNow): ToolCallContent[] {
  const { path, movedTo, isDeleted, whole, diff = "" } = change;
  const shown = absolute(movedTo ?? path, cwd);
  if (whole) return [{ type: "diff", path: shown, ...whole }];
  const oldText = before(path);
  const newText = isDeleted ? "" : after(movedTo ?? path);
  const isNew = /^--- \/dev\/null$/m.test(diff);
  if (newText !== undefined && (oldText !== undefined || isNew)) {
    return [{ type: "diff", path: shown, newText, ...(oldText !== undefined && { oldText }) }];
  }
  return hunksOf(diff).map((hunk) => ({
    type: "diff",
    path: shown,
    newText: hunk.newText,
    ...(isNew ? {} : { oldText: hunk.oldText }),
  }));
}

/** The places that a unified diff changes, each as it was and as it is. */
function hunksOf(diff: string): { oldText: string; newText: string }[] {
  const hunks: { oldText: string; newText: string }[] = [];
  const lines = diff.replace(/\n$/, "").split("\n");
  // A file that is made or removed whole has no line that begins a place.
  const hasPlaces = lines.some((line) => line.startsWith("@@ "));
  let hunk: (typeof hunks)[number] | undefined;
  for (const [index, line] of lines.entries()) {
    if (hasPlaces ? line.startsWith("@@ ") : index === 1) {
      hunk = { oldText: "", newText: "" };
      hunks.push(hunk);
    } else if (hunk) {
      const text = `${line.slice(1)}\n`;
      if (line.startsWith("-") || line.startsWith(" ")) hunk.oldText += text;
      if (line.startsWith("+") || line.startsWith(" ")) hunk.newText += text;
    }
  }
  return hunks;
}

/** What a call that waits for an approval would change, as far as its arguments tell. */
export function proposedContent(
  tool: string,
  args: Args,
  cwd: string,
  before: TextNow,
): ToolCallContent[] {
  const path = textOf(args["path"]);
  if (tool === "write" && path !== undefined) {
    const oldText = before(path);
    const newText = textOf(args["content"]) ?? "";
    const diff = { path: absolute(path, cwd), newText, ...(oldText !== undefined && { oldText }) };
    return [{ type: "diff", ...diff }];
  }
  if (tool === "edit" && path !== undefined && Array.isArray(args["edits"])) {
    return args["edits"].flatMap((edit: unknown): ToolCallContent[] => {
      if (!isRecord(edit)) return [];
      const { oldText, newText } = edit;
      if (typeof oldText !== "string" || typeof newText !== "string") return [];
      return [{ type: "diff", path: absolute(path, cwd), oldText, newText }];
    });
  }
  const patch = tool === "apply_patch" ? textOf(args["patch"]) : undefined;
  if (patch === undefined) return [];
  return [{ type: "content", content: { type: "text", text: fenced(patch) } }];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
