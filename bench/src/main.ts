import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { cases as loopCases, type Line, measureMemory } from "./cases.ts";
import { serviceCases } from "./services.ts";

const { values } = parseArgs({
  options: {
    case: { type: "string", multiple: true },
    json: { type: "boolean" },
    memory: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});

const cases = [...loopCases, ...serviceCases];
const names = cases.map(({ name }) => name);

if (values.help) {
  console.log(`npm run bench [-- --case NAME]...\n\nCases: ${names.join(", ")}`);
} else if (values.memory) {
  console.log(await measureMemory(values.memory));
} else if (values.json) {
  const wanted = values.case?.[0];
  const found = cases.find(({ name }) => name === wanted);
  console.log(JSON.stringify(await found?.run()));
} else {
  const wanted = values.case ?? names;
  for (const name of wanted) {
    if (!names.includes(name))
      throw new Error(`No case "${name}". There are: ${names.join(", ")}.`);
  }
  console.log(`Gyre against a hand-written floor. Node ${process.version}, CPU medians.\n`);
  const lines = wanted.flatMap(isolated);
  console.log(table(lines));
  const missed = lines.filter(({ measured, limit }) => !(measured <= limit)).length;
  console.log(`\n${lines.length - missed} of ${lines.length} within their limits`);
}

/** Each case in a process of its own, so that none warms up or litters another. */
function isolated(name: string): Line[] {
  const args = ["--expose-gc", process.argv[1] ?? "", "--json", "--case", name];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as Line[];
}

function table(lines: readonly Line[]): string {
  const rows = [
    ["", "floor", "gyre", "measured", "at most", ""],
    ...lines.map((line) => [
      line.what,
      line.floor ?? "",
      line.gyre,
      `${line.measured.toFixed(2)}${line.unit}`,
      `${line.limit}${line.unit}`,
      line.measured <= line.limit ? "ok" : "MISSED",
    ]),
  ];
  const widths = rows[0]?.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths?.[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
