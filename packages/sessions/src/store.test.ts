import { spawnSync } from "node:child_process";
import {
  chmod,
  cp,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { homedir, hostname, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSession, openSession } from "./file/session-file.ts";
import { defaultSessionFolder, SessionStore } from "./store.ts";
import { MAX_PROMPT_CHARS } from "./format/prompt.ts";
import { SUMMARY_BYTES } from "./format/summary.ts";
import { type SessionFile, SessionError, type SessionErrorCode } from "./format/types.ts";

const START = Date.UTC(2030, 0, 31, 12, 30, 59, 123);
const CWD = "/home/me/My Project";

let folder = "";
const clock = manualClock(START);
let store: SessionStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-store-"));
  store = new SessionStore(join(folder, "sessions"), { clock });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function ask(session: SessionFile, content: string): Promise<void> {
  const message = { role: "user" as const, content, timestamp: clock.now() };
  await session.append({ type: "message", message });
}

/** A closed session in which something was asked; each is a second younger than the last. */
async function asked(prompt: string, cwd = CWD): Promise<SessionFile> {
  await clock.advance(1_000);
  const session = await store.create({ cwd });
  await ask(session, prompt);
  await session.close();
  return session;
}

async function failure(promise: Promise<unknown>): Promise<SessionError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SessionError)) throw new Error(`No SessionError: ${String(error)}`);
  return error;
}

async function errorCode(promise: Promise<unknown>): Promise<SessionErrorCode> {
  return (await failure(promise)).code;
}

describe("the folder", () => {
  it("is in the state folder of the user", () => {
    expect(defaultSessionFolder({ XDG_STATE_HOME: "/state" })).toBe("/state/gyre/sessions");
    expect(defaultSessionFolder({ HOME: "/home/me" })).toBe("/home/me/.local/state/gyre/sessions");
    expect(defaultSessionFolder({})).toBe(join(homedir(), ".local/state/gyre/sessions"));
    // The specification says to ignore one that is not absolute.
    expect(defaultSessionFolder({ XDG_STATE_HOME: "state", HOME: "/h" })).toBe(
      "/h/.local/state/gyre/sessions",
    );
  });

  it("has one folder for each folder that was worked in, by a name that can be read", async () => {
    const one = await asked("Hi");
    const other = await asked("Hi", "/other/My Project");
    const odd = await asked("Hi", "/");
    expect(basename(dirname(one.path))).toMatch(/^My-Project-[0-9a-f]{10}$/);
    expect(basename(dirname(other.path))).toMatch(/^My-Project-[0-9a-f]{10}$/);
    expect(dirname(one.path)).not.toBe(dirname(other.path));
    expect(basename(dirname(odd.path))).toMatch(/^folder-[0-9a-f]{10}$/);
    expect(basename(dirname((await asked("Hi", "/x/..-\u001b[31mé $(rm)")).path))).toMatch(
      /^[A-Za-z0-9_-][A-Za-z0-9._-]*-[0-9a-f]{10}$/,
    );
  });

  it("names files by time and id, readable by their owner alone", async () => {
    const session = await store.create({ cwd: CWD });
    const { id } = session.header;
    const stamp = new Date(clock.now()).toISOString().replace(/[:.]/g, "-");
    expect(basename(session.path)).toBe(`${stamp}_${id}.jsonl`);
    expect(id).toMatch(/^[0-9a-z]{12}$/);
    expect((await stat(session.path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(session.path))).mode & 0o777).toBe(0o700);
    expect((await stat(store.folder)).mode & 0o777).toBe(0o700);
    await session.close();
  });

  it("gives many sessions of one moment ids of their own", async () => {
    const sessions = await Promise.all(
      Array.from({ length: 50 }, () => store.create({ cwd: CWD })),
    );
    expect(new Set(sessions.map(({ header }) => header.id)).size).toBe(50);
    await Promise.all(sessions.map((session) => session.close()));
    expect(await store.list()).toHaveLength(50);
  });
});

