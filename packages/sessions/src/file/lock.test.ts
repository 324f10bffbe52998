import {
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  spawn,
  spawnSync,
} from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isLlmMessage } from "@gyre/agent";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FileLock } from "./lock.ts";
import { createSession, openSession } from "./session-file.ts";
import { temporaryPaths } from "../testing/folder.ts";
import type { EntryBody } from "../format/entry.ts";
import { SUMMARY_BYTES, summarizeFile } from "../format/summary.ts";

const newPath = temporaryPaths("lock", afterAll);
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const RACERS = 4;
const ROUNDS = 15;
/** In the blocks of `ulimit -f`, which are of 512 or 1,024 bytes. */
const FILE_LIMIT = 64;

let program: string;
let home: string;

// A real program, made from the sources as they are now.
beforeAll(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-writer-"));
  const bundle = await rolldown({
    input: at("../testing/writer.ts"),
    platform: "node",
    resolve: { conditionNames: ["@gyre/source", "import"] },
  });
  await bundle.write({ dir: home, entryFileNames: "writer.mjs" });
  await bundle.close();
  program = join(home, "writer.mjs");
});

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => rm(home, { recursive: true, force: true }));

interface Writer {
  readonly pid: number;
  /** Gives an order; settles with the answer, or with `gone`. */
  send(order: string): Promise<string>;
}

/** Pid 1 of a new space of processes, as in a container. */
const IN_CONTAINER = ["-Ur", "--pid", "--mount-proc", "--fork", "--kill-child"];
const hasContainers = spawnSync("unshare", [...IN_CONTAINER, "true"]).status === 0;

function containerWriter(path: string): Writer & { kill(): Promise<void> } {
  const child = spawn("unshare", [...IN_CONTAINER, process.execPath, program, path]);
  return {
    ...drive(child),
    async kill() {
      child.kill("SIGKILL");
      // Its output ends when the last process of the container has.
      await once(child, "close");
    },
  };
}

function writer(path: string, shell?: string): Writer {
  const child = shell
    ? spawn("sh", ["-c", `${shell}; exec "$0" "$1" "$2"`, process.execPath, program, path])
    : spawn(process.execPath, [program, path]);
  return drive(child);
}

function drive(child: ChildProcessWithoutNullStreams): Writer {
  children.push(child);
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid ?? 0,
    async send(order) {
      child.stdin.write(`${order}\n`);
      const { value, done } = await answers.next();
      if (!done) return value;
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      return "gone";
    },
  };
}

function userEntry(content: string): EntryBody {
  return { type: "message", message: { role: "user", content, timestamp: 1 } };
}

/** The names beside a file that begin as it does. */
async function beside(path: string): Promise<string[]> {
  const names = await readdir(dirname(path));
  return names.filter((name) => name !== basename(path) && name.startsWith(basename(path)));
}

/** What the lock says; changed, if asked. */
async function lockFile(path: string, change?: object): Promise<Record<string, unknown>> {
  const holder = { ...JSON.parse(await readFile(`${path}.lock`, "utf8")), ...change };
  if (change) await writeFile(`${path}.lock`, JSON.stringify(holder));
  return holder;
}

