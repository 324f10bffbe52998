import type { AssistantContent, Context, FileContent, Message, UserContent } from "./messages.ts";
import { toJsonSchema } from "../schema/schema.ts";

/**
 * What pieces of text weigh, in tokens; fitted to one common tokenizer (o200k) on
 * prose, code, JSON and eight languages. To an older one (cl100k), scripts other than
 * Latin weigh up to four times as much: `TokenCalibration` is for such differences.
 */
const WORD = 1;
/** Letters of a word up to which it is one token. */
const WORD_CHARS = 8;
const LONG_WORD_CHAR = 0.3;
const DIGITS_PER_TOKEN = 3;
const SIGNS = 0.75;
const FURTHER_SIGN = 0.2;
const LINE_BREAK = 0.15;
const INDENT = 1.2;
const HAN_OR_KANA = 0.8;
const HANGUL = 0.7;
/** Letters of alphabets other than Latin: Greek, Cyrillic, Arabic, Devanagari, ... */
const OTHER_LETTER = 0.26;
/** A half of an emoji, a dash, an arrow. */
const SYMBOL = 1;

/** An image, whatever its size: services scale it down to about as much. */
export const IMAGE_TOKENS = 1_500;
/** A file somewhere else: of unknown size. */
const UNKNOWN_FILE_BYTES = 150_000;
/** Text, pages, and sound or film have ever fewer tokens for their size. */
const TEXT_BYTES_PER_TOKEN = 4;
const PAGE_BYTES_PER_TOKEN = 30;
const MEDIA_BYTES_PER_TOKEN = 500;
/** What a message takes beside its content. */
const MESSAGE_TOKENS = 4;
/** What a call, a result or a tool takes beside its text. */
const FRAME_TOKENS = 8;

const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
const SPACE = 4;
const BREAK = 5;
const SIGN = 6;
const WIDE = 7;

const ASCII_KINDS: Uint8Array = Uint8Array.from({ length: 0x80 }, (_, code) => {
  if (code === 0x0a || code === 0x0d) return BREAK;
  if (code <= 0x20) return SPACE;
  const character = String.fromCharCode(code);
  if (character >= "a" && character <= "z") return LOWER;
  if (character >= "A" && character <= "Z") return UPPER;
  return character >= "0" && character <= "9" ? DIGIT : SIGN;
});

/**
 * About how many tokens a text is, in one pass and without a tokenizer. Words,
 * signs, indents and scripts weigh differently, so that code, prose and Chinese
 * are judged alike.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  const { length } = text;
  for (let at = 0; at < length;) {
    const from = at;
    const kind = kindAt(text, at++);
    switch (kind) {
      case LOWER:
      case UPPER:
        // A hump of camelCase is a word of its own.
        if (kind === UPPER) at = runEnd(text, at, UPPER);
        at = runEnd(text, at, LOWER);
        tokens += WORD + Math.max(0, at - from - WORD_CHARS) * LONG_WORD_CHAR;
        break;
      case DIGIT:
        at = runEnd(text, at, DIGIT);
        tokens += Math.ceil((at - from) / DIGITS_PER_TOKEN);
        // A space joins the word after it, but not a number.
        if (from > 0 && kindAt(text, from - 1) === SPACE) tokens += 1;
        break;
      case SPACE:
        at = runEnd(text, at, SPACE);
        if (at - from > 1) tokens += INDENT;
        break;
      case BREAK:
        at = runEnd(text, at, BREAK);
        tokens += LINE_BREAK;
        break;
      case SIGN:
        at = runEnd(text, at, SIGN);
        tokens += SIGNS + (at - from - 1) * FURTHER_SIGN;
        break;
      default:
        tokens += wideWeight(text.charCodeAt(from));
    }
  }
  return Math.ceil(tokens);
}

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code < 0x80) return ASCII_KINDS[code] ?? SIGN;
  // Latin letters with marks; the two signs among them do not matter.
  return code >= 0xc0 && code < 0x250 ? LOWER : WIDE;
}

function runEnd(text: string, from: number, kind: number): number {
  let at = from;
  while (at < text.length && kindAt(text, at) === kind) at++;
  return at;
}

function wideWeight(code: number): number {
  if (code >= 0x370 && code < 0x1100) return OTHER_LETTER;
  if (code >= 0xac00 && code < 0xd7b0) return HANGUL;
  if (code >= 0x2e80 && code < 0xa000) return HAN_OR_KANA;
  if ((code >= 0xf900 && code < 0xfb00) || (code >= 0xff00 && code < 0xfff0)) return HAN_OR_KANA;
  return SYMBOL;
}

/** About how many tokens a message takes in a request. */
export function estimateMessageTokens(message: Message): number {
  const { content } = message;
  if (typeof content === "string") return MESSAGE_TOKENS + estimateTokens(content);
  let tokens = MESSAGE_TOKENS + (message.role === "toolResult" ? FRAME_TOKENS : 0);
  for (const block of content) tokens += blockTokens(block);
  return tokens;
}