describe("the list", () => {
  it("is empty where there is nothing", async () => {
    expect(await store.list()).toEqual([]);
    expect(await store.list({ cwd: CWD })).toEqual([]);
    expect(await store.latest(CWD)).toBeUndefined();
  });

  it("lists what is known of each, those last written to first", async () => {
    const first = await asked("What is\n  this?");
    const second = await asked("Other");
    await clock.advance(5_000);
    const again = await store.open(first.header.id);
    await again.append({ type: "title", title: "A question" });
    await again.close();
    const list = await store.list();
    expect(list.map(({ id }) => id)).toEqual([first.header.id, second.header.id]);
    expect(list[0]).toEqual({
      id: first.header.id,
      path: first.path,
      cwd: CWD,
      createdAt: first.header.createdAt,
      updatedAt: clock.now(),
      bytes: (await stat(first.path)).size,
      title: "A question",
      firstPrompt: "What is this?",
    });
    expect(list[1]).not.toHaveProperty("title");
  });

  it("is that of a folder, of so many, or of all", async () => {
    await asked("one");
    await asked("two", "/elsewhere");
    await asked("three");
    const prompts = async (options?: { cwd?: string; limit?: number }): Promise<unknown[]> =>
      (await store.list(options)).map(({ firstPrompt }) => firstPrompt);
    expect(await prompts()).toEqual(["three", "two", "one"]);
    expect(await prompts({ cwd: CWD })).toEqual(["three", "one"]);
    expect(await prompts({ limit: 2 })).toEqual(["three", "two"]);
    expect(await prompts({ cwd: "/elsewhere", limit: 1 })).toEqual(["two"]);
  });

  it("comes in pages, whatever is written meanwhile, and reads the files of a page alone", async () => {
    const made: string[] = [];
    for (const prompt of ["one", "two", "three", "four", "five"]) {
      made.push((await asked(prompt)).header.id);
      await clock.advance(1_000);
    }
    await asked("other", "/elsewhere");
    const first = await store.listPage({ cwd: CWD, limit: 2 });
    expect(first.sessions.map(({ firstPrompt }) => firstPrompt)).toEqual(["five", "four"]);
    // The oldest is written to, the last of the page goes, and another is made.
    const again = await store.open(made[0] ?? "");
    await again.append({ type: "title", title: "A question" });
    await again.close();
    await store.remove(made[3] ?? "");
    await asked("six");
    const second = await store.listPage({ cwd: CWD, limit: 2, after: first.next ?? "" });
    expect(second.sessions.map(({ firstPrompt }) => firstPrompt)).toEqual(["three", "two"]);
    const third = await store.listPage({ cwd: CWD, limit: 2, after: second.next ?? "" });
    expect(third).toMatchObject({ sessions: [{ title: "A question" }] });
    expect(third).not.toHaveProperty("next");
    expect(await store.listPage({ cwd: "/nowhere", limit: 2 })).toEqual({ sessions: [] });
  });

  it("has as the latest one in which something was asked", async () => {
    const session = await asked("Hi");
    await clock.advance(1_000);
    const empty = await store.create({ cwd: CWD });
    await empty.close();
    expect((await store.list())[0]?.id).toBe(empty.header.id);
    expect((await store.latest(CWD))?.id).toBe(session.header.id);
    await store.remove(session.header.id);
    expect((await store.latest(CWD))?.id).toBe(empty.header.id);
  });

  it("reads the ends of a long file alone, and still finds prompt, title and time", async () => {
    const long = "long ".repeat(SUMMARY_BYTES);
    const session = await asked(long);
    const open = await store.open(session.header.id);
    await ask(open, long);
    await open.append({ type: "title", title: "Old" });
    await open.append({ type: "title", title: "New" });
    await clock.advance(1_000);
    await ask(open, "short");
    await open.close();
    const [summary] = await store.list();
    expect(summary?.firstPrompt).toHaveLength(MAX_PROMPT_CHARS);
    expect(summary?.firstPrompt).toMatch(/^long long .*…$/);
    expect(summary?.title).toBe("New");
    expect(summary?.updatedAt).toBe(clock.now());
  });

  it("takes the time of the file where the last line does not fit", async () => {
    const session = await asked("Hi");
    const open = await store.open(session.header.id);
    await ask(open, "x".repeat(2 * SUMMARY_BYTES));
    await open.close();
    await utimes(session.path, 1_000, 1_000);
    expect((await store.list())[0]?.updatedAt).toBe(1_000_000);
  });

  it("does not take what a tool or a user wrote for a title", async () => {
    const session = await asked('{"type":"title","title":"no"}');
    const open = await store.open(session.header.id);
    await open.append({ type: "custom", kind: "x", data: { type: "title", title: "no" } });
    await open.close();
    expect((await store.list())[0]).not.toHaveProperty("title");
  });

  it("does not take what a compaction says for what the user asked", async () => {
    const session = await store.create({ cwd: CWD });
    const message = { role: "user", content: "In short.", timestamp: 1 } as const;
    await session.append({ type: "compaction", first: 1, until: null, message });
    await ask(session, "Which tea?");
    await session.close();
    expect((await store.list())[0]?.firstPrompt).toBe("Which tea?");
  });

  it("has damaged files too, with what is left of them", async () => {
    const torn = await asked("torn");
    await truncate(torn.path, (await stat(torn.path)).size - 5);
    const headless = await asked("headless");
    const lines = (await readFile(headless.path, "utf8")).split("\n");
    await writeFile(headless.path, ["garbage", ...lines.slice(1)].join("\n"));
    const empty = await asked("empty");
    await truncate(empty.path, 0);
    const noise = await asked("noise");
    await writeFile(noise.path, Buffer.alloc(3 * SUMMARY_BYTES));
    await mkdir(join(dirname(noise.path), "folder.jsonl"));
    await writeFile(join(dirname(noise.path), "notes.txt"), "not a session");
    await writeFile(join(store.folder, "stray.jsonl"), "not in a folder");
    const byId = new Map((await store.list()).map((summary) => [summary.id, summary]));
    expect([...byId.keys()].sort()).toEqual(
      [torn, headless, empty, noise].map(({ header }) => header.id).sort(),
    );
    expect(byId.get(torn.header.id)).toMatchObject({ cwd: CWD, firstPrompt: "torn" });
    expect(byId.get(headless.header.id)).toMatchObject({
      cwd: "",
      createdAt: headless.header.createdAt,
      firstPrompt: "headless",
    });
    expect(byId.get(empty.header.id)).toMatchObject({ bytes: 0, cwd: "" });
    expect(byId.get(noise.header.id)).toMatchObject({ createdAt: noise.header.createdAt });
  });

  it("has one that may not be read, by its name", async () => {
    const { header, path } = await asked("Hi");
    await chmod(path, 0);
    const { id, createdAt } = header;
    expect(await store.list()).toMatchObject([{ id, createdAt, updatedAt: createdAt }]);
  });

  it("is made of the files alone: nothing else is kept", async () => {
    const { path } = await asked("Hi");
    await store.list();
    const names = await readdir(store.folder, { recursive: true });
    const own = [dirname(path), path].map((each) => each.slice(store.folder.length + 1));
    expect(new Set(names)).toEqual(new Set(own));
  });
});

