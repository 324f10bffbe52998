/** The next number from 0 up to 1. */
type Random = () => number;

/** A text, where the cursor is in it (counted in code points), and keys as a terminal sends them. */
export interface VimCase {
  readonly text: readonly string[];
  readonly line: number;
  readonly column: number;
  readonly keys: string;
}

export const ESCAPE = "\x1b";
export const ENTER = "\r";
export const REDO = "\x12";

const WORDS = [
  ...["foo", "bar-baz", "a", "x.y", "(one two)", '"q r"', "f(a, b)", "Word", "=="],
  ...["中文", "é", "[1]", "{z}", "end.", "'q'"],
];
/*
 * What is left out: `{`, which goes to the end of a text of one line in some versions of vim; motions that may cover
 * nothing behind operators that change letters or copy, as these then change one, or empty what was copied; counts of
 * `$`, `}`, `C`, `D`, `.` and words as objects, which do something though they fail; paragraphs in a selection, which
 * grow in several ways, and `p` over one.
 */
const MOTIONS = "h j k l w b e W B E ge gE 0 ^ $ gg G fa fo t( Fo Ta ; , } % n N _".split(" ");
const SURE_MOTIONS = "w e $ l j k G E W".split(" ");
const OBJECTS = ["w", "W", '"', "(", "[", "{", "p", "b", "'"];
const SELECTABLE = OBJECTS.filter((key) => key !== "p");
const INSERTED = ["x", "hey ", "a b", "W"];
const ACTIONS = "x X D C s S Y p P p ~ u u i a I A o O rz".split(" ");
/** What `.` repeats anywhere: others may fail there, and vim would take the text that was inserted for commands. */
const REPEATABLE = "x D ~ C s i a I A o O".split(" ");
const INSERTING = /[CsSiaIAoO]/;
const SELECTION_ACTIONS = ["d", "y", "c", "x", "~", "u", "U", "J", "rz", "o", "D", "Y", "C"];
/** Which end of empty quotes is the first depends on where the cursor was. */
const OBJECT_ACTIONS = SELECTION_ACTIONS.filter((key) => key !== "o");
const MAX_LINES = 5;
const MAX_WORDS = 5;
const MAX_COMMANDS = 6;
const MAX_COUNT = 3;

/** A text and keys at random. */
export function createVimCase(next: Random): VimCase {
  const pick = <T>(from: readonly [T, ...T[]] | readonly T[]): T => {
    const found = from[Math.floor(next() * from.length)];
    if (found === undefined) throw new Error("There is nothing to pick from.");
    return found;
  };
  const upTo = (most: number): number => 1 + Math.floor(next() * most);
  const createLine = (): string => {
    const kind = next();
    if (kind < 0.2) return kind < 0.15 ? "" : "  ";
    const words = Array.from({ length: upTo(MAX_WORDS) }, () => pick(WORDS));
    return `${next() < 0.25 ? "  " : ""}${words.join(pick([" ", " ", "  "]))}${next() < 0.1 ? " " : ""}`;
  };
  const text = [...Array.from({ length: upTo(MAX_LINES) - 1 }, createLine), pick(WORDS)];
  const line = Math.floor(next() * text.length);
  const column = Math.floor(next() * [...(text[line] ?? "")].length);

  const count = (): string => (next() < 0.25 ? String(upTo(MAX_COUNT)) : "");
  const motion = (): string =>
    next() < 0.07 ? `/${pick(["a", "o", "foo", "b"])}${ENTER}` : pick(MOTIONS);
  const counted = (key: string): string => ("0$}".includes(key) ? key : count() + key);
  const object = (): string => pick(["i", "a"]) + pick(OBJECTS);
  const insertion = (): string => pick(INSERTED) + ESCAPE;
  let isRepeatable = true;
  const operation = (): string => {
    isRepeatable = false;
    const operator = pick(["d", "c", "y", "d", "c", "gu", "g~", "gU"]);
    const end = operator === "c" ? insertion() + ESCAPE : "";
    const kind = next();
    if (kind < 0.2) return count() + operator + operator.slice(-1) + end;
    if (kind < 0.5) {
      const target = object();
      return operator + (/[wW]/.test(target) ? "" : count()) + target + end;
    }
    const target = /^[gy]/.test(operator) ? pick(SURE_MOTIONS) : motion();
    return ("$}".includes(target) ? "" : count()) + operator + counted(target) + end;
  };
  const selection = (): string => {
    isRepeatable = false;
    const moves = Array.from({ length: Math.floor(next() * 3) }, () => counted(motion())).join("");
    const isObject = next() < 0.3;
    const action = pick(isObject ? OBJECT_ACTIONS : SELECTION_ACTIONS);
    const end = /[cC]/.test(action) ? insertion() + ESCAPE : ESCAPE;
    const selected = isObject ? pick(["i", "a"]) + pick(SELECTABLE) : moves;
    return pick(["v", "V"]) + selected + action + end;
  };
  const action = (): string => {
    const kind = next();
    if (kind < 0.06) return "J";
    if (kind < 0.1) return count() + REDO;
    if (kind < 0.22 && isRepeatable) return ".";
    const key = pick(ACTIONS);
    if (!/^[uYp]$/i.test(key)) isRepeatable = REPEATABLE.includes(key);
    return (/^[CD]$/.test(key) ? "" : count()) + key + (INSERTING.test(key) ? insertion() : "");
  };
  const command = (): string => {
    const kind = next();
    if (kind < 0.3) return counted(motion());
    if (kind < 0.65) return operation();
    return kind < 0.88 ? action() : selection();
  };
  // The first keys give `p` something to put and `.` something to repeat.
  const commands = Array.from({ length: upTo(MAX_COMMANDS) }, command);
  return { text, line, column, keys: `iq${ESCAPE}vyu${commands.join("")}${ESCAPE}` };
}
