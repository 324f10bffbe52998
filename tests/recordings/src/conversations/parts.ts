/** Small readings of JSON that the readers of all request formats share. */

import type { RequestTool, RequestTurn } from "./request-transcript.ts";

export type Json = Record<string, unknown>;

export interface RequestImage {
  mimeType: string;
  /** Base64. */
  data: string;
}

/** What the parts of a system prompt are joined with. */
export const SYSTEM_PARTS = "\n\n";

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function record(value: unknown): Json {
  return isRecord(value) ? value : {};
}

export function records(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The blocks of a content, which may be a plain text. */
export function blocks(content: unknown): Json[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : records(content);
}

/** All text of a content, which may be a plain text. */
export function joinTexts(content: unknown, between: string): string {
  return blocks(content)
    .flatMap(({ text }) => (typeof text === "string" ? [text] : []))
    .join(between);
}

/** Arguments of a call, which most formats have as text. */
export function parsed(given: unknown): unknown {
  if (typeof given !== "string") return given ?? {};
  if (given === "") return {};
  try {
    return JSON.parse(given);
  } catch {
    return { unparsed: given };
  }
}

/** What the service wants back unread, as text; nothing where there is nothing. */
export function seal(value: unknown): { seal?: string } {
  if (value === undefined || value === null || value === "") return {};
  if (Array.isArray(value) && value.length === 0) return {};
  return { seal: typeof value === "string" ? value : JSON.stringify(sorted(value)) };
}

/** With the fields of all objects in one order. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, inner]) => [name, sorted(inner)]));
}

export type RequestToolChoice = "none" | "required" | { name: string };

export function choice(value: unknown): { toolChoice?: RequestToolChoice } {
  if (isRecord(value)) {
    const { name } = value;
    return typeof name === "string" ? { toolChoice: { name } } : {};
  }
  const word = string(value).toLowerCase();
  if (word === "any" || word === "required") return { toolChoice: "required" };
  return word === "none" ? { toolChoice: "none" } : {};
}

const DATA_URL = /^data:([^;,]+);base64,/;

/** The image of a block, in any of the formats; none where it is no image, or only its address. */
export function readImage(block: Json): RequestImage[] {
  const { source, image, image_url, inlineData } = block;
  const address = isRecord(image_url) ? image_url["url"] : image_url;
  if (typeof address === "string") {
    const mimeType = DATA_URL.exec(address)?.[1];
    return mimeType === undefined ? [] : [{ mimeType, data: address.replace(DATA_URL, "") }];
  }
  const { format, source: inner } = record(image);
  if (typeof format === "string") {
    return [{ mimeType: `image/${format}`, data: string(record(inner)["bytes"]) }];
  }
  const { media_type, mimeType = media_type, data } = record(inlineData ?? source);
  return typeof mimeType === "string" ? [{ mimeType, data: string(data) }] : [];
}

/** Puts the image of a block into a turn. */
export function addImage(turn: RequestTurn, block: Json): void {
  const images = readImage(block);
  turn.images.push(...images);
  if (images.length === 0) turn.other.push("image by address");
}

/** The model that a request asks for: some formats have it in the address alone. */
export function modelIn(body: Json, path: string): string {
  if (typeof body["model"] === "string") return body["model"];
  const [, google, bedrock] = MODEL_IN_PATH.exec(decodeURIComponent(path)) ?? [];
  return google ?? bedrock ?? "";
}

const MODEL_IN_PATH = /\/models\/([^/?]+):|\/model\/([^/?]+)\//;

/** Puts turns together: adjacent parts of one role are one turn. */
export class Turns {
  readonly list: RequestTurn[] = [];

  of(role: RequestTurn["role"]): RequestTurn {
    const last = this.list.at(-1);
    if (last?.role === role) return last;
    const turn: RequestTurn = {
      role,
      texts: [],
      images: [],
      thinking: [],
      calls: [],
      results: [],
      service: [],
      other: [],
    };
    this.list.push(turn);
    return turn;
  }
}

/** A schema that says nothing of a type is that of an object. */
export function readTool({ name, description }: Json, parameters: unknown): RequestTool {
  return {
    name: string(name),
    description: string(description),
    parameters: { type: "object", ...record(parameters) },
  };
}