describe("finding", () => {
  it("takes an id, or the beginning of one", async () => {
    const session = await store.create({ cwd: CWD, id: "abc1" });
    await session.close();
    await (await store.create({ cwd: "/other", id: "abd1" })).close();
    await (await store.create({ cwd: CWD, id: "abc1x" })).close();
    expect((await store.find("abc1")).path).toBe(session.path);
    expect((await store.find("abd")).cwd).toBe("/other");
    const ambiguous = await failure(store.find("ab"));
    expect(ambiguous.code).toBe("ambiguous");
    for (const id of ["abc1", "abd1", "abc1x"]) expect(ambiguous.message).toContain(id);
  });

  it("locates a file by its whole id, also one that another process made or removed", async () => {
    const first = await store.create({ cwd: CWD, id: "abc1" });
    await first.close();
    // As if nothing had happened for a while, so that the names are remembered.
    await utimes(dirname(first.path), 1, 1);
    expect(await store.locate("abc1")).toBe(first.path);
    for (const id of ["abc", "abc12", "", "../abc1", first.path]) {
      expect(await store.locate(id), id).toBeUndefined();
    }
    const other = new SessionStore(store.folder, { clock });
    const second = await other.create({ cwd: CWD, id: "abc2" });
    await second.close();
    expect(await store.locate("abc2")).toBe(second.path);
    await other.remove("abc1");
    expect(await store.locate("abc1")).toBeUndefined();
    const third = join(dirname(second.path), "..", "copy", basename(second.path));
    await mkdir(dirname(third));
    await link(second.path, third);
    expect((await failure(new SessionStore(store.folder).locate("abc2"))).code).toBe("ambiguous");
  });

  it("suggests ids that are near to one that is not there", async () => {
    await (await store.create({ cwd: CWD, id: "k3m9p2q7" })).close();
    const error = await failure(store.find("k3m9p2q8"));
    expect(error.code).toBe("not_found");
    expect(error.message).toContain("k3m9p2q7");
    expect(await errorCode(store.find(""))).toBe("not_found");
    expect(await errorCode(store.find("../../etc"))).toBe("not_found");
  });

  it("names the files where two have one id", async () => {
    const session = await store.create({ cwd: CWD, id: "same" });
    await session.close();
    await cp(dirname(session.path), join(folder, "sessions", "copied-by-hand"), {
      recursive: true,
    });
    const error = await failure(store.find("same"));
    expect(error.code).toBe("ambiguous");
    expect(error.message).toContain(session.path);
  });
});

