/** How much of a file is inspected to find out what it is. */
export const TEXT_HEAD_BYTES: number = 8 * 1024;
/** With more characters than this part of them broken, it is no text in UTF-8. */
const MAX_BROKEN_PART = 0.3;

const PDF_MARK = "%PDF-";

export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be";

/** How a file is encoded, judged by its first bytes; absent where it is no text. */
export function textEncoding(head: Uint8Array): TextEncoding | undefined {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  const seen = head.subarray(0, TEXT_HEAD_BYTES);
  if (seen.includes(0)) return undefined;
  // Begins as text, and goes on with anything.
  if (new TextDecoder("latin1").decode(seen.subarray(0, PDF_MARK.length)) === PDF_MARK)
    return undefined;
  // A character may go on behind what was looked at: it is not broken.
  const text = new TextDecoder().decode(seen, { stream: true });
  let broken = 0;
  for (const char of text) if (char === "\ufffd") broken += 1;
  return broken > text.length * MAX_BROKEN_PART ? undefined : "utf-8";
}

/** The text of a whole file, a byte order mark included; absent where it is no text. */
export function decodeText(bytes: Uint8Array): string | undefined {
  const encoding = textEncoding(bytes);
  return encoding && new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes);
}