describe("the lock of a session", () => {
  it("keeps out everybody else, and says who has it", async () => {
    const path = newPath();
    const other = writer(path);
    expect(await other.send("create")).toBe("ok");
    await expect(openSession(path)).rejects.toMatchObject({ code: "locked", path });
    await expect(openSession(path)).rejects.toThrow(
      `open in process ${other.pid} on ${hostname()}, since 2`,
    );
    expect(await other.send("append 5")).toBe("ok");
    expect(await other.send("close")).toBe("ok");
    const session = await openSession(path);
    expect(await other.send("open")).toBe("locked");
    await session.close();
    expect(await beside(path)).toEqual([]);
  });

  it("keeps out the same process as well", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await expect(openSession(session.path)).rejects.toThrow("in this process already");
    await session.append(userEntry("a"));
    await session.close();
    await session.close();
  });

  it("is lost by a kill, and the title of the long session stays in its summary", async () => {
    const path = newPath();
    const far = `append ${2 * SUMMARY_BYTES}`;
    const killed = writer(path);
    for (const order of ["create", far, "title Tea", far]) await killed.send(order);
    expect(await killed.send("die")).toBe("gone");
    const first = await summarizeFile(path);
    expect(first.summary.title).toBe("Tea");
    const foreign = { type: "message", message: { role: "user", content: "x", timestamp: 1 } };
    await appendFile(path, `${JSON.stringify(foreign)}\n`.repeat(SUMMARY_BYTES / 32));
    const second = await summarizeFile(path, first.titles);
    expect(second.summary.title).toBe("Tea");
    const next = writer(path);
    for (const order of ["open", far, "title Coffee", far])
      expect(await next.send(order)).toBe("ok");
    expect((await summarizeFile(path, second.titles)).summary.title).toBe("Coffee");
    await next.send("close");
  });

  it("of a process that was killed is taken over", async () => {
    const path = newPath();
    const other = writer(path);
    await other.send("create");
    await other.send("append 5");
    expect(await other.send("die")).toBe("gone");
    expect(await beside(path)).toEqual([`${basename(path)}.lock`]);
    const session = await openSession(path);
    await session.append(userEntry("b"));
    expect((await session.context()).messages).toHaveLength(2);
    expect((await readFile(path, "utf8")).match(/"w":\d/g)).toEqual(['"w":1', '"w":2']);
    await session.close();
    expect(await beside(path)).toEqual([]);
  });

  it.each<[string, object, boolean]>([
    ["of another process with that pid", { start: "1" }, true],
    ["from before the machine started", { boot: "another" }, true],
    ["of another host", { host: "elsewhere", pid: 2 ** 22 + 1 }, false],
    ["of another space of processes", { space: "pid:[1]", pid: 2 ** 22 + 1 }, false],
    ["of an unknown process", { pid: "?" }, false],
  ])("%s is judged by what it says", async (_name, change, isStale) => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const { path } = session;
    await lockFile(path, change);
    if (isStale) await (await openSession(path)).close();
    else await expect(openSession(path)).rejects.toMatchObject({ code: "locked" });
    await session.close();
  });

  it("that was taken over is found out by its old holder, who writes no more", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append(userEntry("a"));
    await lockFile(session.path, { boot: "another" });
    const other = await openSession(session.path);
    await expect(session.append(userEntry("old"))).rejects.toMatchObject({ code: "lock_lost" });
    await other.append(userEntry("new"));
    await session.close();
    await other.append(userEntry("newer"));
    const { messages } = await other.context();
    expect(messages.filter(isLlmMessage).map(({ content }) => content)).toEqual([
      "a",
      "new",
      "newer",
    ]);
    await other.close();
    expect(await beside(session.path)).toEqual([]);
  });

  it("goes to one of many that race for it, stale or free", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    const holder = await lockFile(path);
    await session.close();
    const racers = Array.from({ length: RACERS }, () => writer(path));
    for (let round = 0; round < ROUNDS; round++) {
      const stale = { ...holder, boot: "another", token: `${round}abc` };
      if (round % 3 > 0) await writeFile(`${path}.lock`, JSON.stringify(stale));
      // One that died while it took over.
      if (round % 3 === 2) {
        const claim = { ...holder, boot: "another", token: `${round}def` };
        await writeFile(`${path}.lock.${stale.token}`, JSON.stringify(claim));
      }
      const answers = await Promise.all(racers.map((racer) => racer.send("open")));
      expect(answers.toSorted()).toEqual([...Array(RACERS - 1).fill("locked"), "ok"]);
      const winner = racers[answers.indexOf("ok")];
      expect(await winner?.send("append 9")).toBe("ok");
      await Promise.all(racers.map((racer) => racer.send("close")));
    }
    const again = await openSession(path);
    expect(again.problems).toEqual([]);
    expect((await again.context()).messages).toHaveLength(ROUNDS);
    await again.close();
    expect(await beside(path)).toEqual([]);
  });

  it("is released when the file cannot be opened", async () => {
    const path = newPath();
    await writeFile(path, "not ours");
    await expect(openSession(path)).rejects.toMatchObject({ code: "not_a_session" });
    expect(await beside(path)).toEqual([]);
    new FileLock(path, 1).release();
  });
});

describe.skipIf(!hasContainers)("the lock of a session in a container", () => {
  it("of a container that was killed is taken over, here and in the next container", async () => {
    const path = newPath();
    const first = containerWriter(path);
    expect(await first.send("create")).toBe("ok");
    expect(await first.send("append 5")).toBe("ok");
    await first.kill();
    const second = containerWriter(path);
    expect(await second.send("open")).toBe("ok");
    expect(await second.send("append 5")).toBe("ok");
    await second.kill();
    const session = await openSession(path);
    expect((await session.context()).messages).toHaveLength(2);
    await session.close();
    const left = (await readdir(dirname(path))).filter((name) => name.endsWith(".alive"));
    expect(left).toEqual([]);
  });

  it("of a container that runs keeps out everybody, there and here", async () => {
    const path = newPath();
    const first = containerWriter(path);
    expect(await first.send("create")).toBe("ok");
    await expect(openSession(path)).rejects.toThrow("open in process 1 on");
    expect(await containerWriter(path).send("open")).toBe("locked");
    expect(await writer(path).send("open")).toBe("locked");
    expect(await first.send("append 5")).toBe("ok");
    expect(await first.send("close")).toBe("ok");
    const session = await openSession(path);
    expect(await containerWriter(path).send("open")).toBe("locked");
    await session.append(userEntry("a"));
    await session.close();
  });

  it("of another host name on this machine is judged in the same way", async () => {
    const path = newPath();
    const first = containerWriter(path);
    expect(await first.send("create")).toBe("ok");
    await lockFile(path, { host: "another-container" });
    await expect(openSession(path)).rejects.toMatchObject({ code: "locked" });
    await first.kill();
    await (await openSession(path)).close();
  });
});

describe("a full disk", () => {
  it("costs the entry that did not fit, and no other", async () => {
    const path = newPath();
    const other = writer(path, `ulimit -f ${FILE_LIMIT}`);
    expect(await other.send("create")).toBe("ok");
    let kept = 0;
    let answer = await other.send("append 10000");
    for (; answer === "ok"; kept++) answer = await other.send("append 10000");
    expect(answer).toBe("write_failed");
    expect(kept).toBeGreaterThan(0);
    expect(await other.send("append 10000")).toBe("write_failed");
    expect(await other.send("append 10")).toBe("ok");
    expect(await other.send("die")).toBe("gone");
    const session = await openSession(path);
    expect(session.problems).toEqual([]);
    const lengths = (await session.context()).messages
      .filter(isLlmMessage)
      .map(({ content }) => content.length);
    expect(lengths).toEqual([...Array(kept).fill(10_000), 10]);
    await session.close();
  });

  it("leaves no half of a lock behind", async () => {
    const path = newPath();
    const other = writer(path, "ulimit -f 0");
    expect(await other.send("create")).toBe("write_failed");
    expect(await beside(path)).toEqual([]);
    const session = await createSession(path, { cwd: "/w" });
    await session.close();
    expect(await other.send("open")).toBe("unreadable");
    expect(await beside(path)).toEqual([]);
  });
});
