import { type ChildProcess, spawn, type StdioNull, type StdioPipe } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findContainment } from "./containment.ts";
import { reapLeftovers } from "./leftovers.ts";
import { processInfo } from "@gyre/ai/programs";
import { runProgram } from "./processes.ts";
import { countCases } from "../../../../tests/support/cases.ts";

/*
 * What can only be seen of a host from outside: what it leaves when it is killed, and
 * how much memory it takes. Its code is bundled, so that any Node can run it.
 */

const isLinux = process.platform === "linux";
const { kind } = await findContainment();
const OUTPUT_MB = countCases(16, 64, "GYRE_OUTPUT_MB");
/** Stated. */
const MAX_MORE_MB = 32;
const MB = 1024 * 1024;
const DEADLINE_MS = 60_000;

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
let built: string;
let folder: string;
const hosts: ChildProcess[] = [];

beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), "gyre-host-"));
  const entry = join(built, "entry.ts");
  await writeFile(
    entry,
    `export * from ${JSON.stringify(source("processes.ts"))};
     export * from ${JSON.stringify(source("../shell/jobs/job-table.ts"))};
     export * from ${JSON.stringify(source("containment.ts"))};
     export * from ${JSON.stringify(source("../sandbox/sandbox.ts"))};
     export { StdioTransport } from "@gyre/ai/programs";
     export { systemClock as clock } from "@gyre/ai";`,
  );
  const bundle = await rolldown({
    input: entry,
    platform: "node",
    resolve: {
      alias: {
        "@gyre/ai/programs": source("../../../ai/src/node/programs/index.ts"),
        "@gyre/ai/text": source("../../../ai/src/node/text/index.ts"),
        "@gyre/ai": source("../../../ai/src/index.ts"),
        "@gyre/agent": source("../../../agent/src/index.ts"),
      },
    },
  });
  await bundle.write({ file: join(built, "tools.mjs"), format: "esm", codeSplitting: false });
  await bundle.close();
});
afterAll(() => rm(built, { recursive: true, force: true }));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-state-"));
});
afterEach(async () => {
  for (const host of hosts.splice(0)) host.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** A script for a host; `$` stands for what it needs of us. */
function hostScript(script: string): string[] {
  const tools = JSON.stringify(join(built, "tools.mjs"));
  const prelude = `
    const {
      runProgram, startProgram, JobTable, clock, containProcesses, findContainment, createSandbox, StdioTransport,
    } = await import(${tools});
    const spoolFolder = ${JSON.stringify(folder)};
    const bash = (script) => ({
      argv: ["bash", "-c", script],
      cwd: spoolFolder,
      env: { PATH: process.env.PATH },
    });`;
  return ["--input-type=module", "-e", `${prelude}\n${script}`];
}

/** Starts a host and answers when it has written a line; gives the line. */
function startHost(script: string): Promise<{ host: ChildProcess; line: string }> {
  const host = spawn(process.execPath, hostScript(script), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  hosts.push(host);
  return new Promise((resolve, reject) => {
    let text = "";
    host.stdout?.on("data", (piece: Buffer) => {
      text += piece.toString();
      if (text.includes("\n")) resolve({ host, line: text.slice(0, text.indexOf("\n")) });
    });
    host.once("exit", (code) => reject(new Error(`The host ended with ${code}: ${text}`)));
  });
}

function exited(host: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (host.exitCode !== null || host.signalCode !== null) resolve();
    else host.once("exit", () => resolve());
  });
}

const isGone = (pid: number): boolean => processInfo(pid)?.isZombie ?? true;
async function untilGone(pids: readonly number[]): Promise<void> {
  await expect.poll(() => pids.every(isGone), { timeout: DEADLINE_MS, interval: 10 }).toBe(true);
}

/** A tree that says the pids of three that would stay. */
const TREE = `
  trap '' TERM
  setsid sleep 61 & a=$!
  (trap '' TERM HUP; setsid bash -c 'trap "" TERM; echo $$ > c; sleep 62; sleep 62' & )
  until [ -s c ]; do :; done
  sleep 63 & echo $$ $a $! $(cat c)
  wait; sleep 64`;
const START_TREE = `
  await startProgram(bash(${JSON.stringify(TREE)}), {
    spoolFolder,
    onOutput: (piece) => console.log(piece.trim()),
  });
  setInterval(() => {}, 1000);`;

const parsePids = (line: string): number[] => line.split(" ").map(Number);
const notes = async (): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.startsWith("running-"));

