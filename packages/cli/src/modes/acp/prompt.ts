import { basename, isAbsolute, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import {
  type FileContent,
  guessMediaType,
  type ImageContent,
  toUrl,
  type UserContent,
} from "@gyre/ai";
import { fromSource } from "@gyre/tools";
import { parseCommand } from "@gyre/coding/internal/conversation/command";
import type { PromptRequest } from "@gyre/coding/internal/harness/harness";

/**
 * What an editor's user asks, as a model reads it: text and links in their order, then the
 * content that came along, marked as data.
 */
export function parsePrompt(blocks: readonly ContentBlock[], cwd: string): PromptRequest {
  let text = "";
  const attached: UserContent[] = [];
  const images: ImageContent[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        text += block.text;
        break;
      case "resource_link":
        text += mention(block.uri, cwd);
        break;
      case "image":
        images.push({ type: "image", data: block.data, mimeType: block.mimeType });
        break;
      case "resource": {
        const { resource } = block;
        const name = formatName(resource.uri, cwd);
        text += `\`${name}\``;
        if ("text" in resource) {
          attached.push(fromSource({ kind: "file", name }, resource.text));
        } else if (resource.mimeType?.startsWith("image/")) {
          images.push({ type: "image", data: resource.blob, mimeType: resource.mimeType });
        } else {
          attached.push(toBlock(resource.blob, resource.mimeType ?? guessMediaType(name), name));
        }
        break;
      }
      case "audio":
        attached.push(toBlock(block.data, block.mimeType));
        break;
    }
  }
  return {
    text,
    ...(attached.length > 0 && { attachments: attached }),
    ...(images.length > 0 && { images }),
  };
}

/** A file as it came. Whether the model takes it is said when it is asked. */
function toBlock(data: string, mediaType = "application/octet-stream", name?: string): FileContent {
  const named = name === undefined ? {} : { name: basename(name) };
  return { type: "file", mediaType, ...named, source: { type: "base64", data } };
}

/** "/name rest", if that is all there is to a prompt. */
export function findCommand(blocks: readonly ContentBlock[]): ReturnType<typeof parseCommand> {
  const texts = blocks.map((block) => (block.type === "text" ? block.text : undefined));
  return texts.includes(undefined) ? undefined : parseCommand(texts.join("").trim());
}

/** The lines that an editor adds to the address of a file: #L10, #L10-20, #L10:20, #L10-L20. */
const LINES = /^#L(\d+)(?:[-:]L?(\d+))?$/;

function mention(uri: string, cwd: string): string {
  const [, from, to] = LINES.exec(readFragment(uri)) ?? [];
  const lines =
    from === undefined ? "" : to === undefined ? ` (line ${from})` : ` (lines ${from}-${to})`;
  return `\`${formatName(uri, cwd)}\`${lines}`;
}

function readFragment(uri: string): string {
  return toUrl(uri)?.hash ?? "";
}

/** A path as tools take it, where it is one; else the address. */
function formatName(uri: string, cwd: string): string {
  const url = toUrl(uri);
  if (url?.protocol !== "file:") return uri;
  url.hash = "";
  url.search = "";
  let path: string;
  try {
    path = fileURLToPath(url);
  } catch {
    // A file of another machine has no path here.
    return uri;
  }
  const inside = relative(cwd, path);
  const leaves = inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside);
  return leaves ? path : inside || ".";
}
