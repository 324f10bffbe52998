import { fileURLToPath } from "node:url";
import { measureScript, median } from "../src/measure/measure.ts";
import { footprint } from "./footprint.ts";
import { type Column, loadPeer, parsePackageName } from "./peers.ts";
import { computeCell } from "./race.ts";
import type { Cell, ResultRow } from "../report/results.ts";

/** A start is short, so more of them are looked at. */
const IMPORT_ROUNDS = 11;

const here = fileURLToPath(new URL(".", import.meta.url));

/** What importing each library costs. */
export async function importRow(columns: readonly Column[], rounds: number): Promise<ResultRow> {
  const bare: number[] = [];
  const samples = new Map<string, number[]>();
  for (let round = 0; round < Math.max(rounds, IMPORT_ROUNDS); round++) {
    bare.push(measureScript("", here));
    for (const { id, folder = "gyre" } of columns) {
      const { imports } = await loadPeer(id);
      if (imports.length === 0) continue;
      const code = imports.map((name) => `await import(${JSON.stringify(name)});`).join("");
      samples.set(id, [...(samples.get(id) ?? []), measureScript(code, `${here}${folder}`)]);
    }
  }
  console.error("import: done");
  const none = median(bare);
  const cells = [...samples].map(([id, taken]): [string, Cell] => [
    id,
    computeCell(
      taken.map((ms) => ms - none),
      undefined,
    ),
  ]);
  const title = "importing it, CPU over bare Node";
  return { case: "import", size: 1, title, unit: "ms", cells: Object.fromEntries(cells) };
}

/** What installing each library brings. */
export async function installedRows(columns: readonly Column[]): Promise<ResultRow[]> {
  const weights = new Map<string, { packages: number; mb: number }>();
  for (const { id, folder = "gyre" } of columns) {
    const { imports } = await loadPeer(id);
    if (imports.length > 0)
      weights.set(id, footprint(`${here}${folder}`, imports.map(parsePackageName)));
  }
  const row = (title: string, unit: "MB" | "", of: "packages" | "mb"): ResultRow => ({
    case: "installed",
    size: 1,
    title,
    unit,
    cells: Object.fromEntries([...weights].map(([id, weight]) => [id, { median: weight[of] }])),
  });
  return [row("packages installed", "", "packages"), row("installed", "MB", "mb")];
}
