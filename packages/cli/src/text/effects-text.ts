import type { EffectsReport, ShownEffect } from "@gyre/tools";
import { counted } from "./tool-text.ts";

const OCTAL = 8;
const SIGNS = {
  create: "+",
  modify: "~",
  replace: "~",
  mode: "~",
  delete: "-",
  special: "!",
} as const;

/** How a command ended in its layer, and how much it did: one line. */
export function summarizeEffects({
  exitCode,
  timedOut,
  durationMs,
  effects,
}: EffectsReport): string {
  const end = timedOut ? "timed out" : exitCode === null ? "ended by a signal" : `exit ${exitCode}`;
  const seconds = `${(durationMs / 1000).toFixed(1)} s`;
  return `Ran in a layer (${seconds}, ${end}): ${countEffects(effects)}.`;
}

/** As "2 new, 1 changed, 1 deleted". */
export function countEffects(effects: readonly ShownEffect[]): string {
  const count = (...kinds: readonly ShownEffect["kind"][]): ShownEffect[] =>
    effects.filter(({ kind }) => kinds.includes(kind));
  const deleted = count("delete");
  const inFolders = deleted.reduce((sum, { below = 0 }) => sum + below, 0);
  const parts = [
    [count("create").length, "new"],
    [count("modify", "replace").length, "changed"],
    [count("mode").length, "with other rights"],
    [
      deleted.length,
      inFolders > 0 ? `deleted (${counted(inFolders, "entry", "entries")} in folders)` : "deleted",
    ],
    [count("special").length, "not kept"],
  ] as const;
  const shown = parts.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`);
  return shown.join(", ") || "nothing was changed";
}

/** One effect on a line, without what stands in the way of keeping it. */
export function effectText({ kind, type, path, below, mode }: ShownEffect): string {
  const name = type === "folder" ? `${path}/` : path;
  const what = {
    create: type === "file" ? "new" : `new ${type}`,
    modify: "changed",
    replace: `is a ${type} now`,
    mode: mode ? `rights ${octal(mode.from)} to ${octal(mode.to)}` : "rights",
    delete: below ? `deleted, with ${counted(below, "entry", "entries")} in it` : "deleted",
    special: "a pipe, socket or device, not kept",
  }[kind];
  return `${SIGNS[kind]} ${name}: ${what}`;
}

function octal(mode: number): string {
  return mode.toString(OCTAL);
}

/** Whether an answer may keep it. */
export function canKeep({ conflict, kind }: ShownEffect): boolean {
  return conflict === undefined && kind !== "special";
}
