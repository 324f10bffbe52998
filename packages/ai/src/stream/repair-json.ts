const CONTROL_ESCAPES: Readonly<Record<string, string>> = {
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
};

/** A string up to its closing quote, with whatever stands in it. */
const STRING = /"(?:[^"\\]|\\[^])*"/y;
const ESCAPE = /\\(?:(["\\/bfnrt]|u[\dA-Fa-f]{4})|[^])/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f]/g;
const TRAILING_COMMA = /,(?=\s*[}\]])/y;

/**
 * The text as JSON, if it is a whole one but for escapes that JSON does not have, control
 * characters that it wants escaped, and commas before a closing bracket. Nothing that is missing
 * is added: a text that was cut has no repair.
 */
export function repairJson(text: string): string | undefined {
  let repaired = "";
  /** The last character outside of strings that is not white space. */
  let last = "";
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '"') {
      STRING.lastIndex = at;
      const [string] = STRING.exec(text) ?? [];
      if (string === undefined) return undefined;
      repaired += repairString(string);
      last = char;
      at += string.length;
      continue;
    }
    TRAILING_COMMA.lastIndex = at;
    const isSuperfluous = char === "," && !/[{[,]/.test(last) && TRAILING_COMMA.test(text);
    if (!isSuperfluous) repaired += char;
    if (char.trim() !== "") last = char;
    at++;
  }
  return isJson(repaired) ? repaired : undefined;
}

function repairString(string: string): string {
  return string
    .replace(ESCAPE, (escape, known: string | undefined) =>
      known === undefined ? `\\${escape}` : escape,
    )
    .replace(CONTROL, (char) => {
      const code = char.charCodeAt(0).toString(16).padStart(4, "0");
      return CONTROL_ESCAPES[char] ?? `\\u${code}`;
    });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
