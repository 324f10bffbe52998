import { isMotion, type Motion } from "./motions.ts";
import { isObject, type TextObject } from "./text-objects.ts";

/** What an operator works on. */
export type Target =
  | { readonly type: "motion"; readonly motion: Motion }
  | { readonly type: "object"; readonly object: TextObject }
  /** The operator was typed twice: lines. */
  | { readonly type: "lines" };

/** A command that was typed in full. */
export type Command = { readonly count?: number | undefined } & (
  | { readonly type: "motion"; readonly motion: Motion }
  /** Selects it, where something can be selected. */
  | { readonly type: "object"; readonly object: TextObject }
  | { readonly type: "operate"; readonly operator: string; readonly target: Target }
  | { readonly type: "action"; readonly key: string; readonly argument?: string | undefined }
);

/** What the typed keys are so far. */
export type Parsed =
  | { readonly type: "incomplete" }
  | { readonly type: "unknown" }
  | { readonly type: "complete"; readonly command: Command };

const OPERATORS: ReadonlySet<string> = new Set(["d", "c", "y", "g~", "gu", "gU"]);
/** Commands that are the same as an operator with a motion. */
const SHORT: Readonly<Record<string, readonly [string, string]>> = {
  x: ["d", "l"],
  delete: ["d", "l"],
  X: ["d", "h"],
  D: ["d", "$"],
  C: ["c", "$"],
  s: ["c", "l"],
};
const SHORT_LINES: Readonly<Record<string, string>> = { S: "c", Y: "y" };
const ACTIONS: ReadonlySet<string> = new Set([..."iaIAoOvVpPuJ.~".split(""), "ctrl+r"]);
/** In a selection letters are operators, or change what is selected. */
const SELECTION_ACTIONS: ReadonlySet<string> = new Set([
  ..."vVodxXDcCsSRyYpPJ~uU".split(""),
  ..."g~ gu gU delete".split(" "),
]);
const MAX_COUNT = 9_999;
const INCOMPLETE: Parsed = { type: "incomplete" };
const UNKNOWN: Parsed = { type: "unknown" };

/** Reads typed keys as a command. */
export function parseCommand(keys: readonly string[], isSelecting: boolean): Parsed {
  return new Reader(keys).read(isSelecting);
}

/** Whether the last keys are the text of a search. */
export function isSearching(keys: readonly string[]): boolean {
  const start = keys.findIndex((key) => key === "/" || key === "?");
  const before = start < 0 ? undefined : keys[start - 1];
  return start >= 0 && !/^[rfFtT]$/.test(before ?? "");
}

class Reader {
  readonly #keys: readonly string[];
  #at = 0;

  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  read(isSelecting: boolean): Parsed {
    const count = this.#count();
    const key = this.#key();
    if (key === undefined) return INCOMPLETE;
    if (isSelecting) {
      if (key === "i" || key === "a")
        return this.#object(key, (object) => ({ type: "object", object, count }));
      if (SELECTION_ACTIONS.has(key)) return complete({ type: "action", key, count });
    } else {
      if (OPERATORS.has(key)) return this.#operator(key, count);
      const short = SHORT[key];
      if (short) {
        const target: Target = { type: "motion", motion: { key: short[1] } };
        return complete({ type: "operate", operator: short[0], target, count });
      }
      const lines = SHORT_LINES[key];
      if (lines !== undefined) {
        return complete({ type: "operate", operator: lines, target: { type: "lines" }, count });
      }
      if (ACTIONS.has(key)) return complete({ type: "action", key, count });
    }
    if (key === "r") {
      const argument = this.#next();
      if (argument === undefined) return INCOMPLETE;
      return isLetter(argument) ? complete({ type: "action", key, argument, count }) : UNKNOWN;
    }
    return this.#motion(key, (motion) => ({ type: "motion", motion, count }));
  }

  #operator(operator: string, before: number | undefined): Parsed {
    const after = this.#count();
    const count =
      before === undefined && after === undefined
        ? undefined
        : Math.min(MAX_COUNT, (before ?? 1) * (after ?? 1));
    const key = this.#key();
    if (key === undefined) return INCOMPLETE;
    const build = (target: Target): Command => ({ type: "operate", operator, target, count });
    // `gUU` is `gUgU`, and `d_` is `dd`.
    if (key === operator || `g${key}` === operator || key === "_")
      return complete(build({ type: "lines" }));
    if (key === "i" || key === "a")
      return this.#object(key, (object) => build({ type: "object", object }));
    return this.#motion(key, (motion) => build({ type: "motion", motion }));
  }

  #motion(key: string, build: (motion: Motion) => Command): Parsed {
    if (!isMotion(key)) return UNKNOWN;
    if (/^[fFtT]$/.test(key)) {
      const argument = this.#next();
      if (argument === undefined) return INCOMPLETE;
      return isLetter(argument) ? complete(build({ key, argument })) : UNKNOWN;
    }
    if (key !== "/" && key !== "?") return complete(build({ key }));
    const end = this.#keys.indexOf("enter", this.#at);
    if (end < 0) return INCOMPLETE;
    return complete(build({ key, argument: this.#keys.slice(this.#at, end).join("") }));
  }

  #object(first: string, build: (object: TextObject) => Command): Parsed {
    const key = this.#next();
    if (key === undefined) return INCOMPLETE;
    if (!isObject(key)) return UNKNOWN;
    return complete(build({ isAround: first === "a", key }));
  }

  /** The next key, with what follows a `g`. */
  #key(): string | undefined {
    const key = this.#next();
    if (key !== "g") return key;
    const second = this.#next();
    return second === undefined ? undefined : `g${second}`;
  }

  #next(): string | undefined {
    return this.#keys[this.#at++];
  }

  #count(): number | undefined {
    let digits = "";
    for (;;) {
      const key = this.#keys[this.#at] ?? "";
      if (!/^\d$/.test(key) || (digits === "" && key === "0")) break;
      digits += key;
      this.#at++;
    }
    return digits === "" ? undefined : Math.min(MAX_COUNT, Number(digits));
  }
}

function complete(command: Command): Parsed {
  return { type: "complete", command };
}

/** Keys with a name of their own (`enter`, `left`) are no letters. */
function isLetter(key: string): boolean {
  return !/^[a-z]{2}/i.test(key);
}
