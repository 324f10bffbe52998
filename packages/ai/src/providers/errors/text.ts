import { redact as redactKeys, REDACTED } from "../../common/redact.ts";

/** The most that is quoted of a service's message, in characters. */
export const MAX_SERVICE_WORDS = 500;
/** The most of a text that is searched for a reason, in characters. */
export const MAX_TEXT = 8_000;

/** A service's message as a sentence that can be shown: redacted and cut. */
export function formatSentence(text: string, model: string): string {
  const shown = truncate(redact(text, model), MAX_SERVICE_WORDS);
  return shown === "" || /[.!?…]$/.test(shown) ? shown : `${shown}.`;
}

// Control and direction characters could change what a terminal shows.
const INVISIBLE = /[\s\p{Cc}\p{Cf}]+/gu;

/** A text on one line, without characters that a terminal would act on. */
export function cleanText(text: string): string {
  return text.slice(0, MAX_TEXT).replaceAll(INVISIBLE, " ").trim();
}

export function truncate(text: string, length: number): string {
  if (text.length <= length) return text;
  // Never between the two halves of a character.
  return `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

const KEY_WORD =
  /\bkeys?\b|\b(?:access|auth\w*|bearer|security)[ _-]tokens?\b|\bsecrets?\b|\bcredentials?\b|\btoken\s?[:=]/i;
const LONG_TOKEN = /(?<![\w/.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?![\w-])/g;

/** The text without anything that looks like a key. The model's name may look like one. */
export function redact(text: string, model: string): string {
  const clean = redactKeys(text);
  if (!KEY_WORD.test(clean)) return clean;
  return clean.replaceAll(LONG_TOKEN, (token) => (model.includes(token) ? token : REDACTED));
}

export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/i.test(host);
}

const PAGE = /^\s*(?:<!doctype html|<html|<head|<body|<!--[^]{0,200}?<html)/i;
const TITLE = /<title[^>]{0,200}>([^<]{0,200})/i;

export function isPage(text: string): boolean {
  return PAGE.test(text.slice(0, MAX_TEXT));
}

export function parseTitle(text: string): string {
  return cleanText(TITLE.exec(text.slice(0, MAX_TEXT))?.[1] ?? "");
}

export function formatTitle(title: string): string {
  return title === "" ? "" : `, titled "${redact(title, "")}"`;
}

/** The host of an address, and no more: a path or a query may hold a key. */
export function parseHost(url: string | undefined): string {
  try {
    return url === undefined ? "" : new URL(url).host;
  } catch {
    return "";
  }
}
