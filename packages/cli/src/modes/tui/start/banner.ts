import { homedir } from "node:os";
import { sep } from "node:path";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { measureWidth, splitClusters, takeClusters } from "../../../text/width.ts";
import { fitRow, type Row, type Span, span, widthOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

/** Whether the settings, plugins, hooks and servers of a folder are used. */
export type FolderTrust = "trusted" | "trusted once" | "not trusted" | "nothing to trust";

export interface BannerFacts {
  version: string;
  model: string;
  /** Absolute. */
  folder: string;
  trust: FolderTrust;
  columns: number;
  theme: Theme;
  /** Shown as `~`. Default: the user's. */
  home?: string;
}

const GAP = " · ";
/** Fewer columns of a folder would say nothing. */
const MIN_FOLDER_COLUMNS = 6;

/**
 * The first line of the program: version, model, folder, trust. In a narrow terminal the beginning of the folder is
 * left out, then the trust, or the folder if it is not trusted; version and model stay longest.
 */
export function bannerRow(facts: BannerFacts): Row {
  const { columns, theme, trust, version } = facts;
  const head = [
    span("gyre", theme.strong),
    span(` ${oneLine(version)}${GAP}`, theme.dim),
    span(oneLine(facts.model), theme.accent),
  ];
  const folder = replaceHome(oneLine(facts.folder), facts.home ?? homedir());
  const isTrustShown = trust !== "nothing to trust";
  const tail = isTrustShown ? [span(GAP, theme.dim), trustSpan(trust, theme)] : [];
  const room = columns - widthOfRow(head) - measureWidth(GAP);
  const beside = room - widthOfRow(tail);
  const withFolder = (space: number): Span[] => [
    span(`${GAP}${shortenFolder(folder, space)}`, theme.dim),
  ];
  if (hasRoomFor(folder, beside)) return [...head, ...withFolder(beside), ...tail];
  if (trust === "not trusted") return fitRow([...head, ...tail], columns);
  if (hasRoomFor(folder, room)) return [...head, ...withFolder(room)];
  return fitRow(head, columns);
}

function trustSpan(trust: FolderTrust, theme: Theme): Span {
  return span(trust, trust === "not trusted" ? theme.warning : theme.dim);
}

function hasRoomFor(folder: string, columns: number): boolean {
  return columns >= Math.min(MIN_FOLDER_COLUMNS, measureWidth(folder));
}

function replaceHome(folder: string, home: string): string {
  if (folder === home) return "~";
  return home !== "" && folder.startsWith(home + sep) ? `~${folder.slice(home.length)}` : folder;
}

/** The end of a path, from the beginning of a name where one fits. */
function shortenFolder(folder: string, columns: number): string {
  if (measureWidth(folder) <= columns) return folder;
  const clusters = splitClusters(folder).reverse();
  const kept = takeClusters(clusters, columns - 1)
    .reverse()
    .join("");
  const name = kept.indexOf(sep);
  return `…${name > 0 ? kept.slice(name) : kept}`;
}
