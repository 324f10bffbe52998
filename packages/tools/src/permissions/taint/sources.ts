import { takeNames } from "./names.ts";

/** Where a name was seen. */
export interface Origin {
  kind: string;
  /** The path, address, server and tool, or command line. */
  name: string;
  /** It is known that others wrote it. Absent: that depends on the files. */
  isForeign?: boolean;
  /** The files that it may show, from the workspace or absolute. */
  files?: readonly string[];
}

/** The names that are remembered. The oldest are forgotten first. */
export const MAX_NAMES = 200_000;
/** Of a name; one is enough for a question. */
const MAX_ORIGINS = 8;
/** Of one text. */
export const MAX_TEXT_CHARS = 2_000_000;
/** How many are forgotten at a time. */
const FORGOTTEN_SHARE = 0.1;

/** Where names were seen first: with the user, with the model, or in a text from elsewhere. */
export class SourceIndex {
  readonly #origins = new Map<string, Origin[]>();
  readonly #users = new Set<string>();
  readonly #models = new Set<string>();

  /** What the user wrote, or stands for. */
  addUser(text: string): void {
    takeNames(text.slice(0, MAX_TEXT_CHARS), (key) => this.#users.add(key));
    forgetOldest(this.#users);
  }

  /** Names that a person approved. */
  addKeys(keys: readonly string[]): void {
    for (const key of keys) this.#users.add(key);
  }

  /** What the model wrote: what it names before a source does comes from no source. */
  addModel(text: string): void {
    takeNames(text.slice(0, MAX_TEXT_CHARS), (key) => {
      if (!this.#origins.has(key)) this.#models.add(key);
    });
    forgetOldest(this.#models);
  }

  addSource(text: string, origin: Origin): void {
    takeNames(text.slice(0, MAX_TEXT_CHARS), (key) => this.addOrigin(key, origin));
    forgetOldest(this.#origins);
  }

  addOrigin(key: string, origin: Origin): void {
    if (this.#models.has(key)) return;
    const known = this.#origins.get(key);
    if (!known) this.#origins.set(key, [origin]);
    else if (known.length < MAX_ORIGINS && !known.includes(origin)) known.push(origin);
  }

  isUsers(key: string): boolean {
    return this.#users.has(key);
  }

  find(key: string): readonly Origin[] {
    return this.#origins.get(key) ?? [];
  }
}

function forgetOldest(known: Set<string> | Map<string, unknown>): void {
  if (known.size <= MAX_NAMES) return;
  let left = known.size - MAX_NAMES * (1 - FORGOTTEN_SHARE);
  for (const key of known.keys()) {
    if (left-- <= 0) return;
    known.delete(key);
  }
}
