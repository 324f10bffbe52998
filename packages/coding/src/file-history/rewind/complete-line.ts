import { type FileChange, type HistoryLine, isSameState } from "../lines/line.ts";
import { findDoubt } from "./doubt.ts";
import { FileTree, type PlacedSession, type TreePlace } from "./file-tree.ts";

/** What is known of a line beside itself. */
export interface LineContext {
  /** It was done in a copy that had the files of this place; without it, with those that the session has left. */
  base?: TreePlace | undefined;
  /** What others were seen to have changed before the prompt. */
  others?: readonly FileChange[];
}

/**
 * The lines that have to precede a new one, so that the changes on the way to each place follow from each other: what
 * others have changed before it, and what was left of other branches when the conversation went on elsewhere.
 */
export function findMissingLines(
  lines: readonly HistoryLine[],
  session: PlacedSession,
  line: HistoryLine,
  { base, others = [] }: LineContext = {},
): HistoryLine[] {
  const { entry, leaf = null } = line;
  const tree = new FileTree(lines, session);
  const place = { after: leaf };
  const isFirst = !lines.some((each) => each.entry === entry && isOfPrompt(each));
  const prompt = entry === 0 ? null : entry;
  const changed = [...others, ...line.changes].map(({ path }) => path);
  const paths = isFirst ? tree.paths : changed;
  const carried = new Map<string, FileChange>();
  for (const path of paths) {
    if (!tree.has(path)) continue;
    const before = tree.stateAt(path, place);
    const { state: after, made } = base
      ? { state: tree.stateAt(path, base), made: tree.changesAt(path, base) }
      : tree.findLeft(path);
    if (isSameState(before, after)) continue;
    const here = new Set(tree.changesAt(path, place).map(({ change }) => change));
    const unsure = findDoubt(made.filter(({ change }) => !here.has(change)));
    carried.set(path, { path, before, after, ...(unsure !== undefined && { unsure }) });
  }
  const touched = new Set(
    lines
      .filter((each) => each.entry === entry && each.by === line.by)
      .flatMap(({ changes }) => changes.map(({ path }) => path)),
  );
  // What was seen before the prompt is theirs, and what the line itself did not find as it was left.
  const theirs = new Map(others.map(({ path, after }) => [path, after]));
  for (const { path, before } of line.changes) theirs.set(path, before);
  const byUser = [...theirs].flatMap(([path, after]) => {
    if (!tree.has(path)) return [];
    const known =
      carried.get(path)?.after ?? (carried.has(path) ? null : tree.stateAt(path, place));
    return isSameState(known, after) ? [] : [{ path, before: known, after }];
  });
  const at = { entry, at: line.at, leftOut: [] };
  const between = byUser.filter(({ path }) => touched.has(path));
  const ahead = byUser.filter(({ path }) => !touched.has(path));
  const all: HistoryLine[] = [
    { ...at, by: "carried", leaf: isFirst ? prompt : leaf, changes: [...carried.values()] },
    { ...at, by: "user", leaf: prompt, changes: ahead },
    // What became of a file of a copy meanwhile is no change of the folder.
    { ...at, by: line.by === "rival" ? "rival" : "user", leaf, changes: between },
  ];
  return all.filter(({ changes }) => changes.length > 0);
}

/** Whether a line was made for a prompt. */
function isOfPrompt({ by }: HistoryLine): boolean {
  return by !== "rewind" && by !== "intent";
}