describe.runIf(isLinux)("a host that is killed", () => {
  it("leaves what the next start ends", async () => {
    const { host, line } = await startHost(START_TREE);
    const pids = parsePids(line);
    expect(pids.length).toBe(4);
    host.kill("SIGKILL");
    await exited(host);
    expect(pids.every((pid) => !isGone(pid))).toBe(true);
    expect((await notes()).length).toBe(1);
    const [note = ""] = await notes();
    expect((await stat(join(folder, note))).mode & 0o777).toBe(0o600);

    expect(await reapLeftovers(folder)).toBeGreaterThanOrEqual(pids.length);
    expect(pids.every(isGone)).toBe(true);
    expect(await notes()).toEqual([]);
    expect(await reapLeftovers(folder)).toBe(0);
  });

  it("leaves background jobs that the next start ends, found also from the folder above", async () => {
    const { host, line } = await startHost(`
      const jobs = new JobTable({ spoolFolder, clock });
      const id = await jobs.start(bash("trap '' TERM; setsid sleep 61 & echo $$ $!; sleep 61; sleep 61"), "x");
      await jobs.wait(id, 60000);
      console.log(jobs.read(id).text.trim());
      setInterval(() => {}, 1000);`);
    host.kill("SIGKILL");
    await exited(host);
    const above = `${folder}-above`;
    await mkdir(above, { mode: 0o700 });
    try {
      const moved = join(above, "agent");
      await mkdir(moved, { mode: 0o700 });
      for (const name of await notes()) {
        await writeFile(join(moved, name), readFileSync(join(folder, name)));
      }
      expect(await reapLeftovers(above)).toBeGreaterThanOrEqual(2);
      expect(parsePids(line).every(isGone)).toBe(true);
    } finally {
      await rm(above, { recursive: true });
    }
  });

  it("is distinguished from one that lives", async () => {
    const { host, line } = await startHost(START_TREE);
    expect(await reapLeftovers(folder)).toBe(0);
    expect(parsePids(line).every((pid) => !isGone(pid))).toBe(true);
    expect((await notes()).length).toBe(1);
    host.kill("SIGKILL");
    await exited(host);
    await reapLeftovers(folder);
  });
});

