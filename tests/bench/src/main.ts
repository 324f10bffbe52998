import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { cacheCases } from "./library/cache.ts";
import { cases as loopCases, measureMemory } from "./library/cases.ts";
import type { Case, Line } from "./measure/lines.ts";
import { cliCases } from "./program/cli.ts";
import { durableCases } from "./program/durable.ts";
import { fileCases } from "./program/files.ts";
import { listCases } from "./program/lists.ts";
import { serviceCases } from "./library/services.ts";
import { sseCases } from "./library/sse.ts";
import { tuiCases } from "./program/tui.ts";
import { wireCases } from "./wire/wire.ts";

interface Group {
  /** What the figures stand beside. */
  beside: string;
  about: string;
  cases: readonly Case[];
}

const GROUPS: Readonly<Record<string, Group>> = {
  loop: { beside: "floor", about: "Gyre against a hand-written floor", cases: loopCases },
  services: { beside: "floor", about: "The wires against a floor", cases: serviceCases },
  sse: {
    beside: "eventsource-parser",
    about: "Our decoder of event streams beside the library's",
    cases: sseCases,
  },
  cache: { beside: "sliding window", about: "Prompts that services know", cases: cacheCases },
  cli: {
    beside: "best on Node",
    about:
      "The program; beside it the best other one on Node, measured where bare Node takes 81 ms",
    cases: cliCases,
  },
  tui: {
    beside: "best on Node",
    about: "The program in a terminal; beside it the best other one on Node",
    cases: tuiCases,
  },
  files: {
    beside: "floor",
    about: "Commands and searches in a large workspace (wall time; GYRE_FILES sets how large)",
    cases: fileCases,
  },
  lists: {
    beside: "floor",
    about: "Pages of 50 of 20,000 sessions (wall time)",
    cases: listCases,
  },
  durable: {
    beside: "session file",
    about: "Durable runs in an SQLite file, every commit synced (wall time)",
    cases: durableCases,
  },
  wire: {
    beside: "bare ws",
    about: "Models over a WebSocket; beside it one that sends the same frames and does no more",
    cases: wireCases,
  },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    case: { type: "string", multiple: true },
    json: { type: "boolean" },
    memory: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});

const cases = Object.values(GROUPS).flatMap((group) => group.cases);
const names = cases.map(({ name }) => name);
const groups = Object.keys(GROUPS);

if (values.help) {
  console.log(
    `npm run bench [-- GROUP...] [-- --case NAME...]\n\nGroups: ${groups.join(", ")}\nCases: ${names.join(", ")}`,
  );
} else if (values.memory) {
  console.log(await measureMemory(values.memory));
} else if (values.json) {
  const wanted = values.case?.[0];
  const found = cases.find(({ name }) => name === wanted);
  console.log(JSON.stringify(await found?.run()));
} else {
  refuseUnknown("group", positionals, groups);
  refuseUnknown("case", values.case ?? [], names);
  const all = positionals.length === 0 && values.case === undefined;
  const lines: Line[] = [];
  for (const [name, { about, beside, cases }] of Object.entries(GROUPS)) {
    const whole = all || positionals.includes(name);
    const wanted = cases.filter((one) => whole || values.case?.includes(one.name));
    if (wanted.length === 0) continue;
    console.log(`${about}. Node ${process.version}, CPU medians.\n`);
    const found = wanted.flatMap((one) => isolated(one.name));
    console.log(`${table(found, beside)}\n`);
    lines.push(...found);
  }
  const missed = lines.filter(({ measured, limit }) => !(measured <= limit)).length;
  console.log(`${lines.length - missed} of ${lines.length} within their limits`);
}

function refuseUnknown(what: string, given: readonly string[], known: readonly string[]): void {
  for (const name of given) {
    if (!known.includes(name)) {
      throw new Error(`No ${what} "${name}". There are: ${known.join(", ")}.`);
    }
  }
}

/** Each case in a process of its own, so that none warms up or litters another. */
function isolated(name: string): Line[] {
  const args = ["--expose-gc", process.argv[1] ?? "", "--json", "--case", name];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as Line[];
}

function table(lines: readonly Line[], beside: string): string {
  const rows = [
    ["", beside, "gyre", "measured", "at most", ""],
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
