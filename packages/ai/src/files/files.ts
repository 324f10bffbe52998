import type { FileContent, ImageContent } from "../messages/messages.ts";

/** An image block as the file that it is; a file stays as it is. */
export function toFile(block: ImageContent | FileContent): FileContent {
  if (block.type === "file") return block;
  const { data, mimeType: mediaType, signature } = block;
  const source = { type: "base64", data } as const;
  return { type: "file", mediaType, source, ...(signature !== undefined && { signature }) };
}

/** The text of a file that holds its contents as base64; what is no UTF-8 is replaced. */
export function decodeText(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}
