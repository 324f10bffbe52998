import type { PathSnapshot } from "./lines/snapshot.ts";

/** What a file is or was. */
export interface Content {
  kind: "file" | "link";
  mode: number;
  bytes: Uint8Array;
}

/** Null: there is none. A text: why it is not known or cannot be kept. */
export type MaybeContent = Content | null | string;

export function contentSeen(seen: PathSnapshot): MaybeContent {
  if (seen.kind === "skipped") return seen.why;
  if (seen.kind !== "file" && seen.kind !== "link") return null;
  const { kind, mode, bytes } = seen;
  return { kind, mode, bytes };
}

export function isThere({ kind }: PathSnapshot): boolean {
  return kind === "file" || kind === "link" || kind === "skipped";
}

export function isSameContent(one: MaybeContent, other: MaybeContent): boolean {
  if (typeof one === "string" || typeof other === "string") return false;
  if (!one || !other) return one === other;
  return (
    one.kind === other.kind &&
    one.mode === other.mode &&
    Buffer.compare(one.bytes, other.bytes) === 0
  );
}

export function whyNot(content: MaybeContent): string | undefined {
  return typeof content === "string" ? content : undefined;
}

/** Whether an ignore file has a rule for what is not to be ignored after all. */
export function takesBack(content: MaybeContent): boolean {
  if (content === null || typeof content === "string") return false;
  return /^!/m.test(new TextDecoder().decode(content.bytes));
}
