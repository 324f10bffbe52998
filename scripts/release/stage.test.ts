import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../docs/snippets.ts";
import { someCases } from "../../tests/support/cases.ts";
import { readAddresses } from "../shared/addresses.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";
import { pack } from "./pack.mjs";
import { stagePackage } from "./stage.mjs";

const REPOSITORY = `${readAddresses(root)?.repository ?? ""}/blob/main/`;

/** The headings of a page as anchors, as the usual hosts of repositories make them. */
function listAnchors(page: string): string[] {
  return [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
}

/** Why a link of a page leads nowhere; nothing where it leads somewhere. */
function explainLink(file: string, anchor: string | undefined): string | undefined {
  if (!existsSync(file)) return "there is no such file";
  if (anchor === undefined || statSync(file).isDirectory() || !file.endsWith(".md"))
    return undefined;
  return listAnchors(readFileSync(file, "utf8")).includes(anchor)
    ? undefined
    : "there is no such heading";
}

/**
 * Follows every link from the README of an installed package to its other pages, and from those on.
 * Addresses of the repository have to be files of it.
 */
function followLinks(folder: string): { pages: string[]; problems: string[] } {
  const pages = ["README.md"];
  const problems: string[] = [];
  for (const page of pages) {
    const prose = readFileSync(join(folder, page), "utf8").replaceAll(/^```[\s\S]*?^```/gm, "");
    for (const [, link = ""] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      const isOurs = link.startsWith(REPOSITORY);
      if (!isOurs && /^[a-z]+:/.test(link)) continue;
      const [path = "", anchor] = (isOurs ? link.slice(REPOSITORY.length) : link).split("#");
      const target = path === "" ? page : join(dirname(page), path);
      const why = explainLink(isOurs ? join(root, path) : join(folder, target), anchor);
      if (why !== undefined) problems.push(`${page}: ${link}: ${why}`);
      else if (!isOurs && target.endsWith(".md") && !pages.includes(target)) pages.push(target);
    }
  }
  return { pages, problems };
}

describe.each(listPackages(root))("the pages of $room, where it is installed", (one) => {
  it("have links that lead somewhere, headings included", () =>
    inTemporaryFolder((folder) => {
      stagePackage(root, one, folder);
      const { pages, problems } = followLinks(folder);
      expect(problems).toEqual([]);
      expect(pages.length).toBeGreaterThan(1);
      expect(readFileSync(join(folder, "llms.txt"), "utf8")).toMatch(/^# Gyre\n/);
    }));
});

it.each([
  [
    "agent",
    "getting-started tools structured-output human-in-the-loop multi-agent streaming-to-a-page testing observability deploying serverless-and-edge troubleshooting from-ai-sdk from-elsewhere limits models context",
  ],
  ["ai", "models providers streams testing tools local-models from-ai-sdk"],
  ["tools", "tools workspace-tools permissions mcp"],
  ["mcp", "mcp"],
  ["sessions", "sessions human-in-the-loop"],
  [
    "cli",
    "terminal cli configuration permissions effects workspace-tools sessions models local-models editors mcp plugins skills diagnostics troubleshooting",
  ],
])("%s has the pages of its tasks with it, and llms.txt leads to them", (room, names) =>
  inTemporaryFolder((folder) => {
    const one = listPackages(root).find((each) => each.room === room);
    if (!one) throw new Error(`There is no package ${room}.`);
    stagePackage(root, one, folder);
    const llms = readFileSync(join(folder, "llms.txt"), "utf8");
    const missing = names
      .split(" ")
      .map((name) => `docs/${name}.md`)
      .filter((page) => !existsSync(join(folder, page)) || !llms.includes(`](${page}`));
    expect(missing).toEqual([]);
    const local = [...llms.matchAll(/\]\((docs\/[^)#]+)/g)].map(([, path = ""]) => path);
    expect(local.filter((path) => !existsSync(join(folder, path)))).toEqual([]);
    // A program is there, or is not listed.
    expect([...llms.matchAll(/\]\(https:[^)]*docs\/programs\/[^)]*/g)].map(String)).toEqual([]);
  }),
);

it("the program has a page that leads to its others, with their headings", () =>
  inTemporaryFolder((folder) => {
    const one = listPackages(root).find(({ room }) => room === "cli");
    if (!one) throw new Error("There is no program.");
    stagePackage(root, one, folder);
    const index = readFileSync(join(folder, "docs/README.md"), "utf8");
    expect(index).toMatch(/^- \[Configuration\]\(configuration\.md\): Precedence; Settings;/m);
    const named = [...index.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name = ""]) => name);
    const shipped = readdirSync(join(folder, "docs")).filter((name) => name.endsWith(".md"));
    expect(new Set(["README.md", ...named])).toEqual(new Set(shipped));
  }));

it("a link that leads nowhere would be found", () => {
  const page = join(root, "README.md");
  expect(explainLink(page, undefined)).toBeUndefined();
  expect(explainLink(page, "coding-agent")).toBeUndefined();
  expect(explainLink(page, "no-such-heading")).toBe("there is no such heading");
  expect(explainLink(join(root, "docs/no-such-page.md"), undefined)).toBe("there is no such file");
});

it.each(someCases(1, listPackages(root)))(
  "the tarball of $room has these pages in it",
  { tags: "long" },
  (one) =>
    inTemporaryFolder(async (folder) => {
      const { tarball } = await pack(one, folder);
      execFileSync("tar", ["-xzf", tarball, "-C", folder]);
      const { pages, problems } = followLinks(join(folder, "package"));
      expect(problems).toEqual([]);
      expect(pages.length).toBeGreaterThan(1);
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

it("the coding agent knows its version where it is installed", () =>
  inTemporaryFolder(async (folder) => {
    const one = listPackages(root).find(({ room }) => room === "coding");
    if (!one) throw new Error("There is no package coding.");
    stagePackage(root, one, folder);
    // It is not among what is packed, and what it extends is not there.
    rmSync(join(folder, "tsconfig.json"));
    const { version } = await import(join(folder, "src/core/version.ts"));
    expect(version()).toBe(one.manifest.version);
  }));
