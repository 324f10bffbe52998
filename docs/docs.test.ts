import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toAnchor } from "../scripts/docs/site/browser/anchors.mjs";
import { run } from "../scripts/shared/command.mjs";
import { listExampleManifests } from "../scripts/shared/workspace.mjs";
import {
  compile,
  type Compiled,
  forEachParallel,
  readFences,
  pages,
  findProblem,
  root,
  type Snippet,
  readSnippets,
} from "./snippets.ts";
import { countCases, pickSeed } from "../tests/support/cases.ts";

/** Programs that run at the same time: starting Node is most of what one takes. */
const WIDTH = 3;

let folder: string;
let all: Map<string, string>;

beforeAll(async () => {
  if (!existsSync(join(root, "packages/agent/dist/index.js"))) {
    throw new Error("The pages' programs use the built packages: run `npm run build` first.");
  }
  await mkdir(join(root, ".tmp"), { recursive: true });
  folder = await mkdtemp(join(root, ".tmp", "docs-"));
  all = await pages();
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Compiles them all, and runs them or so many of them, which ones is random. */
async function runSnippets(
  snippets: readonly Snippet[],
  where: string,
  count = snippets.length,
): Promise<string[]> {
  const { problems, programs }: Compiled = await compile(snippets, join(folder, where));
  const found = [...problems];
  if (found.length > 0) return found;
  const runnable = [...programs].filter(([{ notRun }]) => notRun === undefined);
  const first = pickSeed() % runnable.length;
  const chosen = [...runnable.slice(first), ...runnable.slice(0, first)].slice(0, count);
  await forEachParallel(chosen, WIDTH, async ([snippet, program]) => {
    const problem = await findProblem(snippet, program);
    if (problem !== undefined) found.push(problem);
  });
  return found;
}

describe("the programs in the pages", () => {
  it("compile, run and print what the page says", { tags: "long", timeout: 600_000 }, async () => {
    const snippets = [...all].flatMap(([name, page]) => readSnippets(page, name));
    expect(snippets.length).toBeGreaterThan(30);
    const count = countCases(10, snippets.length);
    expect(await runSnippets(snippets, "pages", count)).toEqual([]);
  });

  it("say what they print", () => {
    const silent = [...all]
      .flatMap(([name, page]) => readSnippets(page, name))
      .filter(({ notRun, output }) => notRun === undefined && output.trim() === "");
    expect(silent.map(({ place }) => place)).toEqual([]);
  });

  it("give a reason where they are not run", () => {
    const silent = [...all]
      .flatMap(([name, page]) => readSnippets(page, name))
      .filter(({ notRun }) => notRun === "");
    expect(silent).toEqual([]);
  });
});

describe("a page that is wrong is found", () => {
  const page = (code: string, output = ""): Snippet[] =>
    readSnippets(`# Page\n\n\`\`\`ts\n${code}\n\`\`\`\n\n\`\`\`text\n${output}\`\`\`\n`, "page.md");

  it.each([
    ["a name that is not there", `import { Agnet } from "@gyre/agent";\nnew Agnet();`, "", "Agnet"],
    ["a type that does not fit", `const count: number = "one";\nconsole.log(count);`, "", "TS2322"],
    ["a program that throws", `throw new Error("broken on purpose");`, "", "broken on purpose"],
    ["other output", `console.log("one");`, "two\n", "page.md:3 printed\none\n"],
    ["output that no page shows", `console.log("one");`, "", "page.md:3 printed\none\n"],
    ["a warning", `console.error("careful");`, "", "careful"],
  ])("%s", async (what, code, output, words) => {
    const problems = await runSnippets(page(code, output), what.replaceAll(" ", "-"));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(words);
  });

  it("a service that is not asked as often as the page says", async () => {
    const [snippet] = page(`console.log("one");`, "one\n");
    if (!snippet) throw new Error("There is no program.");
    const problems = await runSnippets([{ ...snippet, answers: [{ say: "Two." }] }], "not-asked");
    expect(problems).toEqual(["page.md:3 asked 0 times, and has 1 answers"]);
  });

  it("and one that is right is not", async () => {
    expect(await runSnippets(page(`console.log("one");`, "one\n"), "right")).toEqual([]);
  });
});

describe("the examples", () => {
  it("run, and print what examples/README.md says", async () => {
    const shown = await readFile(join(root, "examples/README.md"), "utf8");
    // A file of the reader's own may be there as well: those that the page lists are run.
    const sections = shown.split(/^## /m).slice(1);
    expect(sections.length).toBeGreaterThan(3);
    const wrong: string[] = [];
    await forEachParallel(sections, WIDTH, async (section) => {
      const [name = ""] = section.split("\n", 1);
      const expected = readFences(section).find(({ language }) => language === "text")?.body;
      const script = join(root, "scripts/drive/example.mjs");
      const { code, output } = await run(process.execPath, [script, name], { cwd: root });
      if (code !== 0 || output !== expected) wrong.push(`${name} ended with ${code}:\n${output}`);
    });
    expect(wrong).toEqual([]);
  });

  it("that are projects of their own are started with three commands", async () => {
    const manifests = listExampleManifests(root);
    expect(manifests).not.toEqual([]);
    for (const manifest of manifests) {
      const [, name] = manifest.split("/");
      const { scripts } = JSON.parse(await readFile(join(root, manifest), "utf8"));
      const start = "build" in scripts ? "npm run build && npm start" : "npm start";
      const readme = all.get(`examples/${name}/README.md`) ?? "";
      const commands = readFences(readme).find(({ language }) => language === "sh")?.body;
      expect(commands).toBe(`cd examples/${name}\nnpm install\n${start}\n`);
    }
  });

  it("the plain page has at most 100 lines", async () => {
    const page = await readFile(join(root, "examples/plain-page/page.html"), "utf8");
    expect(page.trimEnd().split("\n").length).toBeLessThanOrEqual(100);
  });

  it("are named where they are not found", async () => {
    const { code, output } = await run(process.execPath, ["scripts/drive/example.mjs", "helo"], {
      cwd: root,
    });
    expect(code).toBe(2);
    expect(output).toContain('No example "helo". There are: ');
  });
});

describe("the pages", () => {
  it("name no script that package.json does not have", async () => {
    const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const missing = [...all].flatMap(([name, page]) =>
      [
        ...page
          .replaceAll(/<!--[\s\S]*?-->/g, "")
          .matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(test|start)\b)/g),
      ]
        .map((match) => match[1] ?? match[2] ?? "")
        .filter((script) => !(script in scripts))
        .map((script) => `${name}: npm run ${script}`),
    );
    expect(missing).toEqual([]);
  });

  it("link to nothing that is not there", () => {
    const broken = [...all].flatMap(([name, page]) =>
      findLinks(page)
        .filter((link) => !leadsSomewhere(name, link))
        .map((link) => `${name}: ${link}`),
    );
    expect(broken).toEqual([]);
  });

  it("the first README begins with four lines of a program, and then comes the terminal", () => {
    const page = all.get("README.md") ?? "";
    const [first, output, terminal] = readFences(page);
    const lines = (first?.body ?? "").split("\n").filter((line) => line !== "");
    const [, made, ended, printed, streamed] = lines;
    expect(lines).toHaveLength(5);
    expect(made).toMatch(
      /^const agent = new Agent\(\{ model: "anthropic\/claude-sonnet-4-5", instr/,
    );
    expect(ended).toMatch(/^const end = await agent\.prompt\(/);
    expect(printed).toBe("console.log(end.text);");
    expect(streamed).toMatch(/\.textStream\) process\.stdout\.write\(text\);$/);
    expect([output?.language, terminal?.body]).toEqual(["text", "npm ci && npm start\n"]);
  });

  it.each(["agent", "ai", "cli", "protocol", "server", "sessions", "tools"])(
    "the README of %s has the flow of its events, from a program that is run",
    (room) => {
      const page = all.get(`packages/${room}/README.md`) ?? "";
      const [, flow = ""] = page.split("\n## Event flow\n");
      const fences = readFences(flow.split("\n## ", 1)[0] ?? "");
      const [program, output] = fences.map(({ language, note }) => `${language} ${note}`.trim());
      expect(["ts", "sh run"]).toContain(program);
      expect(output).toBe("text");
    },
  );

  it("a link that leads nowhere would be found", () => {
    expect(leadsSomewhere("README.md", "docs/no-such-page.md")).toBe(false);
    expect(leadsSomewhere("README.md", "docs/tools.md#no-such-heading")).toBe(false);
    expect(leadsSomewhere("docs/tools.md", "../README.md")).toBe(true);
  });
});

/** Relative links and pictures, outside of code. */
function findLinks(page: string): string[] {
  const prose = page.replaceAll(/^```[\s\S]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? "")
    .filter((link) => !/^[a-z]+:/.test(link));
}

function leadsSomewhere(from: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? from : join(dirname(from), decodeURIComponent(path));
  if (!existsSync(join(root, target))) return false;
  if (anchor === undefined) return true;
  const headings = (all.get(target) ?? "").matchAll(/^#+ (.*)$/gm);
  return [...headings].some((match) => toAnchor(match[1] ?? "") === anchor);
}
