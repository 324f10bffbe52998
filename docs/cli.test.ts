import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram, type Program, TEST_KEY } from "../packages/cli/src/testing/program.ts";
import {
  type Answer,
  type ScriptedService,
  scriptedService,
} from "../packages/cli/src/testing/scripted-service.ts";
import { fencesOf, pages, root } from "./snippets.ts";

/** A block that takes longer is ended. */
const BLOCK_MS = 30_000;
/** The pages whose commands are run. */
const PAGES = ["docs/cli.md", "docs/sessions.md", "docs/rpc.md", "packages/cli/README.md"];

let program: Program;
let folder: string;
let all: Map<string, string>;

beforeAll(async () => {
  program = await buildProgram();
  const bin = join(dirname(program.entry), "..", "bin");
  mkdirSync(bin);
  const gyre = join(bin, "gyre");
  writeFileSync(gyre, `#!/bin/sh\nexec "${process.execPath}" "${program.entry}" "$@"\n`);
  chmodSync(gyre, 0o755);
  folder = bin;
  all = await pages();
});

afterAll(() => program.remove());

/** Commands of a page, and what the page says that they print. */
interface Block {
  place: string;
  script: string;
  output: string;
  answers: Answer[];
  /** A program that it is not run without. */
  needs: string | undefined;
}

/**
 * The commands of a page that are run: `run` follows the language of their fence, and the
 * `text` after it is what they print, both streams together. `<!-- answers: [...] -->`
 * before it is what the service answers with.
 */
function blocksOf(page: string, name: string): Block[] {
  const fences = fencesOf(page);
  const lines = page.split("\n");
  return fences.flatMap(({ language, note, body, line }, index) => {
    const [, needs] = /^run(?: if (\S+))?$/.exec(note) ?? [];
    if (language !== "sh" || !note.startsWith("run")) return [];
    const next = fences[index + 1];
    const before = lines.slice(0, line - 1).join("\n").trimEnd();
    const [, said] = /<!-- answers: ((?:(?!-->)[\s\S])*)-->$/.exec(before) ?? [];
    const answers = said === undefined ? [] : (JSON.parse(said) as Answer[]);
    const output = next?.language === "text" ? next.body : "";
    return { place: `${name}:${line}`, script: body, output, answers, needs };
  });
}

/** A home of its own, with a folder to work in and a service to ask. */
class Place {
  readonly home: string;
  readonly cwd: string;
  readonly service: ScriptedService;

  constructor(home: string, service: ScriptedService) {
    this.home = home;
    this.cwd = join(home, "work");
    this.service = service;
    mkdirSync(this.cwd);
  }

  get env(): Record<string, string> {
    return {
      PATH: [folder, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter),
      HOME: this.home,
      LANG: "C.UTF-8",
      ANTHROPIC_API_KEY: TEST_KEY,
      ANTHROPIC_BASE_URL: this.service.url,
    };
  }

  /** What a program prints, on both streams. */
  run(file: string, args: readonly string[]): Promise<string> {
    return new Promise((settle, fail) => {
      const child = spawn(file, args, { cwd: this.cwd, env: this.env, stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      }
      const late = setTimeout(() => child.kill("SIGKILL"), BLOCK_MS);
      child.once("error", fail);
      child.once("close", () => {
        clearTimeout(late);
        settle(output);
      });
    });
  }
}

async function withPlace<T>(work: (place: Place) => Promise<T>): Promise<T> {
  const service = await scriptedService();
  const home = await mkdtemp(join(dirname(program.entry), "..", "home-"));
  try {
    return await work(new Place(home, service));
  } finally {
    await service.close();
    await rm(home, { recursive: true, force: true });
  }
}

/** What is wrong with the commands of a page, which are run in order in one folder. */
async function problemsOf(blocks: readonly Block[]): Promise<string[]> {
  return withPlace(async (place) => {
    const wrong: string[] = [];
    for (const { answers, needs, output, place: where, script } of blocks) {
      if (needs !== undefined && (await place.run("sh", ["-c", `command -v ${needs}`])) === "") continue;
      const asked = place.service.requests.length;
      place.service.play(answers);
      // One pipe for both streams, so that their order is that of a terminal.
      const printed = await place.run("bash", ["-c", `exec 2>&1\n${script}`]);
      const requests = place.service.requests.length - asked;
      if (!fits(printed, output)) wrong.push(`${where} printed\n${printed}and the page says\n${output}`);
      if (requests !== answers.length) wrong.push(`${where} asked ${requests} times, for ${answers.length} answers`);
    }
    return [...wrong, ...place.service.problems];
  });
}

/** Whether a text is as the page has it, where `…` is whatever differs from run to run. */
function fits(text: string, shown: string): boolean {
  const parts = shown.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+?")}$`).test(text);
}

describe("the commands in the pages", () => {
  it.each(PAGES)("of %s print what the page says", async (name) => {
    const blocks = blocksOf(all.get(name) ?? "", name);
    expect(await problemsOf(blocks)).toEqual([]);
  }, 120_000);
});
