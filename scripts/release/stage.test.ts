import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../docs/snippets.ts";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";
import { stagePackage } from "./stage.mjs";

it.each(listPackages(root))("the links of $room work where it is installed", (one) =>
  inTemporaryFolder((folder) => {
    stagePackage(root, one, folder);
    const pages = ["README.md"];
    for (const page of pages) {
      const text = readFileSync(join(folder, page), "utf8");
      for (const [, link = ""] of text.matchAll(/\]\(((?!#|[a-z]+:)[^)\s#]+)/g)) {
        const target = join(dirname(page), link);
        expect(existsSync(join(folder, target)), `${page}: ${link}`).toBe(true);
        if (!pages.includes(target)) pages.push(target);
      }
    }
    expect(pages.length).toBeGreaterThan(1);
    expect(readFileSync(join(folder, "llms.txt"), "utf8")).toMatch(/^# Gyre\n/);
  }),
);

it("no package has entry points that are for our own programs alone", () =>
  inTemporaryFolder((folder) => {
    const one = listPackages(root).find(({ room }) => room === "coding");
    expect(Object.keys(one?.manifest.exports ?? {})).toContain("./internal/settings/load");
    if (one) stagePackage(root, one, folder);
    const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    expect(Object.keys(exports)).toEqual([".", "./package.json"]);
  }));
