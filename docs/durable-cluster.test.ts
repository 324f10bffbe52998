import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { isRecord } from "@gyre/ai";
import { startPostgres } from "../tests/support/postgres.ts";
import { type Fence, readFences, root } from "./snippets.ts";

const FOLDER = join(root, "docs/durable");
const CUPS = 10;
/** The number of a process in the page: the reader has another one. */
const NUMBER = "4711";
let folder: string;

beforeAll(async () => {
  await mkdir(join(root, ".tmp"), { recursive: true });
  folder = await mkdtemp(join(root, ".tmp", "cluster-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The blocks of the section, as a reader meets them. */
async function readSection(): Promise<Fence[]> {
  const page = await readFile(join(root, "docs/durable.md"), "utf8");
  const [, section = ""] = page.split("## Two workers, and a kill by hand\n");
  return readFences(section.split(/^## /m)[0] ?? "");
}

/** A shell that commands are typed into. */
class Terminal {
  readonly #shell: ChildProcess;
  output = "";

  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#shell = spawn("bash", [], { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    }
  }

  type(command: string): void {
    this.#shell.stdin?.write(command);
  }

  /** Closes the terminal, with what runs in it. */
  async close(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#shell;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const exited = once(this.#shell, "exit");
    try {
      process.kill(-pid, "SIGKILL");
    } catch (error) {
      // It has ended by itself in this moment.
      if (!isGone(error)) throw error;
    }
    await exited;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ESRCH";
}

/** Does what the page says, in four terminals. */
async function follow(cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const blocks = await readSection();
  const find = (note: string): string => {
    const block = blocks.find((each) => each.language === "sh" && each.note === note);
    if (!block) throw new Error(`The page has no commands for ${note}.`);
    return block.body;
  };
  for (const name of await readdir(FOLDER)) await copyFile(join(FOLDER, name), join(cwd, name));
  const terminals = Array.from({ length: 4 }, () => new Terminal(cwd, env));
  const [one, two, three, four] = terminals as [Terminal, Terminal, Terminal, Terminal];
  try {
    for (const worker of [one, two]) worker.type(find("terminal 1 and 2"));
    for (const worker of [one, two]) {
      await vi.waitFor(() => expect(worker.output).toMatch(/^process \d+ works\n$/), {
        timeout: 30_000,
      });
    }
    three.type(find("terminal 3"));
    const line = await vi.waitUntil(
      () => /cup 2: brewed by process (\d+) on .+\n/.exec(three.output),
      { timeout: 30_000, interval: 5 },
    );
    const killed = line?.[1] ?? "";
    expect(find("terminal 4")).toContain(NUMBER);
    four.type(find("terminal 4").replaceAll(NUMBER, killed));
    await vi.waitFor(() => expect(three.output).toContain("Tea is served.\n"), { timeout: 60_000 });
    checkCups(three.output, killed);
    const { output } = three;
    three.type(find("terminal 3"));
    await vi.waitFor(() => expect(three.output).toBe(output + output), { timeout: 30_000 });
  } finally {
    for (const terminal of terminals) await terminal.close();
  }
}

/** Each cup has one line; one of them is interrupted at most; two processes have brewed. */
function checkCups(output: string, killed: string): void {
  const cups = output.split("\n").slice(0, -2);
  const numbers = cups.map((line) => Number(/^cup (\d+): /.exec(line)?.[1]));
  expect(numbers).toEqual(Array.from({ length: CUPS }, (_, index) => index + 1));
  const interrupted = cups.filter((line) => line.includes("Interrupted"));
  expect(interrupted.length).toBeLessThanOrEqual(1);
  const brewed = cups.filter((line) => !interrupted.includes(line));
  const processes = [...new Set(brewed.map((line) => /process (\d+) on/.exec(line)?.[1]))];
  expect(processes).toHaveLength(2);
  expect(processes[0]).toBe(killed);
}

describe("two workers and a kill by hand, as the page says", () => {
  it("on a file", async () => {
    const cwd = join(folder, "file");
    await mkdir(cwd);
    const { GYRE_DATABASE: _, ...env } = process.env;
    await follow(cwd, env);
    expect(existsSync(join(cwd, "runs.db"))).toBe(true);
  });

  it("on Postgres", { tags: "postgres" }, async () => {
    const cwd = join(folder, "postgres");
    await mkdir(cwd);
    const server = await startPostgres();
    try {
      const [command] = (await readSection()).filter(({ body }) => body.startsWith("export "));
      expect(command?.body).toBe("export GYRE_DATABASE=postgres://USER:PASSWORD@HOST/NAME\n");
      await follow(cwd, { ...process.env, GYRE_DATABASE: server.url() });
      expect(existsSync(join(cwd, "runs.db"))).toBe(false);
    } finally {
      await server.remove();
    }
  });

  it("with the programs of the folder", async () => {
    const programs = (await readSection()).filter(({ language }) => language === "js");
    expect(programs.map(({ note }) => note)).toEqual(["worker.mjs", "start.mjs"]);
    for (const { note, body } of programs) {
      expect(body).toBe(await readFile(join(FOLDER, note), "utf8"));
    }
  });
});

describe("compose.yaml", async () => {
  const text = await readFile(join(FOLDER, "compose.yaml"), "utf8");
  const document: unknown = parse(text, { merge: true });
  const services = isRecord(document) && isRecord(document["services"]) ? document["services"] : {};
  const own = Object.entries(services).filter(
    (entry): entry is [string, Record<string, unknown>] =>
      isRecord(entry[1]) && "build" in entry[1],
  );

  it("has a database, two workers and a program that starts a run", () => {
    expect(Object.keys(services)).toEqual(["database", "worker", "start"]);
    expect(services["worker"]).toMatchObject({ deploy: { replicas: 2 } });
    expect(own.map(([name]) => name)).toEqual(["worker", "start"]);
  });

  it.each(own)(
    "%s runs a program that is there, with variables that it reads",
    async (_, service) => {
      const [node, program = ""] = service["command"] as string[];
      expect(node).toBe("node");
      const code = await readFile(join(FOLDER, program), "utf8");
      const names = Object.keys(service["environment"] as object);
      expect(names).toEqual(["GYRE_DATABASE"]);
      for (const name of names) expect(code).toContain(`process.env.${name}`);
      expect(service["depends_on"]).toEqual({ database: { condition: "service_healthy" } });
    },
  );

  it("builds as the page does, from the folder of the repository", async () => {
    const [setup] = await readSection();
    const [[, worker] = ["", {}]] = own;
    const build = worker["build"] as { context: string; dockerfile_inline: string };
    const { context, dockerfile_inline: file } = build;
    expect(resolve(FOLDER, context)).toBe(resolve(root));
    const [install, folderLine] = setup?.body.trim().split("\n") ?? [];
    expect(file).toContain(`RUN ${install}\n`);
    expect(file).toContain(`WORKDIR /gyre/${folderLine?.replace("cd ", "")}\n`);
  });

  it("gives workers longer to stop than a drain takes", () => {
    expect(services["worker"]).toMatchObject({ stop_grace_period: "15s" });
  });
});
