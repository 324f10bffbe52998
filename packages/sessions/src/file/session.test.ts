import { type UserMessage } from "@gyre/ai";
import { manualClock } from "@gyre/ai/testing";
import {
  appendFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, dirname } from "node:path";
import { isLlmMessage } from "@gyre/agent";
import { afterAll, describe, expect, it } from "vitest";
import type { EntryBody } from "../format/entry.ts";
import { createSession, openSession } from "./session-file.ts";
import { temporaryPaths } from "../testing/folder.ts";
import { type SessionFile, SessionError } from "../format/types.ts";

const newPath = temporaryPaths("session", afterAll);

function user(content: string, timestamp = 1): UserMessage {
  return { role: "user", content, timestamp };
}

function userEntry(content: string): EntryBody {
  return { type: "message", message: user(content) };
}

async function texts(session: SessionFile, id?: number | null): Promise<unknown[]> {
  const { messages } = await session.context(id);
  return messages.filter(isLlmMessage).map((message) => message.content);
}

async function reopened(session: SessionFile): Promise<SessionFile> {
  await session.close();
  return openSession(session.path);
}

async function errorCode(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof SessionError) return error.code;
  throw new Error(`Not a SessionError: ${String(error)}`);
}

describe("a session file", () => {
  it("gives back what was appended, after reopening too", async () => {
    const clock = manualClock();
    const path = newPath();
    const session = await createSession(path, { cwd: "/w", id: "abc" }, { clock });
    const bodies: EntryBody[] = [
      userEntry("one \u2028 \ud800 \u{1f600} \n"),
      { type: "settings", settings: { model: { provider: "p", id: "m" }, tools: ["a"] } },
      { type: "title", title: "A title" },
      { type: "label", entry: 1, label: "here" },
      { type: "custom", kind: "mine", data: { deep: [1, null] } },
      {
        type: "result",
        toolCallId: "c",
        toolName: "t",
        result: { content: [{ type: "text", text: "x" }], details: { a: 1 } },
        isError: false,
      },
    ];
    const entries = await Promise.all(bodies.map((body) => session.append(body)));
    expect(entries.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(entries.map(({ parentId }) => parentId)).toEqual([null, 1, 2, 3, 4, 5]);
    expect(session.leaf).toBe(5);
    const again = await reopened(session);
    expect(again.problems).toEqual([]);
    expect(again.header).toEqual({
      type: "session",
      version: 1,
      id: "abc",
      createdAt: clock.now(),
      cwd: "/w",
    });
    expect(again.leaf).toBe(5);
    expect(await Promise.all(entries.map(({ id }) => again.read(id)))).toEqual(entries);
    expect(again.entries.map(({ type }) => type)).toEqual(bodies.map(({ type }) => type));
    await again.close();
  });

  it("is one line of JSON an entry, the head first and the checksum last", async () => {
    const session = await createSession(newPath(), { cwd: "/w" }, { clock: manualClock() });
    await session.append(userEntry("hello"));
    await session.close();
    const lines = (await readFile(session.path, "utf8")).split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^\{"type":"session","version":1,"id":"/);
    expect(lines[1]).toMatch(
      /^\{"id":1,"parentId":null,"type":"message","w":1,"timestamp":\d+,"message":\{.*\},"crc":"[0-9a-f]{8}"\}$/,
    );
  });

  it("is readable by its owner alone", async () => {
    const path = newPath().replace(".jsonl", "/deep/er.jsonl");
    const session = await createSession(path, { cwd: "/w" });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(`${path}.lock`)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect((await stat(dirname(dirname(path)))).mode & 0o777).toBe(0o700);
    await session.close();
    expect(await readdir(dirname(path))).toEqual([basename(path)]);
  });

  it("is not made over another one", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append(userEntry("kept"));
    await session.close();
    expect(await errorCode(createSession(session.path, { cwd: "/w" }))).toBe("exists");
    const again = await openSession(session.path);
    expect(await texts(again)).toEqual(["kept"]);
    await again.close();
  });

  it("says why it cannot be made", async () => {
    const path = newPath();
    await writeFile(path, "a file");
    expect(await errorCode(createSession(`${path}/below.jsonl`, { cwd: "/w" }))).toBe(
      "write_failed",
    );
  });

  it("branches in place, and remembers where", async () => {
    let session = await createSession(newPath(), { cwd: "/w" });
    for (const word of ["a", "b", "c"]) await session.append(userEntry(word));
    await session.branch(1);
    expect(session.leaf).toBe(1);
    session = await reopened(session);
    expect(session.leaf).toBe(1);
    await session.append(userEntry("d"));
    expect(await texts(session)).toEqual(["a", "d"]);
    expect(await texts(session, 3)).toEqual(["a", "b", "c"]);
    expect(session.findBranch()).toEqual([1, 5]);
    await session.branch(null);
    await session.append(userEntry("e"));
    session = await reopened(session);
    expect(await texts(session)).toEqual(["e"]);
    expect(await errorCode(session.branch(99))).toBe("not_found");
    await session.close();
  });

  it("folds settings and title along the branch", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append({ type: "settings", settings: { mode: "ask", thinkingLevel: "low" } });
    await session.append({ type: "title", title: "first" });
    await session.append({ type: "title", title: "second" });
    await session.append({ type: "settings", settings: { mode: "auto" } });
    expect(await session.context()).toMatchObject({
      settings: { mode: "auto", thinkingLevel: "low" },
      title: "second",
    });
    expect((await session.context(2)).title).toBe("first");
    await session.close();
  });

  it("leaves out what a compaction stands for, and does not read it", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    for (const word of ["a", "b", "c", "d"]) await session.append(userEntry(word));
    const message = user("b and c");
    await session.append({ type: "compaction", first: 2, until: 4, message });
    await session.append(userEntry("e"));
    // After this, who reads the line finds out.
    const bytes = await readFile(session.path);
    const file = await open(session.path, "r+");
    await file.write("#", bytes.indexOf('{"id":3,'));
    await file.close();
    expect(await errorCode(session.read(3))).toBe("unreadable");
    const context = await session.context();
    await session.close();
    expect(context.messages.filter(isLlmMessage).map(({ content }) => content)).toEqual([
      "a",
      "b and c",
      "d",
      "e",
    ]);
    expect(context.entries).toEqual([1, 5, 4, 6]);
    expect(context.compaction).toEqual({ from: 1, to: 2, message });
    expect(context.messages[1]).toBe(context.compaction?.message);
  });

  it("forks a branch into a new file, with all references", async () => {
    const session = await createSession(newPath(), { cwd: "/w", id: "old" });
    await session.append(userEntry("a"));
    await session.append(userEntry("left behind"));
    await session.branch(1);
    await session.append(userEntry("b"));
    await session.append({ type: "label", entry: 2, label: "not on the branch" });
    await session.append({ type: "label", entry: 4, label: "b" });
    await session.append({ type: "compaction", first: 4, until: null, message: user("B") });
    await session.append(userEntry("c"));
    const fork = await session.fork(newPath(), { newId: "new", cwd: "/other" });
    expect(fork.header).toMatchObject({
      id: "new",
      cwd: "/other",
      from: { session: "old", entry: 8 },
    });
    expect(await texts(fork)).toEqual(["a", "B", "c"]);
    expect(fork.findBranch()).toEqual([1, 2, 3, 4, 5]);
    expect(await fork.read(3)).toMatchObject({ type: "label", entry: 2, parentId: 2 });
    expect(await fork.read(4)).toMatchObject({ type: "compaction", first: 2, until: null });
    expect((await session.context()).messages).toEqual((await fork.context()).messages);
    await fork.append(userEntry("d"));
    expect(await texts(session)).toEqual(["a", "B", "c"]);
    const empty = await session.fork(newPath(), { id: null });
    expect(await texts(empty)).toEqual([]);
    await Promise.all([session.close(), fork.close(), empty.close()]);
  });

  it("opened to be read only takes no lock, repairs nothing and refuses to append", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append(userEntry("a"));
    const other = await openSession(session.path, { readOnly: true });
    expect(await texts(other)).toEqual(["a"]);
    expect(await errorCode(other.append(userEntry("b")))).toBe("write_failed");
    await session.close();
    await appendFile(session.path, '{"id":2,"par');
    const before = await readFile(session.path);
    const torn = await openSession(session.path, { readOnly: true });
    expect(torn.problems.map(({ kind }) => kind)).toEqual(["torn"]);
    await Promise.all([other.close(), torn.close()]);
    expect(await readFile(session.path)).toEqual(before);
  });

  it("takes what JSON cannot say as an error of that entry alone", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const bad = session.append({ type: "custom", kind: "big", data: 1n });
    const good = session.append(userEntry("a"));
    expect(await errorCode(bad)).toBe("write_failed");
    expect(await good).toMatchObject({ id: 1 });
    await session.close();
    expect(await errorCode(session.append(userEntry("b")))).toBe("write_failed");
  });
});

