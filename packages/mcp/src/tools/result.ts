import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { AgentToolResult } from "@gyre/agent";
import { fileKind, type TextContent, type UserContent } from "@gyre/ai";
import { firstBytes, lastBytes, saveOutput } from "@gyre/ai/programs";
import { fromSource, humanSize, IMAGE_HEAD_BYTES, imageType, sanitize } from "@gyre/ai/text";

/** Of the text of a result; of a longer one the beginning and the end are shown. */
export const MAX_RESULT_BYTES: number = 48 * 1024;
const HEAD_BYTES: number = 32 * 1024;
const TAIL_BYTES: number = 12 * 1024;
export const MAX_RESULT_IMAGES = 8;
const MAX_IMAGE_BYTES: number = 5 * 1024 * 1024;
const MAX_FILE_BYTES: number = 20 * 1024 * 1024;
/** Base64 has four characters for three bytes. */
const BASE64_GROUP = 4;

/** What an application gets to know of a call. */
export interface McpDetails {
  server: string;
  /** As the server calls it. */
  tool: string;
}

export interface ResultOptions extends McpDetails {
  /** A folder (0700) for what is too long to be shown. */
  spoolFolder?: string;
}

/** What a server gave back, as a model is shown it: capped, sanitized, and with its source. */
export async function toToolResult(
  given: CallToolResult,
  { server, tool, spoolFolder }: ResultOptions,
): Promise<AgentToolResult> {
  const texts: string[] = [];
  const images: UserContent[] = [];
  for (const block of given.content) {
    const shown = toBlock(block);
    if (typeof shown === "string") texts.push(shown);
    else if (images.length < MAX_RESULT_IMAGES) images.push(shown);
    else texts.push("[A further image or file is left out.]");
  }
  // Most servers say the same as text.
  if (given.content.length === 0 && given.structuredContent !== undefined) {
    texts.push(JSON.stringify(given.structuredContent));
  }
  const text = sanitize(texts.join("\n"));
  const content: UserContent[] = [];
  if (text.trim() !== "") {
    content.push(...(await capped(text, { server, tool, spoolFolder })));
  }
  const details: McpDetails = { server, tool };
  return {
    content: [...content, ...images],
    details,
    ...(given.isError === true && { isError: true }),
  };
}

/** Words of a server that are no result, such as those of an error. */
export function fromServer(server: string, text: string): TextContent {
  return fromSource({ kind: "mcp", name: server }, sanitize(text));
}

async function capped(
  text: string,
  { server, tool, spoolFolder }: McpDetails & { spoolFolder: string | undefined },
): Promise<UserContent[]> {
  const source = { kind: "mcp", name: `${server}/${tool}` } as const;
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_RESULT_BYTES) return [fromSource(source, text)];
  const path = spoolFolder === undefined ? undefined : await saveOutput(spoolFolder, text);
  const shown = [firstBytes(text, HEAD_BYTES), "[...]", lastBytes(text, TAIL_BYTES)].join("\n");
  const all = `The result has ${humanSize(bytes)}; its beginning and end are shown.`;
  const where = path === undefined ? "Ask for less." : `All of it is in ${path}.`;
  return [fromSource(source, shown), { type: "text", text: `[${all} ${where}]` }];
}

/** A block as a model is shown it; a text is not made safe yet. */
export function toBlock(block: ContentBlock): string | UserContent {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return toImage(block.data) ?? `[An image (${block.mimeType}) that cannot be shown.]`;
    case "audio":
      return toFileBlock(block.data, block.mimeType) ?? describeBinary("Audio", block);
    case "resource_link":
      return [`[Resource ${block.uri}]`, block.title ?? block.name, block.description ?? ""]
        .filter((part) => part !== "")
        .join(" ");
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[Resource ${resource.uri}]\n${resource.text}`;
      const { blob: data, mimeType = "binary", uri } = resource;
      return (
        toImage(data) ??
        toFileBlock(data, mimeType, uri) ??
        describeBinary(`Resource ${uri}`, { data, mimeType })
      );
    }
    default:
      return "[Content of a kind that cannot be shown.]";
  }
}

/** The type comes from its bytes: services refuse one that is not what it claims to be. */
function toImage(data: string): UserContent | undefined {
  if (countBytes(data) > MAX_IMAGE_BYTES) return undefined;
  const bytes = Buffer.from(data, "base64");
  const mimeType = imageType(bytes.subarray(0, IMAGE_HEAD_BYTES));
  return mimeType && { type: "image", data: bytes.toString("base64"), mimeType };
}

/** PDF, sound and film: models that do not take them are given a line about them. */
function toFileBlock(data: string, mediaType: string, uri = ""): UserContent | undefined {
  const kind = fileKind(mediaType);
  if (kind !== "pdf" && kind !== "audio" && kind !== "video") return undefined;
  if (countBytes(data) > MAX_FILE_BYTES) return undefined;
  const name = uri.slice(uri.lastIndexOf("/") + 1);
  const named = name === "" ? {} : { name: sanitize(name) };
  return { type: "file", mediaType, ...named, source: { type: "base64", data } };
}

function describeBinary(
  what: string,
  { data, mimeType }: { data: string; mimeType: string },
): string {
  return `[${what} (${mimeType}), ${humanSize(countBytes(data))}: cannot be shown.]`;
}

function countBytes(base64: string): number {
  return Math.floor((base64.length * (BASE64_GROUP - 1)) / BASE64_GROUP);
}
