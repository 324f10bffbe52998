import { join } from "node:path";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { EffectsReport, ShownEffect } from "../contract/rehearsal.ts";
import { sanitize } from "@gyre/ai/text";
import type { Workspace } from "../workspace/workspace.ts";
import { type BytePath, readable, toBytes, toText } from "./byte-path.ts";
import { type Conflict, findConflicts } from "./conflicts.ts";
import type { Effect } from "./effect.ts";
import { HeldFolders } from "./held-folders.ts";
import { isUsualSize, noteEffect } from "./judge.ts";
import { UPPER } from "./keep.ts";
import type { Layer } from "./layers.ts";
import { findUsers } from "./open-files.ts";

/** Of a longer text no change is shown. */
const MAX_TEXT_BYTES = 64 * 1024;
/** Of all texts together. */
const MAX_TEXTS_BYTES = 1024 * 1024;
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** How a command ended. */
type End = Pick<EffectsReport, "exitCode" | "timedOut" | "durationMs">;

/** What is shown of the effects of a command, and whether they are harmless. */
export async function reportEffects(
  layer: Layer,
  effects: readonly Effect[],
  workspace: Workspace,
  end: End,
): Promise<EffectsReport> {
  const { root } = layer.home;
  const held = new HeldFolders(root);
  try {
    const conflicts = new Map<number, Conflict>();
    for (const each of await findConflicts(held, effects, layer.since))
      conflicts.set(each.id, each);
    const users = findUsers(root, effects);
    for (const { id, path, name, pid, writes } of users) {
      if (writes) conflicts.set(id, { id, path, why: `is open in ${name} (${pid})` });
    }
    const texts = new Texts(held, layer.folder);
    const shown: ShownEffect[] = [];
    for (const effect of effects) {
      const conflict = conflicts.get(effect.id)?.why;
      const notes = await noteEffect(effect, workspace, users);
      shown.push(showEffect(effect, conflict, notes, texts.read(effect)));
    }
    const isKnown = end.exitCode !== null && !end.timedOut;
    return {
      ...end,
      effects: shown.toSorted((one, other) => rank(one) - rank(other)),
      isHarmless: isKnown && isUsualSize(effects) && shown.every((each) => rank(each) === LAST),
    };
  } finally {
    held.close();
  }
}

const LAST = 2;

/** What is to be seen first. */
function rank({ conflict, notes }: ShownEffect): number {
  if (conflict !== undefined) return 0;
  return notes.length > 0 ? 1 : LAST;
}

function showEffect(
  { id, path, kind, type, below, mode, before }: Effect,
  conflict: string | undefined,
  notes: readonly string[],
  texts: ShownEffect["texts"],
): ShownEffect {
  const target = toText(path);
  return {
    id,
    path: safe(readable(path) || "."),
    ...(target !== undefined && { target: target || "." }),
    kind,
    type,
    ...(conflict !== undefined && { conflict: safe(conflict) }),
    notes: notes.map(safe),
    ...(below !== undefined && { below }),
    ...(kind === "mode" && before && { mode: { from: before.record.mode, to: mode ?? 0 } }),
    ...(texts && { texts }),
  };
}

function safe(text: string): string {
  return sanitize(text, { keepNewlines: false, exact: true });
}

/** Reads what files were and are, as long as it is not too much. */
class Texts {
  readonly #held: HeldFolders;
  readonly #folder: string;
  #left = MAX_TEXTS_BYTES;

  constructor(held: HeldFolders, folder: string) {
    this.#held = held;
    this.#folder = folder;
  }

  read({ path, kind, type, before }: Effect): ShownEffect["texts"] {
    if (type !== "file" || (before && before.type !== "file")) return undefined;
    if (kind === "mode" || kind === "special") return undefined;
    const isGone = kind === "delete";
    const old = before ? this.#text(() => this.#held.way(path)) : "";
    const now = isGone ? "" : this.#text(() => this.#inLayer(path));
    return old === undefined || now === undefined ? undefined : { before: old, after: now };
  }

  #inLayer(path: BytePath): Buffer {
    return Buffer.concat([Buffer.from(join(this.#folder, UPPER, "/")), toBytes(path)]);
  }

  #text(way: () => Buffer): string | undefined {
    try {
      const handle = openSync(way(), READ);
      try {
        const { size } = fstatSync(handle);
        if (size > Math.min(MAX_TEXT_BYTES, this.#left)) return undefined;
        const bytes = Buffer.alloc(size);
        const length = readSync(handle, bytes);
        this.#left -= length;
        const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
        return text.includes("\0") ? undefined : text;
      } finally {
        closeSync(handle);
      }
    } catch {
      // Gone meanwhile, closed to us, or no text: then it is named alone.
      return undefined;
    }
  }
}
