import type { AgentToolResult } from "@gyre/agent";
import { humanSize } from "@gyre/ai/text";
import { limitPage, type ToolEnv } from "../../contract/env.ts";
import { grouped, textResult } from "../../text/text.ts";
import { linesWithin, listedName } from "../../text/truncate.ts";
import { pathIn } from "../../workspace/ignore-files.ts";
import { type Entry, PathError } from "../../workspace/workspace.ts";
import { LS_MAX_BYTES, LS_MAX_ENTRIES, type LsDetails } from "./tool.ts";

const MAX_NAMED = 4;

/** Lists the entries of a folder from `first` on. */
export async function runLs(
  env: ToolEnv,
  folder: string,
  first: number,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const { path } = await env.workspace.resolve(folder, { outside: true });
  const entries = await env.workspace.list(folder);
  const name = listedName(path || ".");
  const total = entries.length;
  if (total === 0) return textResult(`${name} is an empty folder.`, details(path, 0, []));
  if (first > total) {
    throw new Error(`offset ${first} is past the end: ${name} has ${entryCount(total)}.`);
  }
  const lines: string[] = [];
  for (const entry of entries.slice(first - 1, first - 1 + LS_MAX_ENTRIES)) {
    signal.throwIfAborted();
    lines.push(await describe(env, path, entry));
  }
  const shown = linesWithin(lines, limitPage(env, LS_MAX_BYTES));
  const next = first + shown.length;
  const rest =
    next <= total
      ? `\n\n[Entries ${first}-${next - 1} of ${grouped(total)}. ` +
        `Use offset=${next} to continue, or find with a pattern.]`
      : "";
  return textResult(
    shown.join("\n") + rest,
    details(path, shown.length, entries.slice(first - 1), total),
  );
}

function details(
  path: string,
  shownEntries: number,
  from: readonly Entry[],
  totalEntries = from.length,
): LsDetails {
  const names = from
    .slice(0, MAX_NAMED)
    .map(({ name, kind }) => listedName(name) + (kind === "folder" ? "/" : ""));
  return { path, shownEntries, totalEntries, names };
}

function entryCount(count: number): string {
  return count === 1 ? "1 entry" : `${grouped(count)} entries`;
}

async function describe(env: ToolEnv, folder: string, entry: Entry): Promise<string> {
  const path = `./${pathIn(folder, entry.name)}`;
  const name = listedName(entry.name);
  try {
    switch (entry.kind) {
      case "folder":
        return `${name}/`;
      case "link": {
        const target = await env.workspace.resolve(path);
        const missing = target.exists ? "" : " (missing)";
        return `${name} -> ${listedName(target.path || ".")}${missing}`;
      }
      case "file": {
        const { size } = await env.workspace.stat(path);
        return `${name} (${humanSize(size)})`;
      }
      case "other":
        return `${name} (no regular file)`;
    }
  } catch (error) {
    if (!(error instanceof PathError)) throw error;
    if (entry.kind !== "link") return `${name} (${error.fault})`;
    return `${name} -> ${error.fault === "outside" ? "(outside of the workspace)" : `(${error.fault})`}`;
  }
}
