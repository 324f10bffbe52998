/** A piece of a call's arguments: where in them, and what. Exactly one value is there. */
export interface PartialArg {
  /** `$.a.b[0]['c d']` */
  jsonPath?: string;
  stringValue?: string;
  numberValue?: number;
  boolValue?: boolean;
  nullValue?: unknown;
  /** More of the same string follows. */
  willContinue?: boolean;
}

type Step = string | number;

/** One object or array that is still open: where in it the writer is, and what it has. */
interface Container {
  /** The key or index of the last child. */
  at: Step;
  keys: Set<Step>;
}

/**
 * Turns the pieces of a call's arguments into the JSON text that they are pieces of,
 * so that the text grows as they come. Pieces come in the order of the text. One that
 * does not fit breaks the text: it is then never closed, and so never parses.
 */
export class ArgumentsWriter {
  readonly #open: Container[] = [];
  #began = false;
  #broken = false;
  #inString = false;
  #goesOn = false;

  /** The text that one more piece adds. Its cost depends on the piece alone. */
  add(arg: PartialArg): string {
    const head = this.#began ? "" : "{";
    this.#began = true;
    if (this.#broken) return head;
    const path = parseSteps(arg.jsonPath ?? "");
    const value = readValue(arg);
    const isNext = path !== undefined && this.#isSame(path);
    // The end of a string, or the announcement of one, may come without a value.
    if (value === undefined && (isNext || arg.willContinue)) {
      this.#goesOn = arg.willContinue === true;
      return head;
    }
    if (isNext && this.#inString && arg.stringValue !== undefined) {
      this.#goesOn = arg.willContinue === true;
      return head + escaped(arg.stringValue);
    }
    const way = path === undefined || value === undefined ? undefined : this.#moveTo(path);
    if (way === undefined) {
      this.#broken = true;
      return head;
    }
    this.#inString = arg.stringValue !== undefined;
    this.#goesOn = this.#inString && arg.willContinue === true;
    return head + way + value;
  }

  get began(): boolean {
    return this.#began;
  }

  /** What closes the text: nothing where it has not begun, or cannot be whole. */
  close(): string {
    if (!this.#began || this.#broken || this.#goesOn) return "";
    return this.#endString() + (this.#closeTo(0) || "}");
  }

  #isSame(path: readonly Step[]): boolean {
    return path.length === this.#open.length && path.every((step, i) => step === this.#open[i]?.at);
  }

  /** The text between the last value and the one at `path`; nothing if there is no such way. */
  #moveTo(path: readonly Step[]): string | undefined {
    let depth = 0;
    while (depth < path.length && this.#open[depth]?.at === path[depth]) depth++;
    const step = path[depth];
    // It would be what is written already, or inside of it.
    if (step === undefined || (depth > 0 && depth === this.#open.length)) return undefined;
    let text = this.#endString() + this.#closeTo(depth + 1);
    const shared = this.#open[depth];
    if (shared) {
      if (!mayFollow(step, shared)) return undefined;
      shared.at = step;
      shared.keys.add(step);
      text += `,${label(step)}`;
    }
    for (let at = this.#open.length; at < path.length; at++) {
      const first = path[at];
      // The arguments are an object, and an array begins at its beginning.
      if (first === undefined || (typeof first === "number" && (at === 0 || first > 0))) {
        return undefined;
      }
      this.#open.push({ at: first, keys: new Set([first]) });
      text += (at === 0 ? "" : opening(first)) + label(first);
    }
    return text;
  }

  #endString(): string {
    const quote = this.#inString ? '"' : "";
    this.#inString = false;
    return quote;
  }

  /** Closes containers until `depth` of them are open; the outermost last. */
  #closeTo(depth: number): string {
    let text = "";
    while (this.#open.length > depth) {
      text += typeof this.#open.pop()?.at === "number" ? "]" : "}";
    }
    return text;
  }
}

function mayFollow(step: Step, { at, keys }: Container): boolean {
  if (typeof step === "number") return typeof at === "number" && step === at + 1;
  return typeof at === "string" && !keys.has(step);
}

function opening(step: Step): string {
  return typeof step === "number" ? "[" : "{";
}

function label(step: Step): string {
  return typeof step === "number" ? "" : `${JSON.stringify(step)}:`;
}

/** The text of a value; that of a string without its end. */
function readValue({
  boolValue,
  numberValue,
  stringValue,
  ...rest
}: PartialArg): string | undefined {
  if (stringValue !== undefined) return `"${escaped(stringValue)}`;
  if (numberValue !== undefined || boolValue !== undefined) {
    return JSON.stringify(numberValue ?? boolValue);
  }
  return "nullValue" in rest ? "null" : undefined;
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const STEP = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** The steps of a path; nothing if it is no path of names and indexes. */
function parseSteps(path: string): Step[] | undefined {
  if (!path.startsWith("$")) return undefined;
  const steps: Step[] = [];
  let from = 1;
  while (from < path.length) {
    STEP.lastIndex = from;
    const found = STEP.exec(path);
    if (!found) return undefined;
    const [all, name, index, single, double] = found;
    from += all.length;
    if (index !== undefined) steps.push(Number(index));
    else steps.push(name ?? unescaped(single ?? double ?? ""));
  }
  return steps;
}

const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function unescaped(name: string): string {
  return name.replace(/\\(?:u([\da-fA-F]{4})|(.))/gs, (_, hex?: string, char = "") =>
    hex === undefined ? (ESCAPES[char] ?? char) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
