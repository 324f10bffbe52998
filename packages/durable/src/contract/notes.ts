import { isRecord } from "@gyre/ai";
import type { Entry } from "@gyre/sessions";

/** An entry of the log for those that follow a session: an agent does not read it. */
interface Note {
  readonly type: "custom";
  readonly kind: string;
  readonly data: unknown;
}

const DESCRIPTIONS = "tool_descriptions";
const COMPACTED = "compacted";
const REWRITE = "rewrite";

/** The descriptions of tools, by their names: those of the settings that follow. */
export function toDescriptionsEntry(
  tools: readonly { readonly name: string; readonly description: string }[],
): Note {
  const data = Object.fromEntries(tools.map(({ name, description }) => [name, description]));
  return { type: "custom", kind: DESCRIPTIONS, data };
}

export function readDescriptions(entry: Entry): Readonly<Record<string, string>> | undefined {
  return readNote(entry, DESCRIPTIONS) as Readonly<Record<string, string>> | undefined;
}

/** What the event of the compaction before it has, beside what that entry says. */
export interface CompactionNote {
  readonly before: number;
  readonly after: number;
  readonly reason: string;
  readonly from: number;
  readonly to: number;
}

export function toCompactionEntry(note: CompactionNote): Note {
  return { type: "custom", kind: COMPACTED, data: note };
}

export function readCompaction(entry: Entry): CompactionNote | undefined {
  return readNote(entry, COMPACTED) as CompactionNote | undefined;
}

/** What follows, up to the answer of its request, takes the place of the whole transcript. */
export interface RewriteNote {
  /** Usage and the last error are forgotten, too. */
  readonly isReset: boolean;
}

export function toRewriteEntry(note: RewriteNote): Note {
  return { type: "custom", kind: REWRITE, data: note };
}

export function readRewrite(entry: Entry): RewriteNote | undefined {
  return readNote(entry, REWRITE) as RewriteNote | undefined;
}

function readNote(entry: Entry, kind: string): unknown {
  if (entry.type !== "custom" || entry.kind !== kind) return undefined;
  return isRecord(entry.data) ? entry.data : undefined;
}
