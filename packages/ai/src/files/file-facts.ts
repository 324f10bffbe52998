import { toBase64 } from "./base64.ts";
import { toFile } from "./files.ts";
import type { FileContent, ImageContent, TextContent } from "../messages/messages.ts";

/**
 * What services distinguish among files. `text`: what can be read as it is. `document`: all else that
 * people write, such as the files of an office program.
 */
export type FileKind = (typeof FILE_KINDS)[number];

export const FILE_KINDS = ["image", "pdf", "text", "audio", "video", "document"] as const;

const TEXT_TYPES =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|jsonl|x-ndjson|xml|x?-?yaml|toml|x?-?javascript|typescript|sql|x-sh))$/;

/** The kind of a file, by its media type. */
export function fileKind(mediaType: string): FileKind {
  const type = mediaType.toLowerCase();
  if (type === "application/pdf") return "pdf";
  if (TEXT_TYPES.test(type)) return "text";
  const [first] = type.split("/");
  return first === "image" || first === "audio" || first === "video" ? first : "document";
}

/** Whether a block is a picture, in either form. */
export function isImage(block: ImageContent | FileContent): boolean {
  return fileKind(toFile(block).mediaType) === "image";
}

/** How many bytes a file has, where that is known. */
export function fileSize({ source }: Pick<FileContent, "source">): number | undefined {
  if (source.type === "stored") return source.size;
  return source.type === "base64" ? Math.floor((source.data.length * 3) / 4) : undefined;
}

/** A file in a few words, for people and models: `a.pdf, application/pdf, 12 KB`. */
export function describeFile(block: ImageContent | FileContent): string {
  const file = toFile(block);
  const bytes = fileSize(file);
  const size = bytes === undefined ? [] : [`${Math.ceil(bytes / 1000)} KB`];
  return [...(file.name === undefined ? [] : [file.name]), file.mediaType, ...size].join(", ");
}

/** What stands where an image or a file is not sent. */
export function leaveOut(block: ImageContent | FileContent, why: string): TextContent {
  const what = isImage(block) ? "Image" : "File";
  return { type: "text", text: `[${what} left out (${describeFile(block)}): ${why}]` };
}

/** The address of a file: its own, or one that has the contents in it. */
export function toFileUrl({ mediaType, source }: FileContent): string {
  if (source.type === "url") return source.url;
  return `data:${mediaType};base64,${source.type === "base64" ? source.data : ""}`;
}

/** Its name, or one that says what it is: some services want one. */
export function fileName({ mediaType, name }: FileContent): string {
  return name || `file.${mediaType.replace(/^.*[/.+-]/, "")}`;
}

/** A text as the base64 that a file holds. */
export function encodeText(text: string): string {
  return toBase64(new TextEncoder().encode(text));
}