describe.runIf(isLinux)("notes of what runs", () => {
  const ID = "0123456789abcdef0123456789abcdef";
  const note = (name: string, ...lines: unknown[]): Promise<void> =>
    writeFile(join(folder, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const self = processInfo("self");
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

  it("of before the machine was started are removed, and nothing is killed", async () => {
    await note(`running-${ID}.jsonl`, { boot: "other", namespace: "x", pid: 1, start: 1 }, self);
    expect(await reapLeftovers(folder)).toBe(0);
    expect(await notes()).toEqual([]);
  });

  it("of another container are left alone", async () => {
    await note(`running-${ID}.jsonl`, { boot, namespace: "pid:[1]", pid: 1, start: 1 });
    expect(await reapLeftovers(folder)).toBe(0);
    expect((await notes()).length).toBe(1);
  });

  it("that are cut off, or are something else, do no harm", async () => {
    await writeFile(join(folder, `running-${ID}.jsonl`), '{"boot');
    await note("running-x.jsonl", { pid: process.pid });
    expect(await reapLeftovers(folder)).toBe(0);
    expect(await notes()).toEqual(["running-x.jsonl"]);
  });

  it("may be gone before they are read", async () => {
    await symlink("nowhere", join(folder, `running-${ID}.jsonl`));
    expect(await reapLeftovers(folder)).toBe(0);
  });

  it("never lead to ourselves", async () => {
    const namespace = readlinkSync("/proc/self/ns/pid");
    await note(`running-${ID}.jsonl`, { boot, namespace, pid: 1, start: 0 }, self);
    expect(await reapLeftovers(folder)).toBe(0);
  });

  it("are not believed in a folder that others can write", async () => {
    const open = join(folder, "open");
    await mkdir(open);
    await chmod(open, 0o777);
    await writeFile(join(open, `running-${ID}.jsonl`), "x");
    expect(await reapLeftovers(folder)).toBe(0);
    expect(await reapLeftovers(open)).toBe(0);
    expect((await readdir(open)).length).toBe(1);
  });
});

describe.runIf(isLinux)("a host that exits", () => {
  it("takes with it what it runs", async () => {
    const { host, line } = await startHost(`
      await startProgram(bash(${JSON.stringify(TREE)}), {
        spoolFolder,
        onOutput: (piece) => {
          console.log(piece.trim());
          setImmediate(() => process.exit(3));
        },
      });`);
    await exited(host);
    expect(host.exitCode).toBe(3);
    await untilGone(parsePids(line));
  });

  it("is ended with all of it by the host that runs it", async () => {
    const stop = new AbortController();
    let line = "";
    const end = await runProgram(
      {
        argv: [process.execPath, ...hostScript(`process.on("SIGTERM", () => {});${START_TREE}`)],
        cwd: folder,
        env: { PATH: process.env["PATH"] ?? "" },
      },
      {
        spoolFolder: folder,
        signal: stop.signal,
        onOutput: (piece) => {
          line += piece;
          if (line.includes("\n")) stop.abort();
        },
      },
    );
    expect(end.aborted).toBe(true);
    expect(parsePids(line).every(isGone)).toBe(true);
  });
});

describe.runIf(isLinux)("memory", () => {
  it(
    `grows by at most ${MAX_MORE_MB} MB for ${OUTPUT_MB} MB of output`,
    { tags: "long", timeout: 120_000 + OUTPUT_MB * 1_000 },
    async () => {
      const { host, line } = await startHost(`
        const run = (mb) => runProgram(bash("yes 0123456789abcdef | head -c " + mb * ${MB}), {
          spoolFolder,
          onOutput() {},
        });
        await run(1);
        let most = 0;
        const before = process.memoryUsage().rss;
        const timer = setInterval(() => { most = Math.max(most, process.memoryUsage().rss); }, 5);
        const { stdout } = await run(${OUTPUT_MB});
        clearInterval(timer);
        console.log(JSON.stringify({ more: most - before, bytes: stdout.bytes }));`);
      await exited(host);
      const { more, bytes } = JSON.parse(line) as { more: number; bytes: number };
      expect(bytes).toBe(OUTPUT_MB * MB);
      console.log(`${OUTPUT_MB} MB of output: ${(more / MB).toFixed(1)} MB more memory`);
      expect(more).toBeLessThanOrEqual(MAX_MORE_MB * MB);
      const spooled = readdirSync(folder).filter((name) => name.startsWith("output-"));
      expect(spooled.length).toBe(2);
    },
  );
});

/** What gyre's own parent may have left open: a file with a secret, and a folder outside. */
describe.runIf(isLinux)("handles that the host was started with", () => {
  const SECRET = 251;
  const OUTSIDE = 400;
  const LOOK = `find /proc/$$/fd -type l -not -name '[0-2]' -printf '%f %l\\n'
    cat <&${SECRET}; ls /proc/self/fd/${OUTSIDE}/; echo x > /proc/self/fd/${OUTSIDE}/made; echo done`;
  const ROOM = `const policy = { writable: [], readOnly: [], hidden: [], network: false };
    const run = async (program) =>
      console.log((await runProgram({ ...program, cwd: "/" }, { spoolFolder, clock })).stdout.head);`;

  /** What a host writes that has a secret and a folder outside among its handles. */
  async function runWithHandles(script: string): Promise<string> {
    await mkdir(join(folder, "outside"));
    await writeFile(join(folder, "outside", "precious"), "a secret\n");
    const opened = [join(folder, "outside", "precious"), join(folder, "outside")].map((path) =>
      openSync(path, "r"),
    );
    const stdio: (StdioNull | StdioPipe | number)[] = Array.from(
      { length: OUTSIDE },
      () => "ignore",
    );
    const [secret = 0, outside = 0] = opened;
    stdio[1] = "pipe";
    stdio[2] = "inherit";
    stdio[SECRET] = secret;
    stdio[OUTSIDE] = outside;
    const host = spawn(process.execPath, hostScript(script), { stdio });
    hosts.push(host);
    for (const handle of opened) closeSync(handle);
    let output = "";
    host.stdout?.on("data", (piece: Buffer) => (output += piece.toString()));
    await once(host, "close");
    return output;
  }

  async function expectNothing(output: string): Promise<void> {
    const lines = output.trim().split("\n");
    expect(lines).toContain(`${SECRET} /dev/null`);
    expect(lines).toContain(`${OUTSIDE} /dev/null`);
    // The process of the tests may have been started with handles, too.
    expect(lines.filter((line) => !line.endsWith(" /dev/null"))).toEqual(["done"]);
    expect(await readdir(join(folder, "outside"))).toEqual(["precious"]);
  }

  it("are not handed on to a command without a sandbox", async () => {
    await expectNothing(await runWithHandles(`${ROOM} await run(bash(${JSON.stringify(LOOK)}));`));
  });

  it.runIf(kind === "namespace")("are not handed on to a command in a PID namespace", async () => {
    const script = `${ROOM}
      await run(containProcesses(bash(${JSON.stringify(LOOK)}), "true", await findContainment()));`;
    await expectNothing(await runWithHandles(script));
  });

  it("are not handed on to a command in bubblewrap", { tags: "bubblewrap" }, async () => {
    const script = `${ROOM}
      await run((await createSandbox()).wrap({ ...bash(${JSON.stringify(LOOK)}), cwd: "/" }, policy));`;
    await expectNothing(await runWithHandles(script));
  });

  it("are not handed on to an MCP server", async () => {
    const look = `(${LOOK}) > seen; sed 's/.*/"&"/' seen; cat >/dev/null`;
    const script = `
      const heard = [];
      const server = new StdioTransport({
        command: "bash", args: ["-c", ${JSON.stringify(look)}], env: { PATH: process.env.PATH },
        cwd: spoolFolder, onStderr: () => {}, parse: (value) => value,
      });
      const done = new Promise((resolve) => {
        server.onmessage = (line) => { console.log(line); if (line === "done") resolve(); };
      });
      await server.start();
      await done;
      await server.close();`;
    await expectNothing(await runWithHandles(script));
  });
});
