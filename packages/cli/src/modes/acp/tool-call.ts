import { isAbsolute, join } from "node:path";
import type {
  ContentBlock,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from "@agentclientprotocol/sdk";
import { type AgentToolResult, type FileChange, present } from "@gyre/agent";
import { describeFile, type FileContent, fileKind, toFile, type UserContent } from "@gyre/ai";
import { findPresentation } from "@gyre/coding/internal/core/presentations";

type Args = Readonly<Record<string, unknown>>;
type Result = Pick<AgentToolResult, "content" | "details">;

/** Of a title. Editors show it on one line. */
const MAX_TITLE_CHARS = 200;

/** How an editor shows a call before there is a result. */
export interface CallView {
  title: string;
  kind: ToolKind;
  locations: ToolCallLocation[];
}

export function createCallView(tool: string, args: Args, cwd: string): CallView {
  const presentation = findPresentation(tool);
  const locations = present(() => presentation?.locations?.(args)) ?? [];
  return {
    title: formatTitle(tool, args),
    kind: presentation?.kind ?? "other",
    locations: locations.map((at) => ({ ...at, path: absolute(at.path, cwd) })),
  };
}

/** What is known of a call when only its name has arrived. */
export function announcedView(tool: string): CallView {
  return { title: tool, kind: findPresentation(tool)?.kind ?? "other", locations: [] };
}

function formatTitle(tool: string, args: Args): string {
  const presentation = findPresentation(tool);
  const title = present(() => presentation?.title?.(args, code));
  if (title === undefined) return tool;
  return `${presentation?.verb ?? tool} ${title.trim()}`.trim().slice(0, MAX_TITLE_CHARS) || tool;
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

/** The files that a call would change, as the model wrote them. */
export function changedPaths(tool: string, args: Args): readonly string[] {
  return present(() => findPresentation(tool)?.effects?.(args).changes) ?? [];
}

export function absolute(path: string, cwd: string): string {
  return isAbsolute(path) ? path : join(cwd, path);
}

/** The text of a file now, or nothing: by its path from the workspace. */
export type TextNow = (path: string) => string | undefined;

/**
 * What a call gave: the change as a diff where it changed files, else the text without the
 * marks that are for the model. `before` and `after` are whole files; without them a diff
 * has the changed places.
 */
export function createContent(
  tool: string,
  result: Result,
  cwd: string,
  before: TextNow = () => undefined,
  after: TextNow = () => undefined,
): ToolCallContent[] {
  const diffs = readChanges(tool, result).flatMap((change) =>
    createDiffs(change, cwd, before, after),
  );
  if (diffs.length > 0) return diffs;
  return result.content.map((block) => ({
    type: "content",
    content: createBlock(block, findPresentation(tool)?.literal),
  }));
}

/** A piece of a message or result, as an editor shows it. */
export function createBlock(block: UserContent, isFenced = false): ContentBlock {
  if (block.type !== "text") return createFileBlock(toFile(block));
  const { text } = block;
  return { type: "text", text: isFenced && text !== "" ? fenced(text) : text };
}

/** A file as an editor shows it: with its contents, by its address, or by its name alone. */
export function createFileBlock(file: FileContent): ContentBlock {
  const { mediaType: mimeType, name, source } = file;
  if (source.type === "url") {
    return { type: "resource_link", uri: source.url, name: name ?? source.url, mimeType };
  }
  if (source.type !== "base64") return { type: "text", text: `[file: ${describeFile(file)}]` };
  const { data } = source;
  const kind = fileKind(mimeType);
  if (kind === "image" || kind === "audio") return { type: kind, data, mimeType };
  const uri = `file:///${encodeURIComponent(name ?? "file")}`;
  return { type: "resource", resource: { uri, mimeType, blob: data } };
}

function fenced(text: string): string {
  const MIN_FENCE = 3;
  const fence = "`".repeat(Math.max(MIN_FENCE, longestRun(text) + 1));
  return `${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** Where the first change is by now, for editors that follow. */
export function changedLocations(tool: string, result: Result, cwd: string): ToolCallLocation[] {
  return readChanges(tool, result).map(({ path, movedTo, firstLine }) => ({
    path: absolute(movedTo ?? path, cwd),
    ...(firstLine !== undefined && { line: firstLine }),
  }));
}

function readChanges(tool: string, result: Result): readonly FileChange[] {
  return present(() => findPresentation(tool)?.summarize?.(result).changes) ?? [];
}

function createDiffs(
  { path, movedTo, isDeleted, change }: FileChange,
  cwd: string,
  before: TextNow,
  after: TextNow,
): ToolCallContent[] {
  const shown = absolute(movedTo ?? path, cwd);
  if (!("diff" in change)) return [{ type: "diff", path: shown, ...change }];
  const { diff } = change;
  const oldText = before(path);
  const newText = isDeleted ? "" : after(movedTo ?? path);
  const isNew = /^--- \/dev\/null$/m.test(diff);
  if (newText !== undefined && (oldText !== undefined || isNew)) {
    return [{ type: "diff", path: shown, newText, ...(oldText !== undefined && { oldText }) }];
  }
  return parseHunks(diff).map((hunk) => ({
    type: "diff",
    path: shown,
    newText: hunk.newText,
    ...(isNew ? {} : { oldText: hunk.oldText }),
  }));
}

/** The places that a unified diff changes, each as it was and as it is. */
function parseHunks(diff: string): { oldText: string; newText: string }[] {
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

/** What a call that waits for an approval would change, as far as its arguments say. */
export function proposedContent(
  tool: string,
  args: Args,
  cwd: string,
  before: TextNow,
): ToolCallContent[] {
  const proposal = present(() => findPresentation(tool)?.proposal?.(args));
  switch (proposal?.type) {
    case "write": {
      const path = absolute(proposal.path, cwd);
      const { newText } = proposal;
      const oldText = before(proposal.path);
      return [{ type: "diff", path, newText, ...(oldText !== undefined && { oldText }) }];
    }
    case "edit":
      return proposal.edits.map((edit) => ({
        type: "diff",
        path: absolute(proposal.path, cwd),
        ...edit,
      }));
    case "patch":
      return [{ type: "content", content: { type: "text", text: fenced(proposal.text) } }];
    default:
      return [];
  }
}
