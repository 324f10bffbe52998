import { isRecord } from "@gyre/ai";
import { type Fields } from "../format/body.ts";

/** Whether a first line is that of a session file of pi's harness. */
export function isHarnessHeader({ kind, v, id }: Fields): boolean {
  return kind === "header" && typeof v === "number" && typeof id === "string";
}

/** What was written with a line: one thing, or a list of those that belong together. */
export function parseWrites(bytes: Buffer): unknown[] {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return Array.isArray(value) ? value : [value];
  } catch {
    // Callers report the damage.
    return [undefined];
  }
}

/** What the harness keeps beside its tree, by name: the last of each counts. */
export class HarnessValues {
  readonly #kept = new Map<string, Fields>();

  take(write: Fields, line: number): void {
    const name = JSON.stringify([write["namespace"], write["key"]]);
    // A value that is set again comes last.
    this.#kept.delete(name);
    if (write["op"] !== "delete") this.#kept.set(name, { ...write, line });
  }

  /**
   * The same as entries of version 3, with the `line` of each, to follow the tree. The first
   * says where it ends: at the end of the branch "main", or else of the one that moved last.
   */
  entries(): Fields[] {
    const kept = [...this.#kept.values()];
    const tips = kept.filter(({ namespace }) => namespace === "pi.branch.tip");
    const tip = tips.find(({ key }) => key === "main") ?? tips.at(-1);
    const end = tip ? [{ line: tip["line"], type: "leaf", targetId: tip["value"] }] : [];
    return [...end, ...kept.flatMap((each) => convertValue(each, tip?.["key"]))];
  }
}

function convertValue({ namespace, key, value, line }: Fields, branch: unknown): Fields[] {
  if (namespace === "pi.session.name") return [{ line, type: "session_info", name: value }];
  if (namespace === "pi.entry.label") return [{ line, type: "label", targetId: key, label: value }];
  if (namespace === "pi.lane.config" && key === branch && isRecord(value)) {
    const { model, thinkingLevel } = value;
    const level = { line, type: "thinking_level_change", thinkingLevel };
    return [{ ...(isRecord(model) && model), line, type: "model_change" }, level];
  }
  // A queued message and values of other programs are reported; the rest is the progress of a run.
  const isOwn = String(namespace).startsWith("pi.") && namespace !== "pi.pending.entry";
  return isOwn ? [] : [{ line, type: namespace }];
}
