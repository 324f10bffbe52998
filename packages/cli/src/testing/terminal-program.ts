import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "@lydell/node-pty";
import xterm from "@xterm/headless";
import { buildEnvironment, type Program } from "./program.ts";
import { type Piece, screenText, scrollbackText, styledScreen } from "./screen-text.ts";
import type { ScriptedService } from "./scripted-service.ts";
import { clusterWidths } from "./terminal-widths.ts";

/** How large the terminal is, 80 by 24 by default, and how it draws. */
export interface Size {
  columns?: number;
  rows?: number;
  /**
   * Whether it takes what a reader sees as one character for one. Default: always. `mode`: as long as mode 2027 is set;
   * `never`: each code point has its own width, as in old terminals.
   */
  clusters?: Clusters;
}

export type Clusters = "always" | "mode" | "never";

export interface CommandOptions extends Size {
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Rows that are kept when they leave the screen. */
  scrollback?: number;
}

export interface TerminalOptions extends Size {
  /** Another run's home. By default a fresh one. */
  home?: string;
  /** Default: the folder `work` of the home, which is made. */
  cwd?: string;
  /** Added to the few variables that a run has. */
  env?: Readonly<Record<string, string>>;
  /** Whom it talks to: key and address are in its environment. */
  service?: ScriptedService;
}

/** Something on the screen: a text in a row, a pattern in the rows joined by line ends, or any. */
export type Condition = string | RegExp | ((screen: readonly string[]) => boolean);

/** A program that runs in a terminal. */
export interface TerminalRun {
  readonly pid: number;
  readonly cwd: string;
  /** Characters as if they were typed, all at once. */
  type(text: string): void;
  /** Keys by name, with `ctrl+`, `alt+` and `shift+` before it: `enter`, `alt+up`, `ctrl+c`. */
  press(...keys: readonly string[]): void;
  /** As a terminal does it: in brackets, if the program has asked for them. */
  paste(text: string): void;
  resize(columns: number, rows: number): void;
  /** The rows of the screen, spaces at their ends taken away. */
  screen(): string[];
  /** The rows that have left it; those from a number on. */
  scrollback(from?: number): string[];
  styled(): Piece[][];
  cursor(): { row: number; column: number; isShown: boolean };
  /** All that it has written. */
  readonly bytes: Buffer;
  /** Looks each time that something was drawn; fails when the program ends or `within` is over. */
  until(condition: Condition, options?: { within?: number }): Promise<void>;
  /** All that came so far has been drawn. */
  settled(): Promise<void>;
  /** Called when something was drawn, between frames. Gives what ends it. */
  watch(listener: () => void): () => void;
  /** Called with what came, before it is drawn. Gives what ends it. */
  listen(listener: (bytes: Buffer) => void): () => void;
  readonly end: Promise<{ code: number; signal: number | undefined }>;
  kill(signal?: NodeJS.Signals): void;
}

const CLUSTER_MODE = 2027;
const COLUMNS = 80;
const ROWS = 24;
const SCROLLBACK_ROWS = 10_000;
/** A limit for a program that hangs: a busy machine takes long. */
const DEADLINE_MS = 60_000;
/** The sequences that hide or show the cursor; the last one counts. */
const CURSOR_MODE = "\x1b[?25";

/** Runs the program in a terminal of its own. */
export async function openInTerminal(
  program: Program,
  args: readonly string[] = [],
  { home, cwd, env, service, ...size }: TerminalOptions = {},
): Promise<TerminalRun & { readonly home: string }> {
  const at = home ?? (await program.makeHome());
  const folder = cwd ?? join(at, "work");
  for (const path of [folder, join(at, "tmp")]) mkdirSync(path, { recursive: true });
  const run = openCommand([process.execPath, program.entry, ...args], {
    cwd: folder,
    env: { ...buildEnvironment(at, service), ...env },
    ...size,
  });
  return Object.assign(run, { home: at });
}

