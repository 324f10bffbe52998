import { sanitize } from "@gyre/tools";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text that means itself, in a page and in an attribute of one, without what hides or reorders. */
export function htmlText(text: string): string {
  return sanitize(text).replace(/[&<>"']/g, (sign) => ESCAPES[sign] ?? "");
}

/** As `htmlText`, but `&amp;` and the like stay what they stand for. For pages alone, not for attributes. */
export function htmlProse(text: string): string {
  return htmlText(text).replace(
    /&amp;(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});/g,
    "&$1;",
  );
}
