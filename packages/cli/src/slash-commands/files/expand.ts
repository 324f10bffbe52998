import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type AgentToolResult, DeniedError, markSources } from "@gyre/agent";
import { errorMessage, textOf } from "@gyre/ai";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { fillPlaces } from "./fill.ts";

const COMMAND = /!`([^`\n]+)`/g;
/** `@path` or `@"a path"`, behind a space or at the beginning of a line. */
const MENTION = /(?<=^|\s)@(?:"([^"\n]+)"|([^\s"`]*[^\s"`.,;:!?)]))/gm;
/** Files that one command brings along. */
const MAX_FILES = 20;

export interface ExpandOptions {
  harness: Pick<Harness, "callTool" | "toolset">;
  signal: AbortSignal;
}

/**
 * A text with what was typed behind its command, with the output of each `` !`command` `` in its place, and behind it the
 * files that it names as `@path`. Commands and files go through permissions, as calls of the model do. What was typed
 * can name files and runs nothing. Rejects where a command is not allowed.
 */
export async function expand(text: string, rest: string, options: ExpandOptions): Promise<string> {
  const commands: string[] = [];
  let isUsed = false;
  const fill = (part: string): string => {
    const filled = fillPlaces(part, rest);
    isUsed ||= filled.isUsed;
    return filled.text;
  };
  // Where a command stands is kept by its number: what is typed or printed cannot make another.
  const pieces = text.split(COMMAND).map((piece, index) => {
    if (index % 2 === 0) return fill(piece);
    commands.push(fill(piece));
    return piece;
  });
  const isAdded = !isUsed && rest !== "";
  const written = [...pieces.filter((_, index) => index % 2 === 0), ...(isAdded ? [rest] : [])];
  const outputs: string[] = [];
  for (const command of commands) outputs.push(await runCommand(command, options));
  const whole = pieces.map((piece, index) => (index % 2 === 0 ? piece : outputs[(index - 1) / 2]));
  const files = await readMentions(written.join("\n"), options);
  return [`${whole.join("").trimEnd()}${isAdded ? `\n\n${rest}` : ""}`, ...files].join("\n\n");
}

async function runCommand(command: string, { harness, signal }: ExpandOptions): Promise<string> {
  if (!harness.toolset.registry.has("shell")) {
    throw new Error(`\`${command}\` cannot run: there is no tool "shell" here.`);
  }
  try {
    return modelText(await harness.callTool({ tool: "shell", args: { command }, signal }));
  } catch (error) {
    const reason = error instanceof DeniedError ? error.reason : errorMessage(error);
    throw new Error(`\`${command}\` was not run, and nothing was sent: ${reason}`, {
      cause: error,
    });
  }
}

async function readMentions(text: string, { harness, signal }: ExpandOptions): Promise<string[]> {
  const { env, registry } = harness.toolset;
  if (!registry.has("read")) return [];
  const named = [...text.matchAll(MENTION)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const paths = [...new Set(named)].filter((path) => isFile(resolve(env.workspace.root, path)));
  const texts: string[] = [];
  for (const path of paths.slice(0, MAX_FILES)) {
    const read = await harness.callTool({ tool: "read", args: { path }, signal });
    texts.push(`${path}:\n${modelText(read)}`);
  }
  return texts;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** A result as the model reads it. */
function modelText({ content }: AgentToolResult): string {
  const marked = markSources({ role: "user", content, timestamp: 0 });
  const blocks = typeof marked.content === "string" ? [] : marked.content;
  return blocks.map((block) => textOf({ content: [block] })).join("\n");
}
