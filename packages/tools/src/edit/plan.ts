import { alignLines } from "./align.ts";
import { EditError } from "./error.ts";
import {
  type Edit,
  type EditMatch,
  EditedText,
  findMatch,
  type LineRange,
  MAX_REPORTED_PLACES,
  type MatchOutcome,
  type Tolerance,
} from "./match.ts";
import { MAX_LOOKED_AT_CHARS, nearestPlace, showNearPlace } from "./miss.ts";
import { BYTE_ORDER_MARK, type Line, lineAt, splitLines } from "../text/line-ends.ts";

/** Found only by these, the agent has to have read the file: its own words are no proof. */
const NEEDS_READING: ReadonlySet<Tolerance> = new Set([
  "punctuation",
  "line numbers",
  "indentation",
]);

export interface EditedFile {
  /** As it is called in messages. */
  path: string;
  content: EditedText;
  /** The agent has read or written it. */
  isRead: boolean;
  /** What it saw then, where that is something else than is there now. */
  seen?: EditedText;
}

/** A file to edit. `seen`: what the agent last saw of it, if it did. */
export function editedFile(path: string, text: string, seen?: string): EditedFile {
  // A file that is noted by reading it may have lost its byte order mark.
  const isChanged = seen !== undefined && withoutMark(seen) !== withoutMark(text);
  return {
    path,
    content: new EditedText(text),
    isRead: seen !== undefined,
    ...(isChanged && { seen: new EditedText(seen) }),
  };
}

function withoutMark(text: string): string {
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
}

/** An edit with its place. */
export interface PlacedEdit extends EditMatch {
  /** How the edit is called in messages. */
  name: string;
}

export interface AppliedEdit {
  name: string;
  tolerance: Tolerance;
  /** What was replaced, as offsets in the file before. */
  start: number;
  end: number;
  /** How many more characters are there now. */
  grown: number;
  /** The lines in the file after. */
  lines: LineRange;
}

/** What a file becomes. */
export interface EditPlan {
  content: string;
  /** In the order of the file. */
  edits: AppliedEdit[];
  /** The file is not what the agent saw, at other places than these. */
  isChangedElsewhere: boolean;
}

/**
 * What becomes of a file by edits that are all meant for it as it is now. All of them
 * or, as an `EditError`, none: each has to have one place, and no two may overlap.
 */
export function planEdits(file: EditedFile, edits: readonly Edit[]): EditPlan {
  const placed = edits.map((edit, index): PlacedEdit => {
    const name = edits.length === 1 ? "the edit" : `edits[${index}]`;
    checkEdit(edit, name);
    const match = onlyMatch(file, edit, `oldText of ${name}`, (text) => findMatch(text, edit));
    return { ...match, name };
  });
  return planPlaced(file, placed);
}

function checkEdit({ oldText, newText }: Edit, name: string): void {
  if (oldText === "") {
    throw new EditError(
      "empty",
      `oldText of ${name} is empty. To insert, repeat a neighboring line in oldText and in ` +
        "newText; to replace a whole file, use the write tool.",
    );
  }
  if (oldText === newText) {
    throw new EditError("same", `oldText and newText of ${name} are the same: nothing to change.`);
  }
  checkText(newText, `newText of ${name}`);
}

/** Half of a character cannot be written: it would become another one. */
export function checkText(text: string, what: string): void {
  if (/\p{Surrogate}/u.test(text)) {
    throw new EditError(
      "invalid",
      `${what} has half of a surrogate pair. Write the character whole.`,
    );
  }
}

/**
 * The one place that `search` finds, or an error that says what is there instead. `what`
 * is how the old text is called in messages.
 */
export function onlyMatch(
  file: EditedFile,
  edit: Edit,
  what: string,
  search: (text: EditedText) => MatchOutcome,
): EditMatch {
  const outcome = search(file.content);
  if (outcome.type === "several") throw ambiguous(file, what, outcome);
  if (outcome.type === "missing") throw missing(file, edit, what);
  const { match } = outcome;
  if (!file.isRead && NEEDS_READING.has(match.tolerance)) {
    throw new EditError(
      "unread",
      `${what} is not in ${file.path} as written; it is but for ${match.tolerance}, and you have not ` +
        "read this file. Read it, then edit.",
    );
  }
  // One of several that are no longer alike: it is unknown which one was meant.
  if (file.seen && search(file.seen).type === "several") {
    throw new EditError(
      "changed",
      `${file.path} has changed since you read it: then ${what} was at more than one place. ` +
        "Read it again, then edit.",
    );
  }
  return match;
}