describe("what is no session", () => {
  it.each([
    ["an empty file", ""],
    ["text", "hello\nyou\n"],
    ["half a header", '{"type":"session","vers'],
    ["JSON of another program in one line", '{"name":"tea","type":"module"}\n'],
    ["JSON of another program without a line break", '{"name":"tea","type":"module"}'],
    ["JSON of another program in many lines", '{\n  "name": "tea",\n  "type": "module"\n}\n'],
    ["a log of another program", '{"type":"start"}\n{"type":"message","text":"a"}\n'],
    ["bytes", '\u0000\u0001\n{"type":"x"}\n\u0000'],
    ["messages of another program", '{"role":"user"}\n{"role":"assistant"}\n'],
    ["another program's session", '{"type":"session","version":3,"id":"a","timestamp":"t"}\n'],
  ])("%s is left as it is", async (_name, content) => {
    const path = newPath();
    await writeFile(path, content);
    expect(await errorCode(openSession(path))).toBe("not_a_session");
    expect(await readFile(path, "utf8")).toBe(content);
    expect(await errorCode(openSession(path))).toBe("not_a_session");
  });

  it("a missing file is not found, a folder is no session", async () => {
    const path = newPath();
    expect(await errorCode(openSession(path))).toBe("not_found");
    expect(await errorCode(openSession(dirname(path)))).toBe("not_a_session");
  });

  it("a newer version is not opened", async () => {
    const path = newPath();
    await writeFile(path, '{"type":"session","version":2,"id":"a","createdAt":5,"cwd":"/"}\n');
    expect(await errorCode(openSession(path))).toBe("newer_version");
  });
});

