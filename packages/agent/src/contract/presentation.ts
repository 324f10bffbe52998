import type { AgentToolResult } from "./types.ts";

/** What a tool does, as icons and editors distinguish tools. */
export type ToolKind =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "think"
  | "fetch"
  | "other";

/** A place in a file that a call reads or changes, as the model wrote the path. */
export interface ToolLocation {
  path: string;
  /** Counted from 1. */
  line?: number;
}

/** What a call does to the world, as far as its arguments say. */
export interface ToolEffects {
  /** It reads files, or searches them. */
  reads?: boolean;
  /** Paths that it changes if it succeeds, as the model wrote them, and no others. */
  changes?: readonly string[];
  /** The command line that it runs. */
  command?: string;
}

/** What became of one file. */
export interface FileChange {
  path: string;
  movedTo?: string;
  isDeleted?: boolean;
  /** Where the first change is now, counted from 1. */
  firstLine?: number;
  /** The change as a unified diff, or as the whole text before and after. */
  change: { diff: string } | { oldText?: string; newText: string };
}

/** What people are shown of a result. */
export interface ResultSummary {
  /** One line: "12 matches in 3 files". */
  summary?: string;
  /** The model got a part of what there is; the summary says which. */
  isPartial?: boolean;
  /** Short facts beside the name of the call: "exit 1", "+3 -1". */
  facts?: readonly string[];
  /**
   * Lines that it found or printed. `list`: the summary names the first of them (`names`,
   * where these are shorter than the lines). `head` and `tail`: which end matters where there
   * is no room for all. `total`: how many there are, where `all` lacks some.
   */
  lines?: {
    all: readonly string[];
    keep: "list" | "head" | "tail";
    names?: readonly string[];
    total?: number;
  };
  changes?: readonly FileChange[];
}

/** What a call would change, for the person who is asked to approve it. */
export type ProposedChange =
  | { type: "write"; path: string; newText: string }
  | { type: "edit"; path: string; edits: readonly { oldText: string; newText: string }[] }
  | { type: "patch"; text: string };

type Args = Readonly<Record<string, unknown>>;

/**
 * A tool's own description of its calls. Terminal, editors, permissions, compaction and
 * rewind ask it, and know no tool by name. Arguments come as the model sent them, not
 * validated, and results may come from a file that anybody wrote: every function checks
 * what it reads. A function that throws is treated as absent.
 */
export interface ToolPresentation {
  kind: ToolKind;
  /** The verb before the title of a call: "Read", "Search"; empty for a command. Default: the tool's name. */
  verb?: string;
  /** What a call is about: a path, a command. `quote` marks text that is to be shown literally. */
  title?(args: Args, quote: (text: string) => string): string;
  /** What a call is for, in the model's own words. */
  purpose?(args: Args): string;
  locations?(args: Args): readonly ToolLocation[];
  effects?(args: Args): ToolEffects;
  /** What the call would change. */
  proposal?(args: Args): ProposedChange | undefined;
  /** Its results are pages that say how to go on: a long one is truncated, never summarized. */
  paged?: boolean;
  /** Whether the text of its result is literal, not prose. */
  literal?: boolean;
  summarize?(result: Pick<AgentToolResult, "content" | "details" | "outcome">): ResultSummary;
  /** The tool only asks models, whose own calls are reported one by one. */
  delegates?: boolean;
  /** The call that this call stands for, where a tool calls another by name. */
  unwrap?(args: Args): { name: string; args: Args } | undefined;
}

/** A function of a presentation, contained: `undefined` where it is absent or throws. */
export function present<T>(describe: () => T | undefined): T | undefined {
  try {
    return describe();
  } catch {
    // A tool that cannot describe a call must not take the screen down; its arguments are shown.
    return undefined;
  }
}
