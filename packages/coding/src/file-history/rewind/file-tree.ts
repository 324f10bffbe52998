import { type Session, SessionError } from "@gyre/sessions";
import type { FileChange, FilePlace, FileState, HistoryLine, LineAuthor } from "../lines/line.ts";

/** A place in the tree of a session. */
export type TreePlace = Exclude<FilePlace, { line: number }>;

/** What files need of a session. */
export type PlacedSession = Pick<Session, "findBranch" | "leaf">;

/** A change, and where it stands in the history. */
export interface TracedChange {
  by: LineAuthor;
  /** Of its line. */
  index: number;
  change: FileChange;
}

/** What the session has left in a file, and the changes that made it. */
export interface LeftFile {
  state: FileState | null;
  made: readonly TracedChange[];
}

type Chains = ReadonlyMap<string, readonly TracedChange[]>;

/** Those that say what files are at a place of the tree. A rewind moves files; the places stay as they are. */
const OF_TREE: ReadonlySet<LineAuthor> = new Set(["agent", "user", "carried", "rival"]);
/** Those after which the files of the folder are what the lines say. */
const OF_FOLDER: ReadonlySet<LineAuthor> = new Set(["agent", "user", "carried", "rewind"]);
/** What a place before a prompt has of the lines of the prompt. */
const BEFORE_PROMPT: ReadonlySet<LineAuthor> = new Set(["user", "carried"]);
/** The position of what was done before the first message. */
const AT_START = -1;

/**
 * The files of all places of a session, by its history. At a place a file is what the last change on the way to it
 * made of it; where there is none, what it was before the first change that is known.
 */
export class FileTree {
  readonly #lines: readonly HistoryLine[];
  readonly #session: PlacedSession;
  /** What files were before the first change. */
  readonly #firsts = new Map<string, FileState | null>();
  /** The lines that changed a file in the folder. */
  readonly #inFolder = new Map<string, TracedChange[]>();
  readonly #chains = new Map<string, Chains>();

  constructor(lines: readonly HistoryLine[], session: PlacedSession) {
    this.#lines = lines;
    this.#session = session;
    for (const [index, { by, changes }] of lines.entries()) {
      if (by === "intent") continue;
      for (const change of changes) {
        const { path, before } = change;
        if (!this.#firsts.has(path)) this.#firsts.set(path, before);
        if (OF_FOLDER.has(by)) push(this.#inFolder, path, { by, index, change });
      }
    }
  }

  /** All files that were ever changed. */
  get paths(): readonly string[] {
    return [...this.#firsts.keys()];
  }

  has(path: string): boolean {
    return this.#firsts.has(path);
  }

  /** What a file is at a place; null: it is not there. */
  stateAt(path: string, place: TreePlace): FileState | null {
    const last = this.changesAt(path, place).at(-1);
    return last ? last.change.after : (this.#firsts.get(path) ?? null);
  }

  /** The changes of a file on the way to a place, in order. */
  changesAt(path: string, place: TreePlace): readonly TracedChange[] {
    return this.#chainsAt(place).get(path) ?? [];
  }

  /** What the session has left in a file of the folder, before a line of the history. */
  findLeft(path: string, until: number = Infinity): LeftFile {
    const last = this.#inFolder.get(path)?.findLast(({ index }) => index < until);
    const line = last && this.#lines[last.index];
    if (!last || !line) return { state: this.#firsts.get(path) ?? null, made: [] };
    return { state: last.change.after, made: this.#findMade(path, line, last.index) };
  }

  #findMade(path: string, line: HistoryLine, index: number): readonly TracedChange[] {
    const { by, to } = line;
    if (to && "line" in to) return this.findLeft(path, Math.min(to.line, index)).made;
    const place = by === "rewind" ? to : { after: findPlace(line) };
    if (place && this.#findBranch(place)) return this.changesAt(path, place);
    // Which place it was is not known, or lost: all that came before may be in it.
    return (this.#inFolder.get(path) ?? []).filter((each) => each.index <= index);
  }

  /** The entries from the first to a place; undefined where the session does not have it. */
  #findBranch(place: TreePlace): readonly number[] | undefined {
    const end = "before" in place ? place.before : place.after;
    if (end === null) return [];
    try {
      return this.#session.findBranch(end);
    } catch (error) {
      if (error instanceof SessionError && error.code === "not_found") return undefined;
      throw error;
    }
  }

  /** The lines on the way to a place. */
  linesAt(place: TreePlace): HistoryLine[] {
    const order = this.#findOrder(place);
    return this.#lines.filter((line) => order(line) !== undefined);
  }

  #chainsAt(place: TreePlace): Chains {
    const key = JSON.stringify(place);
    const known = this.#chains.get(key);
    if (known) return known;
    const order = this.#findOrder(place);
    const lines = this.#lines.flatMap((line, index) => {
      const position = order(line);
      return position === undefined ? [] : [{ line, index, position }];
    });
    lines.sort((a, b) => a.position - b.position || a.index - b.index);
    const chains = new Map<string, TracedChange[]>();
    for (const { line, index } of lines) {
      for (const change of line.changes) {
        push(chains, change.path, { by: line.by, index, change });
      }
    }
    this.#chains.set(key, chains);
    return chains;
  }

  /** Where a line stands on the way to a place; undefined: on none of it. */
  #findOrder(place: TreePlace): (line: HistoryLine) => number | undefined {
    const ids = this.#findBranch(place) ?? [];
    const positions = new Map(ids.map((id, position) => [id, position]));
    return (line) => {
      if (!OF_TREE.has(line.by)) return undefined;
      const at = findPlace(line);
      if ("before" in place && at === place.before && !BEFORE_PROMPT.has(line.by)) return undefined;
      return at === null ? AT_START : positions.get(at);
    };
  }
}

/** The entry after which something was done; null: before the first. */
function findPlace({ entry, leaf = entry }: HistoryLine): number | null {
  return leaf === 0 ? null : leaf;
}

function push<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
