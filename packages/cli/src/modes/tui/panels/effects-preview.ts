import type { EffectsReport, ShownEffect } from "@gyre/tools";
import { effectText } from "../../../text/effects-text.ts";
import { type Row, row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapText } from "../terminal/wrap.ts";
import { diffTexts, fileRows } from "../transcript/diff-view.ts";

/** Of one file, so many rows of its change. */
const MAX_ROWS_A_FILE = 60;
const INDENT = 2;

/** What a command did in its layer: what cannot be kept first, then each effect with its change. */
export function effectRows(
  { effects }: EffectsReport,
  theme: Theme,
  columns: number,
  safeLine: (text: string) => string,
): Row[] {
  return effects.flatMap((effect) => [
    ...wrapText(effectText(effect), columns, findStyle(effect, theme)),
    ...listNotes(effect).flatMap((text) => wrapText(`  ! ${text}`, columns, theme.warning)),
    ...changeRows(effect, theme, columns, safeLine),
  ]);
}

/** Which conflict it is stands above all effects. */
function listNotes({ conflict, notes }: ShownEffect): string[] {
  return [...(conflict === undefined ? [] : [`It ${conflict}.`]), ...notes];
}

function findStyle({ kind }: ShownEffect, { added, removed, strong }: Theme): string {
  if (kind === "create") return added;
  return kind === "delete" ? removed : strong;
}

function changeRows(
  { kind, path, texts }: ShownEffect,
  theme: Theme,
  columns: number,
  safeLine: (text: string) => string,
): Row[] {
  // What was deleted is said by its name.
  if (!texts || kind === "delete") return [];
  const lines = diffTexts(texts.before, texts.after);
  return fileRows([{ path, lines }], {
    theme,
    columns,
    indent: INDENT,
    maxRows: MAX_ROWS_A_FILE,
    shown: safeLine,
  });
}

/** A list of effects with a box each: which of them are kept. */
export function pickRows(
  effects: readonly ShownEffect[],
  picked: ReadonlySet<number>,
  marked: number,
  room: number,
  theme: Theme,
): Row[] {
  const top = Math.max(0, Math.min(marked - Math.floor(room / 2), effects.length - room));
  return effects.slice(top, top + room).map((effect, index) => {
    const box =
      effect.conflict === undefined && effect.kind !== "special"
        ? picked.has(effect.id)
          ? "[x]"
          : "[ ]"
        : " ! ";
    const isMarked = top + index === marked;
    return row(
      `${isMarked ? "› " : "  "}${box} ${effectText(effect)}`,
      isMarked ? theme.selected : "",
    );
  });
}
