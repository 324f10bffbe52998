/** A piece of thinking as gateways give it, and want it back: text, a summary, or sealed. */
export interface ReasoningDetail {
  type?: string;
  index?: number | null;
  text?: string | null;
  summary?: string | null;
  [field: string]: unknown;
}

/** What of a piece can be read. */
export function detailText({ text, summary }: ReasoningDetail): string {
  return text ?? summary ?? "";
}

/**
 * Whole details, of the pieces that a stream cut them into. Pieces of the same type and
 * index are one: their texts are joined, and what a later piece says beside its text
 * holds. What is sealed comes whole.
 */
export function mergedDetails(pieces: readonly ReasoningDetail[]): ReasoningDetail[] {
  const whole: ReasoningDetail[] = [];
  const known = new Map<string, ReasoningDetail>();
  for (const piece of pieces) {
    const key = `${piece.type} ${piece.index}`;
    const detail = known.get(key);
    if (!detail || "data" in piece) {
      const begun = { ...piece };
      whole.push(begun);
      known.set(key, begun);
      continue;
    }
    for (const [name, value] of Object.entries(piece)) {
      if (value === null || value === undefined) continue;
      const joins = (name === "text" || name === "summary") && typeof value === "string";
      detail[name] = joins ? `${detail[name] ?? ""}${value}` : value;
    }
  }
  return whole;
}
