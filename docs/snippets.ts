import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type Answer, scriptedService } from "../packages/cli/src/testing/scripted-service.ts";
import { run } from "../scripts/shared/command.mjs";

/** The folder of the repository. */
export const root: string = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Pages of declarations, which scripts/docs/reference.mjs writes: there are no programs in them. */
const REFERENCE = join("docs", "reference") + sep;

/** A program that takes longer is ended. */
const PROGRAM_MS = 100_000;

/** A program in a page, with what the page says that it prints. */
export interface Snippet {
  /** Page and line, for people. */
  readonly place: string;
  readonly code: string;
  readonly language: "ts" | "tsx";
  /** The `text` block after it; empty where there is none. */
  readonly output: string;
  /** Why it is type-checked and not run. */
  readonly notRun?: string;
  /** What the model service answers, one a request: such a program has a key and asks for it by HTTP. */
  readonly answers: readonly Answer[];
}

export interface Fence {
  readonly language: string;
  /** What follows the language. */
  readonly note: string;
  readonly body: string;
  readonly line: number;
}

/** The fenced blocks of a page, in order. */
export function readFences(page: string): Fence[] {
  return [...page.matchAll(/^```(\S*)[ \t]*(.*)\n([\s\S]*?)^```[ \t]*$/gm)].map((match) => ({
    language: match[1] ?? "",
    note: match[2] ?? "",
    body: match[3] ?? "",
    line: page.slice(0, match.index).split("\n").length,
  }));
}

/** The TypeScript of a page. A block is not run if `no-run` and a reason follow its language. */
export function readSnippets(page: string, name: string): Snippet[] {
  if (name.startsWith(REFERENCE)) return [];
  const fences = readFences(page);
  return fences.flatMap((fence, index) => {
    const { language, note, body, line } = fence;
    if (language !== "ts" && language !== "tsx") return [];
    const next = fences[index + 1];
    const notRun = /^no-run\s*(.*)$/.exec(note)?.[1];
    return {
      place: `${name}:${line}`,
      code: body,
      language,
      output: next?.language === "text" ? next.body : "",
      answers: readAnswers(page, fence),
      ...(notRun !== undefined && { notRun }),
    };
  });
}

/** What the model service says, in a comment before a block. */
export function readAnswers(page: string, { line }: Fence): Answer[] {
  const before = page.split("\n").slice(0, line - 1);
  const [, answers = "[]"] =
    /<!-- answers: ((?:(?!-->)[\s\S])*)-->\n?$/.exec(before.join("\n")) ?? [];
  return JSON.parse(answers) as Answer[];
}

/** Every page of the repository, by its path from the root. */
export async function pages(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const path of await listPages(root))
    found.set(path, await readFile(join(root, path), "utf8"));
  return found;
}

async function listPages(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith(".") || ["node_modules", "dist"].includes(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) paths.push(...(await listPages(path)));
    else if (entry.name.endsWith(".md")) paths.push(relative(root, path));
  }
  return paths;
}

/** Snippets that were compiled, and where the JavaScript of each is. */
export interface Compiled {
  readonly problems: readonly string[];
  readonly programs: ReadonlyMap<Snippet, string>;
}

/**
 * Type-checks the snippets as the repository's own code is, against the built packages,
 * and compiles them into `folder`, which must be in the repository. A problem names page
 * and line.
 */
export async function compile(snippets: readonly Snippet[], folder: string): Promise<Compiled> {
  // What one declares for a module holds for its whole program: it gets one of its own. So do those
  // that import @gyre/coding, which adds a message of its own.
  const groups = new Map<string, Snippet[]>();
  for (const [index, snippet] of snippets.entries()) {
    const isAlone = /declare module|"@gyre\/coding"/.test(snippet.code);
    const group = isAlone ? `declares-${index}` : `all-${snippet.language}`;
    groups.set(group, [...(groups.get(group) ?? []), snippet]);
  }
  const programs = new Map<Snippet, string>();
  const problems: string[] = [];
  for (const [name, group] of groups) {
    problems.push(...(await compileGroup(group, join(folder, name), programs)));
  }
  return { problems, programs };
}

