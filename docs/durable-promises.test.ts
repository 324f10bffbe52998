import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listFiles } from "../scripts/check/words.mjs";
import { CONFORM_FILES } from "../tests/durable/src/conform.ts";
import { root } from "./snippets.ts";

const PROMISES = Array.from({ length: 30 }, (_, index) => `D${index + 1}`);
const page = readFileSync(join(root, "docs/durable-promises.md"), "utf8");
const rows = [...page.matchAll(/^\| (D\d+) \|.*\| (.*) \|$/gm)].map(
  ([, promise = "", tests = ""]) => ({
    promise,
    tests: [...tests.matchAll(/\[(\w+)\]/g)].map(([, name]) => name ?? ""),
  }),
);
const links = new Map(
  [...page.matchAll(/^\[(\w+)\]: \.\.\/(.+)$/gm)].map(([, name, path]) => [name, path ?? ""]),
);
const titles = listFiles(root)
  .filter((path) => /^(?:packages\/durable|docs)\/.*\.test\.ts$/.test(path))
  .flatMap((path) => readTitles(path, readFileSync(join(root, path), "utf8")));

interface Title {
  readonly path: string;
  readonly promises: readonly string[];
  readonly stores: readonly ("file" | "postgres")[];
}

describe("the promises of durable runs", () => {
  it("are each written down once, in order", () => {
    expect(rows.map(({ promise }) => promise)).toEqual(PROMISES);
  });

  it("each have tests by their number on a file and on Postgres", () => {
    const missing = PROMISES.flatMap((promise) =>
      (["file", "postgres"] as const)
        .filter(
          (store) =>
            !titles.some(
              ({ promises, stores }) => promises.includes(promise) && stores.includes(store),
            ),
        )
        .map((store) => `${promise} has no test on ${store}`),
    );
    expect(missing).toEqual([]);
  });

  it("each name the files of their tests", () => {
    for (const { promise, tests } of rows) {
      for (const name of tests) {
        const path = links.get(name);
        const isTested = titles.some(
          (title) => title.path === path && title.promises.includes(promise),
        );
        expect.soft(isTested, `${promise} in ${path ?? name}`).toBe(true);
      }
    }
  });

  it("are all there are: no title has another", () => {
    const cited = titles.flatMap(({ promises }) => promises);
    expect(cited.filter((promise) => !PROMISES.includes(promise))).toEqual([]);
  });

  it.each([
    ['  it("D3, D11 the run goes on", async', ["D3", "D11"], ["file", "postgres"]],
    ['  ])("D14 a step waits", async', ["D14"], ["file", "postgres"]],
    ['  it.runIf(isFile)("D2 no entry", async', ["D2"], ["file"]],
    ['  it.runIf(isFile)(\n    "D2 no entry",', ["D2"], ["file"]],
    ['  it.each([1])(\n    "D28 a clock",', ["D28"], ["file", "postgres"]],
    ["  // D3: numbers", [], []],
  ])("the title in %j", (text, promises, stores) => {
    const found = readTitles(CONFORM_FILES[0] ?? "", text);
    expect(found.flatMap((title) => title.promises)).toEqual(promises);
    expect(found.flatMap((title) => title.stores)).toEqual(stores);
  });
});

/** The numbers at the beginning of titles, and the stores that these tests run on. */
function readTitles(path: string, text: string): Title[] {
  return [...text.matchAll(/^(.*)\(\s*"((?:D\d+, )*D\d+) /gm)].map(
    ([, before = "", promises = ""]) => ({
      path,
      promises: promises.split(", "),
      stores: findStores(path, before),
    }),
  );
}

function findStores(path: string, before: string): Title["stores"] {
  if (path.includes("/postgres/")) return ["postgres"];
  if (path.endsWith("contract/store.test.ts")) return ["file", "postgres"];
  return CONFORM_FILES.includes(path) && !before.includes("isFile")
    ? ["file", "postgres"]
    : ["file"];
}