describe("opening and forking", () => {
  it("opens by id, by the beginning of an id, and by path", async () => {
    const { header, path } = await asked("Hi");
    for (const name of [header.id, header.id.slice(0, 6), path]) {
      const session = await store.open(name, { readOnly: true });
      expect(session.header.id).toBe(header.id);
      await session.close();
    }
    expect(await errorCode(store.open(join(folder, "missing.jsonl")))).toBe("not_found");
  });

  it("forks into the same folder, or into another one", async () => {
    const { header } = await asked("Hi");
    const same = await store.fork(header.id);
    expect(same.header).toMatchObject({ cwd: CWD, from: { session: header.id } });
    expect(same.header.id).not.toBe(header.id);
    expect((await same.context()).messages).toHaveLength(1);
    await same.close();
    const other = await store.fork(header.id, { cwd: "/other" });
    await other.close();
    expect(await store.list({ cwd: CWD })).toHaveLength(2);
    expect((await store.list({ cwd: "/other" })).map(({ id }) => id)).toEqual([other.header.id]);
  });

  it("forks up to an entry, or with nothing of the session", async () => {
    const session = await store.create({ cwd: CWD });
    await ask(session, "One");
    await ask(session, "Two");
    const fork = await store.fork(session.path, { entry: 1 });
    expect((await fork.context()).messages).toMatchObject([{ content: "One" }]);
    await fork.close();
    const empty = await store.fork(session.path, { entry: null });
    expect((await empty.context()).messages).toEqual([]);
    await empty.close();
    await session.close();
  });

  it("forks a session that another process writes to", async () => {
    const session = await store.create({ cwd: CWD });
    await ask(session, "Hi");
    const fork = await store.fork(session.header.id);
    expect((await fork.context()).messages).toHaveLength(1);
    await fork.close();
    await session.close();
  });
});

describe("adding a file", () => {
  it("takes a copy, with its id, branches and folder", async () => {
    const file = join(folder, "history.jsonl");
    const source = await createSession(file, { cwd: "/work", id: "mine" }, { clock });
    await ask(source, "Hi");
    await source.branch(null);
    await ask(source, "Again");
    await source.close();
    const added = await store.add(file);
    expect(added).toMatchObject({ id: "mine", cwd: "/work", firstPrompt: "Hi" });
    expect(await readFile(added.path)).toEqual(await readFile(file));
    expect((await stat(added.path)).mode & 0o777).toBe(0o600);
    expect(await errorCode(store.add(file))).toBe("exists");
  });

  it("lets no id lead out of the folder", async () => {
    const file = join(folder, "history.jsonl");
    const session = await createSession(file, { cwd: "", id: "../../../evil" }, { clock });
    await session.close();
    const added = await store.add(file, { cwd: "/here" });
    expect(added.path.startsWith(store.folder)).toBe(true);
    expect(added.id).toMatch(/^[0-9a-z]{12}$/);
    expect(dirname(added.path)).toContain("here-");
  });

  it("refuses what is no session", async () => {
    const file = join(folder, "notes.txt");
    await writeFile(file, "some text\n");
    expect(await errorCode(store.add(file))).toBe("not_a_session");
    expect(await errorCode(store.add(join(folder, "missing")))).toBe("not_found");
  });
});

