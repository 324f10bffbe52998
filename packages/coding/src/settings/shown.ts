import { nearNames, REDACTED, redact } from "@gyre/ai";

/** How much of a value that is wrong is shown. */
const MAX_SHOWN_CHARS = 80;
/** How long a list on one line may be: the usual tools fit. */
const MAX_LIST_CHARS = 100;
const INDENT = 2;
/** What a terminal would obey, or not show at all. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const HEX = 16;

/**
 * A value as JSON that a person can read, all of it: nothing that is in it goes unseen, and
 * neither keys nor the values of headers are shown. A larger one takes several lines.
 */
export function shownValue(value: unknown, indent = 0): string {
  const short = Array.isArray(value) ? shortList(value) : undefined;
  if (short !== undefined) return short;
  const text = JSON.stringify(withoutSecrets(value), undefined, isObject(value) ? INDENT : 0);
  return (text ?? "nothing")
    .split("\n")
    .map((line, index) => (index === 0 ? "" : " ".repeat(indent)) + visible(line))
    .join("\n");
}

/** A list that has its place on a line. */
function shortList(values: readonly unknown[]): string | undefined {
  if (values.some(isObject)) return undefined;
  const items = values.map((value) => visible(JSON.stringify(withoutSecrets(value)) ?? "nothing"));
  const text = `[${items.join(", ")}]`;
  return text.length > MAX_LIST_CHARS ? undefined : text;
}

/** A value that is wrong, on one line. */
export function shownBriefly(value: unknown): string {
  const text = visible(JSON.stringify(withoutSecrets(value)) ?? typeof value);
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text;
}

/** The value with `[redacted]` for what may be a secret, everywhere in it. */
export function withoutSecrets(value: unknown): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([name, one]) => {
    // Any header may hold a key, whatever it is called.
    if (name !== "headers") return [name, withoutSecrets(one)];
    if (!isObject(one) || Array.isArray(one)) return [name, REDACTED];
    return [name, Object.fromEntries(Object.keys(one).map((header) => [header, REDACTED]))];
  });
  return Object.fromEntries(entries);
}

/** What may have been meant by a name that is not known; empty if nothing is near. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearNames(name, known).map((one) => `"${one}"`);
  return near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
}

function visible(text: string): string {
  return text.replace(UNSEEN, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(HEX)}}`);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
