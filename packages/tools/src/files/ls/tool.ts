import { defineTool } from "@gyre/agent";
import type { GuardedTool } from "../../contract/access.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { pathIn } from "../../workspace/ignore-files.ts";
import { readPath, readAccess } from "../read-access.ts";
import { grouped, textResult } from "../../text/text.ts";
import { humanSize, linesWithin, listedName } from "../../text/truncate.ts";
import { type Entry, PathError } from "../../workspace/workspace.ts";
import { lsEntry } from "./entry.ts";

/** Entries of a folder that `ls` gives in one call. */
export const LS_MAX_ENTRIES = 500;
/** How long the entries that `ls` gives may be together, in bytes. */
export const LS_MAX_BYTES: number = 50 * 1024;

const MAX_NAMED = 4;

/** What a listing reports to the application. */
export interface LsDetails {
  path: string;
  shownEntries: number;
  totalEntries: number;
  /** The first few, for a summary. */
  names: readonly string[];
}

/** Lists a folder, hidden files included. */
export function lsTool(env: ToolEnv): GuardedTool {
  const tool = defineTool({
    name: lsEntry.name,
    presentation: lsEntry.presentation,
    label: "List",
    description:
      "List a folder: folders end with /, links show where they lead, files their size. " +
      `At most ${LS_MAX_ENTRIES} entries a call.`,
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "The folder; the workspace if absent" },
        offset: { type: "integer", minimum: 1, description: "First entry to show (1-based)" },
      },
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const { path } = await env.workspace.resolve(readPath(args));
      const entries = await env.workspace.list(readPath(args));
      const first = args.offset ?? 1;
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
      const shown = linesWithin(lines, LS_MAX_BYTES);
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
    },
  });
  return { ...tool, access: (args) => readAccess(env, "List", args) };
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
