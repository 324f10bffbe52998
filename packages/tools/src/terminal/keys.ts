const CONTROL_MASK = 0x1f;
const KEYS: Readonly<Record<string, string>> = {
  enter: "\r",
  tab: "\t",
  esc: "\x1b",
  escape: "\x1b",
  backspace: "\x7f",
  space: " ",
  lt: "<",
  up: "\x1b[A",
  down: "\x1b[B",
  right: "\x1b[C",
  left: "\x1b[D",
  home: "\x1b[H",
  end: "\x1b[F",
  insert: "\x1b[2~",
  delete: "\x1b[3~",
  pageup: "\x1b[5~",
  pagedown: "\x1b[6~",
  "shift+tab": "\x1b[Z",
};
/** Of these keys, as programs read them that have asked for application keys. */
const APPLICATION: ReadonlySet<string> = new Set(["up", "down", "right", "left", "home", "end"]);
const KEY = /<([a-z]+|(?:ctrl|alt|shift)\+(?:[a-z]+|[^\s<>]))>/gi;
/** Keys that end or interrupt a program, or what it reads. */
const INTERRUPTION = /^(?:<ctrl\+[cd\\]>)+$/i;

export interface KeyOptions {
  /** The program has asked for application keys. Default false. */
  isApplication?: boolean;
}

/**
 * What a keyboard sends for a text in which `<enter>`, `<up>`, `<ctrl+c>` and the like stand for keys, and `<lt>` for
 * "<". A line end is Enter. What is no name of a key is text.
 */
export function encodeKeys(input: string, { isApplication = false }: KeyOptions = {}): string {
  return input
    .replace(/\r\n?|\n/g, "\r")
    .replace(KEY, (all, name: string) => encodeKey(name, isApplication) ?? all);
}

/** Whether it does nothing but interrupt or end a program. */
export function isInterruption(input: string): boolean {
  return INTERRUPTION.test(input.trim());
}

/** The text of it, with a line end for Enter and without other keys: what a shell would be given. */
export function typedText(input: string): string {
  return input.replace(KEY, (all, name: string) => {
    const key = encodeKey(name, false);
    if (key === undefined) return all;
    return key === "\r" ? "\n" : /^[ <]$/.test(key) ? key : "";
  });
}

function encodeKey(written: string, isApplication: boolean): string | undefined {
  const name = written.toLowerCase();
  const known = KEYS[name];
  if (known !== undefined) {
    return isApplication && APPLICATION.has(name) ? known.replace("[", "O") : known;
  }
  const plus = name.indexOf("+");
  const modifier = name.slice(0, plus);
  const key = name.slice(plus + 1);
  if (modifier === "alt") {
    const plain = KEYS[key] ?? (key.length === 1 ? written.at(-1) : undefined);
    return plain === undefined ? undefined : `\x1b${plain}`;
  }
  if (modifier !== "ctrl" || !/^[a-z@[\\\]^_]$/.test(key)) return undefined;
  return String.fromCharCode(key.toUpperCase().charCodeAt(0) & CONTROL_MASK);
}