async function compileGroup(
  group: readonly Snippet[],
  folder: string,
  programs: Map<Snippet, string>,
): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const isPage = group.some(({ language }) => language === "tsx");
  const config = {
    extends: join(relative(folder, root), "tsconfig.base.json"),
    compilerOptions: {
      composite: false,
      incremental: false,
      declaration: false,
      declarationMap: false,
      isolatedDeclarations: false,
      sourceMap: false,
      types: ["node"],
      // Pages of React are for browsers.
      ...(isPage && { jsx: "react-jsx", lib: ["es2023", "dom", "dom.iterable"] }),
      rootDir: ".",
      outDir: "out",
    },
    include: ["*.ts", "*.tsx"],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  for (const [index, snippet] of group.entries()) {
    await writeFile(join(folder, `snippet-${index}.${snippet.language}`), snippet.code);
    programs.set(snippet, join(folder, "out", `snippet-${index}.js`));
  }
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = [compiler, "-p", folder, "--pretty", "false"];
  const { code, output } = await run(process.execPath, args, { cwd: root });
  if (code === 0) return [];
  return output
    .trim()
    .split("\n")
    .map((line) => {
      const [, index, at, words] = /snippet-(\d+)\.tsx?\((\d+),\d+\): (.*)/.exec(line) ?? [];
      const place = index === undefined ? undefined : group[Number(index)]?.place;
      return place === undefined ? line : `${place}, line ${at} of the block: ${words}`;
    });
}

/** Runs a compiled snippet and says what is wrong with what it did; nothing if all is well. */
export async function findProblem(snippet: Snippet, program: string): Promise<string | undefined> {
  const { place, answers } = snippet;
  if (answers.length === 0) return compareOutput(snippet, await runInWorker(program, {}));
  const service = await scriptedService(answers);
  try {
    const env = {
      ANTHROPIC_API_KEY: "sk-ant-for-the-pages-alone",
      ANTHROPIC_BASE_URL: service.url,
      VLLM_BASE_URL: `${service.url}/v1`,
      LITELLM_BASE_URL: `${service.url}/v1`,
    };
    const problem = compareOutput(snippet, await runInWorker(program, env));
    const asked = service.requests.length;
    if (problem !== undefined || asked === answers.length) return problem;
    return `${place} asked ${asked} times, and has ${answers.length} answers`;
  } finally {
    await service.close();
  }
}

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

function compareOutput(snippet: Snippet, { code, stdout, stderr }: Ended): string | undefined {
  if (code !== 0) return `${snippet.place} ended with ${code}:\n${stderr}`;
  if (stderr !== "") return `${snippet.place} wrote to stderr:\n${stderr}`;
  // What is written without a line break at its end is shown with one.
  const ended = stdout === "" || stdout.endsWith("\n") ? stdout : `${stdout}\n`;
  if (ended === snippet.output) return undefined;
  return `${snippet.place} printed\n${stdout}and the page says\n${snippet.output}`;
}

/** A thread has a program's own modules and output, and starts in half the time of a process. */
async function runInWorker(program: string, env: Record<string, string>): Promise<Ended> {
  const worker = new Worker(program, { stdout: true, stderr: true, execArgv: [], env });
  const tooLong = setTimeout(() => void worker.terminate(), PROGRAM_MS);
  let thrown = "";
  worker.on("error", (error) => (thrown = String(error)));
  const ended = new Promise<number>((resolve) => worker.on("exit", resolve));
  const [stdout, stderr, code] = await Promise.all([
    text(worker.stdout),
    text(worker.stderr),
    ended,
  ]);
  clearTimeout(tooLong);
  return { code, stdout, stderr: stderr + thrown };
}

/** Does `work` for each, `width` at a time. */
export async function forEachParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
