import { type AgentMessage, type PromptInput, toMessages } from "@gyre/agent";
import { DurableError } from "./errors.ts";

/** The most that an entry of the log may have. */
export const MAX_ENTRY_BYTES: number = 16 * 1024 * 1024;

const MEBIBYTE = 1024 * 1024;

/** The messages of a prompt, each as the JSON of an entry. Throws on one that is too large. */
export function encodeMessages(input: PromptInput): string[] {
  return toMessages(input, Date.now()).map((message) => {
    const data = JSON.stringify({ message });
    assertFits("The prompt", data);
    return data;
  });
}

/** The message of an entry. One of a result is a reference, and has none. */
export function findMessage(data: string): AgentMessage | undefined {
  return JSON.parse(data).message;
}

/** The messages that `encodeMessages` made. Throws on anything else. */
export function decodeMessages(list: unknown): AgentMessage[] {
  if (!Array.isArray(list)) throw new TypeError("Messages are a list.");
  return list.map((data: unknown) => {
    const message = findMessage(String(data));
    if (typeof message?.role === "string") return message;
    throw new TypeError("A message has a role.");
  });
}

/** What every index holds, also where two of them share one. */
const MAX_NAME_BYTES = 512;

/** Throws on an id, or another name, that not every store can keep as it is. */
export function assertName(what: string, name: unknown): void {
  const isKept =
    typeof name === "string" &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES &&
    !/\0|\p{Cs}/u.test(name);
  if (isKept) return;
  throw new DurableError(
    "invalid",
    `${what} is a text of at most ${MAX_NAME_BYTES} bytes, without NUL and without halves of characters: got ${JSON.stringify(name)?.slice(0, 80)}.`,
  );
}

/** Throws where an entry can never be stored. */
export function assertFits(what: string, data: string): void {
  const bytes = Buffer.byteLength(data);
  if (bytes > MAX_ENTRY_BYTES) throw new DurableError("too_large", explainSize(what, bytes));
}

/** Why something is not stored. */
export function explainSize(what: string, bytes: number): string {
  const size = (bytes / MEBIBYTE).toFixed(1);
  return `${what} has ${size} MiB, and an entry of a run has at most ${MAX_ENTRY_BYTES / MEBIBYTE} MiB: keep it elsewhere and give a reference to it.`;
}
