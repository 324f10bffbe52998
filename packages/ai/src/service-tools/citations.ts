import { isRecord } from "../common/records.ts";
import type { AssistantContent, Citation } from "../messages/messages.ts";

/** The sources of a message, each once, in the order in which its texts first name them. */
export class CitedSources {
  readonly #sources: Citation[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(content: readonly AssistantContent[] = []) {
    for (const block of content) {
      if (block.type === "text") for (const one of toList(block.citations)) this.add(one);
    }
  }

  /** Number 1 is the first. The passages are those that were cited first. */
  get list(): readonly Citation[] {
    return this.#sources;
  }

  /** The number of the source of a citation. */
  add(citation: Citation): number {
    const key = citation.url ?? citation.fileId ?? citation.title ?? "";
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const { start: _, end: __, ...source } = citation;
    const number = this.#sources.push(source);
    this.#numbers.set(key, number);
    return number;
  }

  /** A text with the numbers of its sources after each passage: `Tea is old [1].` */
  mark(text: string, citations?: readonly Citation[]): string {
    const notes = new Map<number, Set<number>>();
    for (const citation of toList(citations)) {
      const { end = text.length } = citation;
      // Some services count other characters: a place that is not in the text is its end.
      const at = Number.isSafeInteger(end) && end > 0 && end < text.length ? end : text.length;
      const numbers = notes.get(at) ?? new Set();
      notes.set(at, numbers.add(this.add(citation)));
    }
    let marked = "";
    let from = 0;
    for (const [at, numbers] of [...notes].sort(([a], [b]) => a - b)) {
      const passage = text.slice(from, at);
      const kept = passage.trimEnd();
      marked += `${kept} [${[...numbers].join(", ")}]${passage.slice(kept.length)}`;
      from = at;
    }
    return marked + text.slice(from);
  }
}

/** A session file that was changed by hand may have anything there. */
function toList(citations: readonly Citation[] | undefined): readonly Citation[] {
  return Array.isArray(citations) ? citations.filter(isRecord) : [];
}

/** A source on one line: its title and its address, or what there is of them. */
export function formatSource({ fileId, page, title, url }: Citation): string {
  const name = [title, page === undefined ? undefined : `page ${page}`]
    .filter((part) => part !== undefined)
    .join(", ");
  const place = url ?? (title === undefined ? fileId : undefined);
  return [name, place].filter((part) => part !== undefined && part !== "").join(": ");
}
