import { errorMessage } from "@gyre/ai";

/** A pattern that cannot be used; the message says why, and what to write instead. */
export class PatternError extends Error {
  readonly code = "bad_pattern";
  constructor(pattern: string, problem: string) {
    super(
      `The pattern ${JSON.stringify(pattern)} is no regular expression that works here: ${problem} ` +
        "Escape what is meant as it is with \\, or set literal to true.",
    );
    this.name = "PatternError";
  }
}

export interface PatternOptions {
  ignoreCase?: boolean;
  /** The pattern is text to look for, not a regular expression. */
  literal?: boolean;
}

/** Throws on a pattern with line ends: lines are searched one at a time. */
export function checkPattern(pattern: string, literal: boolean): void {
  const hasLineEnd = literal
    ? /[\n\r]/.test(pattern)
    : /[\n\r]|^(?:[^\\]|\\[^])*?\\[nr]/.test(pattern);
  if (hasLineEnd) {
    throw new PatternError(
      pattern,
      "it has a line end in it, and lines are searched one at a time.",
    );
  }
}

/**
 * A pattern as a regular expression of JavaScript, for where there is no ripgrep. The two
 * languages agree on what most patterns use; where they differ, JavaScript's meaning holds.
 */
export function toRegExp(pattern: string, options: PatternOptions = {}): RegExp {
  const { literal = false, ignoreCase = false } = options;
  checkPattern(pattern, literal);
  const source = literal ? pattern.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`) : pattern;
  try {
    return new RegExp(source, ignoreCase ? "i" : "");
  } catch (error) {
    throw new PatternError(pattern, `${errorMessage(error)}.`);
  }
}
