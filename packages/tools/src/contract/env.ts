import type { Clock, FileContent } from "@gyre/ai";
import { DEFAULT_PAGE_TOKENS, type PageLimits } from "../text/truncate.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { SeenFiles } from "../workspace/seen.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** What our tools work with. One for an agent; its sub-agents share it. */
export interface ToolEnv {
  workspace: Workspace;
  seen: SeenFiles;
  /**
   * Around every program that a tool starts. Asked for when one is about to be: to try a
   * sandbox out takes a process. Rejects where there is none; nothing is started then.
   */
  sandbox: () => Promise<Sandbox>;
  /** A folder of this agent's own (0700) for what is too long to keep in memory. */
  spoolFolder: string;
  /** The /tmp of sandboxed commands, kept from one to the next; made by the first. Without it each has its own. */
  temporary?: { folder: string; maxBytes: number };
  /** Environment variables for programs: already clean. */
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  /** The most tokens that a page of a result may take. Default `DEFAULT_PAGE_TOKENS`. */
  pageTokens?: () => number;
  /** The whole of a long result of which the conversation has a short form, by its key. */
  kept?: (key: string) => Promise<string | undefined>;
  /**
   * Why the model does not get a file that is no text; undefined if it does. Without it, it gets images
   * alone.
   */
  explainFile?: (file: FileContent) => Promise<string | undefined>;
  /** Has work done when the toolset is closed, once for each key. */
  onClose?: (key: object, work: () => Promise<void>) => void;
}

/** A page of at most so many bytes, and of no more tokens than a result may take. */
export function limitPage(
  { pageTokens }: Pick<ToolEnv, "pageTokens">,
  maxBytes: number,
): PageLimits {
  const maxTokens = Math.min(pageTokens?.() ?? DEFAULT_PAGE_TOKENS, DEFAULT_PAGE_TOKENS);
  return { maxBytes, maxTokens };
}
