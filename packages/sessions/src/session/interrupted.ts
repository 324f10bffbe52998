import type { InterruptedRun } from "@gyre/agent";
import { addUsage, estimateMessageTokens, totalTokens, type Usage } from "@gyre/ai";
import { type Fields, parseEntry } from "../format/body.ts";
import type { EntryIndex } from "./entry-index.ts";
import type { EntryReader } from "./log.ts";

/**
 * What the last run of a branch had done, if it was cut off. `at`: the end of the branch. Nothing
 * is known of runs of versions that did not write when one starts.
 */
export async function readInterrupted(
  index: EntryIndex,
  reader: EntryReader,
  path: readonly number[],
  at: number,
): Promise<InterruptedRun | undefined> {
  const onBranch = new Set([0, ...path.map((place) => index.idAt(place))]);
  const starts: { place: number; fields: Fields }[] = [];
  for (let place = at; place >= 0; place--) {
    const type = index.typeAt(place);
    if ((type !== "start" && type !== "end") || !onBranch.has(index.parentAt(place))) continue;
    if (type === "end") break;
    const fields = await reader.one(place);
    starts.push({ place, fields });
    if (fields["durationMs"] === undefined) break;
  }
  const [newest] = starts;
  const first = starts.at(-1);
  const last = path.at(-1) ?? -1;
  if (!newest || !first || last < 0) return undefined;
  const spent = new Spent();
  const onPath = new Set(path);
  const places: number[] = [];
  for (let place = first.place + 1; place <= at; place++) {
    const type = index.typeAt(place);
    const isOfRun =
      type === "message"
        ? onPath.has(place)
        : type === "result" && onBranch.has(index.parentAt(place));
    if (isOfRun) places.push(place);
  }
  await reader.each(places, (fields) => spent.add(fields));
  const { durationMs = 0 } = newest.fields;
  const sinceMs = readTime(await reader.one(at)) - readTime(newest.fields);
  return { ...spent.count(), durationMs: Number(durationMs) + Math.max(0, sinceMs) };
}

function readTime({ timestamp }: Fields): number {
  return typeof timestamp === "number" ? timestamp : 0;
}

class Spent {
  readonly #terminated: string[] = [];
  #turns = 0;
  #usage: Usage = {};
  #tokens = 0;

  /** Takes a message or a result. */
  add(fields: Fields): void {
    const entry = parseEntry(fields, { id: 0, parentId: null });
    if (entry?.type === "result") {
      const { usage, terminate } = entry.result;
      if (terminate) this.#terminated.push(entry.toolCallId);
      if (usage) this.#pay(usage, totalTokens(usage));
    } else if (entry?.type === "message" && entry.message.role === "assistant") {
      const { usage } = entry.message;
      this.#turns++;
      this.#pay(usage, totalTokens(usage) || estimateMessageTokens(entry.message));
    }
  }

  count(): Omit<InterruptedRun, "durationMs"> {
    return {
      turns: this.#turns,
      usage: this.#usage,
      tokens: this.#tokens,
      ...(this.#terminated.length > 0 && { terminated: this.#terminated }),
    };
  }

  #pay(usage: Usage, tokens: number): void {
    this.#usage = addUsage(this.#usage, usage);
    this.#tokens += tokens;
  }
}