describe("a file that changed under an open session", () => {
  it.each([
    ["deleted", (path: string) => rm(path), "deleted"],
    [
      "replaced",
      (path: string) => rename(path, `${path}.old`).then(() => writeFile(path, "")),
      "replaced",
    ],
    ["written to", (path: string) => appendFile(path, "{}\n"), "another process"],
    ["freed of its lock", (path: string) => rm(`${path}.lock`), "another process"],
  ])("when %s, is not written to again", async (_name, change, why) => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await session.append(userEntry("a"));
    await change(session.path);
    const before = await readFile(session.path, "utf8").catch(() => "none");
    await expect(session.append(userEntry("b"))).rejects.toMatchObject({ code: "lock_lost" });
    await expect(session.append(userEntry("b"))).rejects.toThrow(why);
    expect(await readFile(session.path, "utf8").catch(() => "none")).toBe(before);
    await session.close();
  });
});

it.each([
  ["a path alone", ["PATH"]],
  ["options alone", [{ cwd: "/w" }]],
  ["no folder", ["PATH", {}]],
  ["a folder that is not in an object", ["PATH", "/w"]],
])("createSession with %s is answered with what to write", async (_what, given) => {
  const path = newPath();
  const [at, options] = given.map((one) => (one === "PATH" ? path : one));
  await expect(createSession(at as never, options as never)).rejects.toThrow(
    "A session needs a path and a folder: write createSession(path, { cwd: process.cwd() }).",
  );
  expect(await errorCode(openSession(path))).toBe("not_found");
});

describe("a place", () => {
  it("with an empty file becomes a session", async () => {
    const path = newPath();
    await writeFile(path, "");
    expect(await errorCode(openSession(path))).toBe("not_a_session");
    const session = await createSession(path, { cwd: "/w" });
    await session.append(userEntry("a"));
    const again = await reopened(session);
    expect(await texts(again)).toEqual(["a"]);
    await again.close();
  });

  it.runIf(process.platform !== "win32")("with a link is taken, wherever it leads", async () => {
    const [path, target] = [newPath(), newPath()];
    await symlink(target, path);
    expect(await errorCode(createSession(path, { cwd: "/w" }))).toBe("exists");
    await writeFile(target, "");
    expect(await errorCode(createSession(path, { cwd: "/w" }))).toBe("exists");
  });

  it("with a folder is no session, and gets no lock", async () => {
    const path = newPath();
    await mkdir(path);
    expect(await errorCode(openSession(path))).toBe("not_a_session");
    expect(await errorCode(createSession(path, { cwd: "/w" }))).toBe("exists");
    const names = await readdir(dirname(path));
    expect(names.filter((name) => name.startsWith(basename(path)))).toEqual([basename(path)]);
  });
});

describe("a file written by hand", () => {
  it("needs neither ids nor checksums", async () => {
    const path = newPath();
    const lines = [
      { type: "session", version: 1, id: "hand", cwd: "/w" },
      { type: "message", message: user("a") },
      { type: "message", message: user("b") },
      { type: "note", text: "of a later version" },
      { type: "message", message: user("c"), id: 10, parentId: 1 },
    ];
    await writeFile(path, lines.map((line) => JSON.stringify(line)).join("\r\n"));
    const session = await openSession(path);
    expect(session.problems).toEqual([]);
    expect(await texts(session, 2)).toEqual(["a", "b"]);
    expect(await session.read(3)).toMatchObject({
      type: "custom",
      kind: "note",
      data: { text: "of a later version" },
    });
    expect(await texts(session)).toEqual(["a", "c"]);
    await session.append(userEntry("d"));
    const again = await reopened(session);
    expect(await texts(again)).toEqual(["a", "c", "d"]);
    await again.close();
  });
});
