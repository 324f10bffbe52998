import { sanitize } from "@gyre/tools";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes a text for a page or an attribute, and removes characters that hide or reorder text. */
export function htmlText(text: string): string {
  return sanitize(text).replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? "");
}

/** Like `htmlText`, but entities such as `&amp;` keep their meaning. Not for attributes. */
export function htmlProse(text: string): string {
  return htmlText(text).replace(
    /&amp;(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});/g,
    "&$1;",
  );
}