/** Runs any command in a terminal that draws, and that answers what it is asked. */
export function openCommand(
  [file = "", ...args]: readonly string[],
  {
    cwd,
    env,
    columns = COLUMNS,
    rows = ROWS,
    scrollback = SCROLLBACK_ROWS,
    clusters = "always",
  }: Readonly<CommandOptions>,
): TerminalRun {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback,
    allowProposedApi: true,
  });
  if (clusters !== "never") joinClusters(terminal, clusters === "mode");
  const child = spawn(file, args, {
    name: "xterm-256color",
    cols: columns,
    rows,
    cwd,
    env: {
      TERM: "xterm-256color",
      // The terminal here is the one of that editor.
      TERM_PROGRAM: "vscode",
      COLORTERM: "truecolor",
      ...env,
    },
    encoding: null,
  });
  const parts: Buffer[] = [];
  const watchers = new Set<() => void>();
  const listeners = new Set<(bytes: Buffer) => void>();
  let isOver = false;
  child.onData((data) => {
    // Without an encoding it is a buffer, whatever its type says.
    const bytes = Buffer.from(data);
    parts.push(bytes);
    for (const listener of [...listeners]) listener(bytes);
    terminal.write(bytes, () => {
      if (terminal.modes.synchronizedOutputMode) return;
      for (const look of [...watchers]) look();
    });
  });
  terminal.onData((answer) => {
    if (!isOver) child.write(answer);
  });
  const settled = (): Promise<void> => new Promise((settle) => terminal.write("", settle));
  const end = new Promise<{ code: number; signal: number | undefined }>((settle) => {
    child.onExit(({ exitCode, signal }) => {
      isOver = true;
      void settled().then(() => {
        for (const look of [...watchers]) look();
        settle({ code: exitCode, signal: signal === 0 ? undefined : signal });
      });
    });
  });
  const send = (text: string): void => {
    if (isOver) throw new Error(`It has ended and takes no ${JSON.stringify(text)}.`);
    child.write(text);
  };
  const added = <T>(to: Set<T>, one: T): (() => void) => {
    to.add(one);
    return () => void to.delete(one);
  };
  const screen = (): string[] => screenText(terminal);
  const written = (): Buffer => {
    const whole = Buffer.concat(parts);
    parts.splice(0, parts.length, whole);
    return whole;
  };
  return {
    pid: child.pid,
    cwd,
    type: send,
    press: (...keys) => send(keys.map((key) => encodeKey(key)).join("")),
    paste: (text) => send(terminal.modes.bracketedPasteMode ? `\x1b[200~${text}\x1b[201~` : text),
    resize(columns, rows) {
      terminal.resize(columns, rows);
      child.resize(columns, rows);
    },
    screen,
    scrollback: (from) => scrollbackText(terminal, from),
    styled: () => styledScreen(terminal),
    cursor() {
      const { cursorX, cursorY } = terminal.buffer.active;
      const text = written();
      const mode = text.lastIndexOf(CURSOR_MODE);
      const isShown = mode < 0 || text[mode + CURSOR_MODE.length] !== "l".charCodeAt(0);
      return { row: cursorY, column: cursorX, isShown };
    },
    get bytes() {
      return written();
    },
    until: (condition, { within = DEADLINE_MS } = {}) =>
      new Promise((settle, fail) => {
        const done = (problem?: string): void => {
          clearTimeout(late);
          watchers.delete(look);
          if (problem === undefined) settle();
          else
            fail(new Error(`${problem} ${describeCondition(condition)}:\n${screen().join("\n")}`));
        };
        const look = (): void => {
          if (!terminal.modes.synchronizedOutputMode && isMet(condition, screen())) done();
          else if (isOver) done("It ended and did not show");
        };
        const late = setTimeout(() => done(`In ${within} ms it did not show`), within);
        watchers.add(look);
        look();
      }),
    settled,
    watch: (listener) => added(watchers, listener),
    listen: (listener) => added(listeners, listener),
    end,
    kill: (signal = "SIGKILL") => {
      if (!isOver) child.kill(signal);
    },
  };
}

/** With the mode it answers whether it is set, and follows it. */
function joinClusters(terminal: xterm.Terminal, hasMode: boolean): void {
  const usual = terminal.unicode.activeVersion;
  terminal.unicode.register(clusterWidths());
  if (!hasMode) {
    terminal.unicode.activeVersion = "clusters";
    return;
  }
  const isMode = (params: (number | number[])[]): boolean => params[0] === CLUSTER_MODE;
  terminal.parser.registerCsiHandler({ prefix: "?", intermediates: "$", final: "p" }, (params) => {
    const isSet = terminal.unicode.activeVersion === "clusters";
    if (isMode(params)) terminal.input(`\x1b[?${CLUSTER_MODE};${isSet ? 1 : 2}$y`, false);
    return isMode(params);
  });
  for (const [final, version] of [
    ["h", "clusters"],
    ["l", usual],
  ] as const) {
    terminal.parser.registerCsiHandler({ prefix: "?", final }, (params) => {
      if (isMode(params)) terminal.unicode.activeVersion = version;
      return isMode(params);
    });
  }
}

function isMet(condition: Condition, screen: readonly string[]): boolean {
  if (typeof condition === "function") return condition(screen);
  if (typeof condition === "string") return screen.some((row) => row.includes(condition));
  return condition.test(screen.join("\n"));
}

function describeCondition(condition: Condition): string {
  return typeof condition === "string" ? JSON.stringify(condition) : String(condition);
}

const CONTROL_MASK = 0x1f;
const PLAIN: Readonly<Record<string, string>> = {
  enter: "\r",
  escape: "\x1b",
  tab: "\t",
  backspace: "\x7f",
  space: " ",
};
/** Keys that end in a letter, and keys that end in a tilde, as xterm sends them. */
const LETTERED: Readonly<Record<string, string>> = {
  up: "A",
  down: "B",
  right: "C",
  left: "D",
  home: "H",
  end: "F",
};
const NUMBERED: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageUp: 5,
  pageDown: 6,
};
const ENTER_CODE = 13;

/** The bytes that a terminal sends for a key. Throws for one that it does not have. */
export function encodeKey(key: string): string {
  const parts = key.split("+");
  const name = parts.pop() || "+";
  const held = new Set(parts.filter((part) => part !== ""));
  const modifier =
    1 + (held.has("shift") ? 1 : 0) + (held.has("alt") ? 2 : 0) + (held.has("ctrl") ? 4 : 0);
  const letter = LETTERED[name];
  if (letter !== undefined)
    return modifier === 1 ? `\x1b[${letter}` : `\x1b[1;${modifier}${letter}`;
  const number = NUMBERED[name];
  if (number !== undefined) return `\x1b[${number}${modifier === 1 ? "" : `;${modifier}`}~`;
  const alt = held.has("alt") ? "\x1b" : "";
  if (held.has("shift") && name === "tab") return `${alt}\x1b[Z`;
  if (held.has("shift") && name === "enter") return `\x1b[${ENTER_CODE};${modifier}u`;
  const plain = PLAIN[name] ?? (name.length === 1 ? name : undefined);
  if (plain === undefined) throw new Error(`There is no key "${key}".`);
  return held.has("ctrl") ? alt + encodeControl(plain) : alt + plain;
}

function encodeControl(key: string): string {
  return String.fromCharCode(key.toUpperCase().charCodeAt(0) & CONTROL_MASK);
}