function ambiguous(
  { path }: EditedFile,
  what: string,
  { places, tolerance }: Extract<MatchOutcome, { type: "several" }>,
): EditError {
  const listed = places.slice(0, MAX_REPORTED_PLACES).map(lineRange).join(", ");
  const more = places.length > MAX_REPORTED_PLACES ? " and more" : "";
  const but = tolerance === "exact" ? "" : ` (but for ${tolerance})`;
  return new EditError(
    "ambiguous",
    `${what} is at more than one place in ${path}${but}: lines ${listed}${more}. ` +
      "Add neighboring lines to it until it is at one.",
  );
}

function missing({ path, content, seen }: EditedFile, edit: Edit, what: string): EditError {
  const old = splitLines(edit.oldText);
  const near = nearestPlace(content.lines, old);
  const changed = seen ? " The file has changed since you read it: read it again." : "";
  const beyond =
    content.text.length > MAX_LOOKED_AT_CHARS
      ? " in the first part of the file, which is long"
      : "";
  const shown = near
    ? `The nearest place${beyond} is at line ${Math.max(near.line, 0) + 1}; ${showNearPlace(content.lines, old, near)}\n` +
      "Nothing was changed. Copy it from the file exactly."
    : `Nothing in it${beyond} is near. Read the file again.`;
  return new EditError("missing", `${what} is not in ${path}.${changed} ${shown}`);
}

/** The same for edits whose places are found already. */
export function planPlaced(file: EditedFile, placed: readonly PlacedEdit[]): EditPlan {
  const edits = placed.toSorted((a, b) => a.start - b.start || a.end - b.end);
  checkOverlaps(file, edits);
  const isChangedElsewhere = checkUnchanged(file, edits);

  const { text } = file.content;
  const parts: string[] = [];
  const starts: number[] = [];
  let length = 0;
  let kept = 0;
  for (const { start, end, replacement } of edits) {
    parts.push(text.slice(kept, start), replacement);
    length += start - kept;
    starts.push(length);
    length += replacement.length;
    kept = end;
  }
  parts.push(text.slice(kept));
  const content = parts.join("");
  if (content === text) {
    throw new EditError(
      "same",
      `${file.path} has it already: where oldText is found, newText is the same as the file.`,
    );
  }
  const lines = splitLines(content);
  const applied = edits.map(({ name, tolerance, start, end, replacement }, index): AppliedEdit => {
    const at = starts[index] ?? 0;
    const last = lineAt(lines, Math.max(at, at + replacement.length - 1)) + 1;
    const range = { first: lineAt(lines, at) + 1, last };
    return { name, tolerance, start, end, grown: replacement.length + start - end, lines: range };
  });
  return { content, edits: applied, isChangedElsewhere };
}

function checkOverlaps({ path, content }: EditedFile, edits: readonly PlacedEdit[]): void {
  edits.forEach((edit, index) => {
    const before = edits[index - 1];
    if (!before || before.end <= edit.start) return;
    throw new EditError(
      "overlap",
      `${before.name} and ${edit.name} overlap in ${path}: lines ${lineRange(content.findLines(before))} ` +
        `and ${lineRange(content.findLines(edit))}. Make one edit of them.`,
    );
  });
}

/**
 * Fails where the lines of an edit are not as the agent saw them. True where the file
 * has changed, but elsewhere.
 */
function checkUnchanged(
  { path, content, seen }: EditedFile,
  edits: readonly PlacedEdit[],
): boolean {
  if (!seen) return false;
  const bytes = (line: Line): string => line.text + line.end;
  const aligned = alignLines(seen.lines.map(bytes), content.lines.map(bytes));
  for (const edit of edits) {
    const { first, last } = content.findLines(edit);
    const from = aligned[first - 1] ?? -1;
    for (let index = first - 1; index < last; index++) {
      if (from >= 0 && aligned[index] === from + index + 1 - first) continue;
      throw new EditError(
        "changed",
        `${path} has changed since you read it, and line ${index + 1}, which ${edit.name} is about, ` +
          "is not what you saw. Nothing was changed. Read it again, then edit.",
      );
    }
  }
  return true;
}

/** "12" or "12-14". */
export function lineRange({ first, last }: LineRange): string {
  return last <= first ? String(first) : `${first}-${last}`;
}
