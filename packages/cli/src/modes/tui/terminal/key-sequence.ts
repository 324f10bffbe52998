import type { Key } from "./key.ts";

/** The meaning of a sequence: a key, characters, or nothing that the program uses. */
export type Decoded = Key | { type: "text"; text: string } | undefined;

/** The modifiers of a key are the sum of these and 1. */
const SHIFT = 1;
const ALT = 2;
const CTRL = 4;
const SUPER = 8;
const HYPER = 16;
const META = 32;
const RELEASE = 3;

const FIRST_PRINTABLE = 0x20;
const DELETE = 0x7f;
const LAST_C1 = 0x9f;
const MAX_CODE_POINT = 0x10ffff;
/** The range of the kitty protocol for keys without characters. */
const FIRST_PRIVATE = 0xe000;
const LAST_PRIVATE = 0xf8ff;

/** By the letter that ends a sequence. */
const BY_FINAL: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  P: "f1",
  Q: "f2",
  S: "f4",
};
/** By the number before a tilde, from 1 on: xterm, the Linux console and rxvt together. */
const BY_NUMBER = ["home", "insert", "delete", "end", "pageUp", "pageDown", "home", "end"];
/** The function keys, by the same number. */
const FUNCTION_KEYS: Readonly<Record<number, string>> = Object.fromEntries(
  [11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24].map((number, index) => [
    number,
    `f${index + 1}`,
  ]),
);
const BY_CODE: Readonly<Record<number, string>> = {
  8: "backspace",
  9: "tab",
  13: "enter",
  27: "escape",
  127: "backspace",
  57414: "enter",
};
/** Keys of the kitty protocol's keypad, from this code on. */
const FIRST_KEYPAD_KEY = 57_417;
const KEYPAD_KEYS = "left right up down pageUp pageDown home end insert delete".split(" ");
/** The keypad of the kitty protocol, from this code on. */
const FIRST_KEYPAD = 57_399;
const KEYPAD = "0123456789./*-+";
const KEYPAD_EQUALS = 57_415;
/** The keypad behind SS3: `j` is `*`, and so on to `y`, which is `9`. */
const SS3_KEYPAD = "*+,-./0123456789";

/** `modifiers` as in a sequence, where 1 means no modifier. */
export function createKey(name: string, modifiers = 1): Key {
  const held = modifiers - 1;
  return {
    type: "key",
    name,
    ctrl: (held & CTRL) !== 0,
    alt: (held & (ALT | META)) !== 0,
    shift: (held & SHIFT) !== 0,
  };
}

/** Decodes a character behind an ESC, or a control. */
export function decodeCharacter(character: string, alt = false): Key {
  const code = character.codePointAt(0) ?? 0;
  const held = alt ? 1 + ALT : 1;
  const name = BY_CODE[code];
  if (name !== undefined) return createKey(name, held);
  // Ctrl clears the upper bits of a letter: `c` and `C` are 3, `_` is 31, space is 0.
  if (code === 0) return createKey(" ", held + CTRL);
  if (code < FIRST_PRINTABLE) {
    return createKey(String.fromCodePoint(code + 0x40).toLowerCase(), held + CTRL);
  }
  const small = character.toLowerCase();
  return createKey(small, small === character ? held : held + SHIFT);
}

/** Decodes `CSI body final`. */
export function decodeCsi(body: string, final: string): Decoded {
  // A report.
  if (/[^0-9:;]/.test(body)) return undefined;
  const fields = body.split(";");
  const [first = "", second = "", third = ""] = fields;
  const modifiers = parseModifiers(second);
  if (modifiers === undefined) return undefined;
  if (final === "Z") return createKey("tab", withShift(modifiers));
  if (final === "u") return decodeCode(first, modifiers, third);
  if (final === "~") {
    const number = Number(first);
    // xterm sends this for keys with Ctrl or Alt if it is configured so.
    if (number === 27) return decodeCode(third, modifiers, "");
    const name = BY_NUMBER[number - 1] ?? FUNCTION_KEYS[number];
    return name === undefined ? undefined : createKey(name, modifiers);
  }
  // rxvt has its own signs in place of the tilde, and small letters with Shift.
  const rxvt = { $: SHIFT, "^": CTRL, "@": SHIFT | CTRL }[final];
  if (rxvt !== undefined) {
    const name = BY_NUMBER[Number(first) - 1];
    return name === undefined ? undefined : createKey(name, 1 + rxvt);
  }
  if (/[a-d]/.test(final) && body === "") {
    return createKey(BY_FINAL[final.toUpperCase()] ?? "", 1 + SHIFT);
  }
  const name = BY_FINAL[final];
  return name === undefined ? undefined : createKey(name, modifiers);
}

/** `SS3 body final`: keys of the application modes. */
export function decodeSs3(body: string, final: string): Decoded {
  const modifiers = parseModifiers(body.split(";").at(-1) ?? "") ?? 1;
  if (final === "M") return createKey("enter", modifiers);
  if (final === "X") return { type: "text", text: "=" };
  if (/[a-d]/.test(final)) return createKey(BY_FINAL[final.toUpperCase()] ?? "", 1 + CTRL);
  const name = final === "R" ? "f3" : BY_FINAL[final];
  if (name !== undefined) return createKey(name, modifiers);
  const keypad = SS3_KEYPAD[final.charCodeAt(0) - "j".charCodeAt(0)];
  return keypad === undefined ? undefined : { type: "text", text: keypad };
}

function withShift(modifiers: number): number {
  return ((modifiers - 1) | SHIFT) + 1;
}

/** `modifiers:event`; undefined where the key was released. */
function parseModifiers(field: string): number | undefined {
  const [modifiers = "", event = ""] = field.split(":");
  if (Number(event) === RELEASE) return undefined;
  return Math.max(1, Number(modifiers) || 1);
}

/** `code:shifted:base`, and the characters of the key where the terminal reports them. */
function decodeCode(field: string, modifiers: number, written: string): Decoded {
  const [code = 0, shifted = 0] = field.split(":").map(Number);
  const name = BY_CODE[code] ?? KEYPAD_KEYS[code - FIRST_KEYPAD_KEY];
  if (name !== undefined) return createKey(name, modifiers);
  const character = toCharacter(code);
  if (character === undefined) return undefined;
  const held = modifiers - 1;
  // The desktop handles these keys.
  if ((held & (SUPER | HYPER)) !== 0) return undefined;
  if ((held & (CTRL | ALT | META)) !== 0) {
    const small = character.toLowerCase();
    return createKey(small, small === character ? modifiers : withShift(modifiers));
  }
  const texts = written.split(":").map((each) => toCharacter(Number(each)) ?? "");
  const upper = (held & SHIFT) !== 0 ? character.toUpperCase() : character;
  return { type: "text", text: texts.join("") || (toCharacter(shifted) ?? upper) };
}

function toCharacter(code: number): string | undefined {
  if (code === KEYPAD_EQUALS) return "=";
  const keypad = KEYPAD[code - FIRST_KEYPAD];
  if (keypad !== undefined) return keypad;
  const isControl = code < FIRST_PRINTABLE || (code >= DELETE && code <= LAST_C1);
  const isPrivate = code >= FIRST_PRIVATE && code <= LAST_PRIVATE;
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  if (!Number.isInteger(code) || code > MAX_CODE_POINT) return undefined;
  return isControl || isPrivate || isSurrogate ? undefined : String.fromCodePoint(code);
}