function blockTokens(block: AssistantContent | UserContent): number {
  switch (block.type) {
    case "text":
      return estimateTokens(block.text);
    case "thinking":
      return estimateTokens(block.thinking);
    case "image":
      return IMAGE_TOKENS;
    case "file":
      return estimateFileTokens(block);
    case "toolCall":
      return (
        FRAME_TOKENS +
        estimateTokens(block.name) +
        estimateTokens(block.rawArguments ?? JSON.stringify(block.arguments))
      );
    case "serviceTool":
      return (
        FRAME_TOKENS + estimateTokens(JSON.stringify(block.raw ?? [block.input, block.output]))
      );
  }
}

/** About how many tokens a file takes, by what it is said to hold and by its size. */
function estimateFileTokens({ mediaType, source }: FileContent): number {
  if (mediaType.startsWith("image")) return IMAGE_TOKENS;
  const bytes =
    source.type === "base64"
      ? (source.data.length * 3) / 4
      : source.type === "stored"
        ? source.size
        : UNKNOWN_FILE_BYTES;
  const perToken = /^text|json|xml|yaml/.test(mediaType)
    ? TEXT_BYTES_PER_TOKEN
    : /^(audio|video)/.test(mediaType)
      ? MEDIA_BYTES_PER_TOKEN
      : PAGE_BYTES_PER_TOKEN;
  return FRAME_TOKENS + Math.ceil(bytes / perToken);
}

/** About how many tokens a request takes: the system prompt, the tools and the messages. */
export function estimateContextTokens(context: Context): number {
  let tokens = context.systemPrompt ? MESSAGE_TOKENS + estimateTokens(context.systemPrompt) : 0;
  for (const { name, description, parameters } of context.tools ?? []) {
    const schema = JSON.stringify(toJsonSchema(parameters));
    tokens += FRAME_TOKENS + estimateTokens(name) + estimateTokens(description);
    tokens += estimateTokens(schema);
  }
  for (const message of context.messages) tokens += estimateMessageTokens(message);
  return tokens;
}

/** How far one report moves the factor. */
const SMOOTHING = 0.3;
const MIN_FACTOR = 0.5;
const MAX_FACTOR = 2;

/**
 * Learns how a service's own count compares with the estimate, one factor for all.
 * A report that is far off (a cache that was not counted, a hidden prompt) moves it
 * only a little, and never beyond 0.5 to 2.
 */
export class TokenCalibration {
  #factor = 1;

  /** Learns from what was estimated for a request and what the service then reported. */
  observe(estimated: number, reported: number): void {
    const ratio = reported / estimated;
    if (!Number.isFinite(ratio) || ratio <= 0) return;
    const clamped = Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, ratio));
    // Steps are of a ratio, so that twice and half weigh alike.
    this.#factor *= (clamped / this.#factor) ** SMOOTHING;
  }

  /** The estimate as the service would count it. */
  correct(estimated: number): number {
    return Math.round(estimated * this.#factor);
  }
}