describe("removing", () => {
  it("leaves nothing behind", async () => {
    const { header, path } = await asked("Hi");
    await store.remove(header.id);
    expect(await readdir(dirname(path))).toEqual([]);
    expect(await errorCode(store.remove(header.id))).toBe("not_found");
  });

  it("refuses a session that another process writes to", async () => {
    const session = await store.create({ cwd: CWD });
    expect(await errorCode(store.remove(session.header.id))).toBe("locked");
    await ask(session, "Still here");
    await session.close();
    await store.remove(session.header.id);
    expect(await store.list()).toEqual([]);
  });

  it("removes what was left beside a file when it was made", async () => {
    const { header, path } = await asked("one");
    await link(path, `${path}.0123456789abcdef.new`);
    await store.remove(header.id);
    expect(await readdir(dirname(path))).toEqual([]);
  });

  it("removes a file that cannot be opened", async () => {
    const { header, path } = await asked("Hi");
    await writeFile(path, "");
    await store.remove(header.id);
    expect(await store.list()).toEqual([]);
  });
});

describe("unlocking", () => {
  /** The lock of a session that is open, with other words in it. */
  async function lockWith(change: Record<string, unknown>): Promise<{ id: string; path: string }> {
    const session = await store.create({ cwd: CWD });
    const lock = await readFile(`${session.path}.lock`, "utf8");
    await session.close();
    const held: Record<string, unknown> = JSON.parse(lock);
    await writeFile(`${session.path}.lock`, JSON.stringify({ ...held, ...change }));
    return { id: session.header.id, path: session.path };
  }

  it("says that there is no lock", async () => {
    const { header } = await asked("Hi");
    expect(await store.unlock(header.id)).toBeUndefined();
  });

  it("refuses while the holder lives on this machine", async () => {
    const session = await store.create({ cwd: CWD });
    expect(await errorCode(store.unlock(session.header.id))).toBe("locked");
    await ask(session, "Still here");
    await session.close();
  });

  it("says what the program says to do about a lock that was left", async () => {
    const { id, path } = await lockWith({ host: "elsewhere" });
    const hinted = new SessionStore(store.folder, { unlockHint: (one) => `unlock ${one}` });
    await expect(hinted.open(id)).rejects.toThrow(`gone for certain: unlock ${id}.`);
    await expect(hinted.remove(id)).rejects.toThrow(`gone for certain: unlock ${id}.`);
    await expect(store.open(id)).rejects.toThrow(`gone for certain: delete ${path}.lock.`);
  });

  it("says what is wrong first, how to go on in a copy, and where the file is last", async () => {
    const { id, path } = await lockWith({ host: "elsewhere" });
    const hinted = new SessionStore(store.folder, { forkHint: (one) => `copy ${one}` });
    await expect(hinted.open(id)).rejects.toThrow(/^This session is open in process /);
    await expect(hinted.open(id)).rejects.toThrow(
      `Close it there, or go on in a copy: copy ${id}. `,
    );
    await expect(hinted.open(id)).rejects.toThrow(` Its file: ${path}`);
    await expect(hinted.remove(id)).rejects.toThrow("Close it there, or fork it.");
  });

  it("removes the lock of a process that is gone, and says whose it was", async () => {
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    const { id, path } = await lockWith({ pid });
    const since = clock.now();
    expect(await store.unlock(id)).toEqual({ pid, host: hostname(), since });
    await (await openSession(path)).close();
  });

  it("removes the lock of another machine, whose holder then writes no more", async () => {
    const session = await store.create({ cwd: CWD });
    const lock: Record<string, unknown> = JSON.parse(
      await readFile(`${session.path}.lock`, "utf8"),
    );
    await writeFile(`${session.path}.lock`, JSON.stringify({ ...lock, host: "elsewhere" }));
    expect(await store.unlock(session.header.id)).toMatchObject({ host: "elsewhere" });
    const next = await store.open(session.header.id);
    expect(await errorCode(session.append({ type: "title", title: "late" }))).toBe("lock_lost");
    await next.close();
    await session.close();
  });

  it("removes a lock that does not say whose it is", async () => {
    const { header, path } = await asked("Hi");
    await writeFile(`${path}.lock`, "");
    expect(await store.unlock(header.id)).toBe("unknown");
    await (await openSession(path)).close();
  });
});
