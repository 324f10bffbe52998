/** One thing that a call did to a file in a layer over the workspace: it is not done yet. */
export interface ShownEffect {
  /** For `ApprovalAnswer.keep`. */
  id: number;
  /** Safe to show. */
  path: string;
  /** The path in the workspace, for rules; absent where the name is no text. Not safe to show. */
  target?: string;
  /**
   * `replace`: something else is there now, a link where a folder was, say. `mode`: the rights alone.
   * `special`: a pipe, a socket or a device, which is never kept.
   */
  kind: "create" | "modify" | "replace" | "mode" | "delete" | "special";
  /** What is there after it; of what was deleted, what was there. */
  type: "file" | "folder" | "link" | "special";
  /** Why it cannot be kept: the end of a sentence that begins with the path. */
  conflict?: string;
  /** What a person should know before it is kept: sentences, safe to show. Without any, and without a conflict, it is harmless. */
  notes: readonly string[];
  /** What was in a folder that is gone. */
  below?: number;
  /** Of a file whose rights alone change. */
  mode?: { from: number; to: number };
  /** Of a short text. Not safe to show. */
  texts?: { before: string; after: string };
}

/** What a command did in a layer over the workspace. */
export interface EffectsReport {
  /** Null where a signal or the end of its time ended it. */
  exitCode: number | null;
  timedOut: boolean;
  durationMs: number;
  /** Those that cannot be kept first, then those with notes. */
  effects: readonly ShownEffect[];
  /** How many more there are, where not all of them are listed. */
  omitted?: number;
  /** All of it can be undone, is of a usual size, and nothing of it runs later or leads elsewhere. */
  isHarmless: boolean;
}

/** A call that was made without an effect so far. */
export type Rehearsal =
  | {
      type: "ran";
      report: EffectsReport;
      /** The effects that `execute` with the same id is to keep. */
      choose(ids: readonly number[]): void;
      /** Throws away what is not kept. May be called at any time. */
      discard(): Promise<void>;
    }
  /** As a sentence that is safe to show. */
  | { type: "impossible"; why: string };
