import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./snippets.ts";

const page = readFileSync(join(root, "docs", "from-elsewhere.md"), "utf8");
const rows = [...page.matchAll(/^\| (?!elsewhere|---)(.+) \|$/gm)].map(([, cells = ""]) =>
  cells.split(" | "),
);

it("each name has an origin, what to write here, and a reason", () => {
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((cells) => cells.length !== 4 || cells.some((cell) => cell === ""))).toEqual(
    [],
  );
});

it("what to write here is there", () => {
  const reference = readdirSync(join(root, "docs", "reference"), {
    recursive: true,
    encoding: "utf8",
  })
    .filter((name) => name.endsWith(".md"))
    .map((name) => readFileSync(join(root, "docs", "reference", name), "utf8"))
    .join("\n");
  const manual = readFileSync(join(root, "packages", "cli", "man", "gyre.1"), "utf8").replaceAll(
    "\\-",
    "-",
  );
  const tools = readFileSync(join(root, "docs", "tools.md"), "utf8");
  const texts = [reference, manual, tools].join("\n");
  const missing = rows.flatMap(([, , here = ""]) =>
    [...here.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) =>
      [...code.matchAll(/(?<![\w"@/-])(?:agent\.|end\.|state\.)?([a-z]\w{2,}|STREAM_\w+)/g)]
        .map(([, name = ""]) => name)
        .filter((name) => !OURS.has(name) && !new RegExp(`\\b${name}\\b`).test(texts)),
    ),
  );
  expect(missing).toEqual([]);
});

/** Variables of the examples. */
const OURS: ReadonlySet<string> = new Set(["agent", "input", "listener", "prompt", "text", "new"]);
