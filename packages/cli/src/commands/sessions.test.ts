import {
  access,
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manualClock } from "@gyre/ai/testing";
import {
  createSession,
  defaultSessionFolder,
  type EntryBody,
  type SessionFile,
  SessionStore,
  type SessionSummary,
} from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EXIT, ExitError, UsageError } from "../core/exit-codes.ts";
import { historyFolder } from "@gyre/coding/internal/file-history/lines/folders";
import type { Values } from "../core/options.ts";
import { agoText, sizeText } from "../text/session-text.ts";
import { runSessions } from "./sessions.ts";
import { textIo } from "../testing/command-io.ts";

const START = Date.UTC(2030, 0, 31, 12, 30, 59);
const HOUR_MS = 3_600_000;

let folder = "";
let clock = manualClock(START);
let store: SessionStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-sessions-"));
  clock = manualClock(START);
  store = new SessionStore(defaultSessionFolder({ XDG_STATE_HOME: folder }), { clock });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** With a file that belongs into a store. */
const LARGE: EntryBody = {
  type: "message",
  message: {
    role: "user",
    content: [
      {
        type: "file",
        mediaType: "application/pdf",
        source: { type: "base64", data: Buffer.alloc(300_000, 1).toString("base64") },
      },
    ],
    timestamp: 1,
  },
};

interface Ran {
  code: number;
  out: string;
  err: string;
}

async function sessions(args: readonly string[], values: Values = {}): Promise<Ran> {
  const io = textIo({ env: { XDG_STATE_HOME: folder }, cwd: folder });
  const code = await runSessions(args, values, io, { clock });
  return { code, out: io.out(), err: io.err() };
}

/** A session of a folder in which this was asked, still open. */
async function asked(content: string, cwd = folder): Promise<SessionFile> {
  const session = await store.create({ cwd });
  const message = { role: "user" as const, content, timestamp: clock.now() };
  await session.append({ type: "message", message });
  return session;
}

async function closed(content: string, cwd = folder): Promise<SessionFile> {
  const session = await asked(content, cwd);
  await session.close();
  return session;
}

describe("gyre sessions", () => {
  it("says in one line that there are none", async () => {
    const here = await sessions([]);
    expect(here).toMatchObject({ code: EXIT.done, out: "" });
    expect(here.err).toMatch(/^There are no sessions of .*--all\.\n$/);
    expect((await sessions([], { all: true })).err).toBe("There are no sessions.\n");
    expect((await sessions([], { json: true })).out).toBe("[]\n");
  });

  it("lists those of this folder: id, when, size, and title or first prompt", async () => {
    const first = await asked("Why is \u001b[31mit\u001b[0m red?");
    await first.append({ type: "title", title: "Colors" });
    await first.close();
    await clock.advance(2 * HOUR_MS);
    const second = await closed("What\nnow?");
    await closed("elsewhere", "/elsewhere");
    const { code, err, out } = await sessions([]);
    expect({ code, err }).toEqual({ code: EXIT.done, err: "" });
    const rows = out.trimEnd().split("\n");
    expect(rows).toEqual([
      expect.stringMatching(new RegExp(`^${second.header.id}  just now  \\d+ B +What now\\?$`)),
      expect.stringMatching(new RegExp(`^${first.header.id}  2 h ago   \\d+ B +Colors$`)),
    ]);
  });

  it("lists those of all folders with the folder, or of another one", async () => {
    await closed("here");
    await closed("there", "/elsewhere");
    const all = await sessions([], { all: true });
    expect(all.out).toContain(`  ${folder}`);
    expect(all.out).toMatch(/ {2}\/elsewhere +there$/m);
    const other = await sessions([], { cwd: "/elsewhere" });
    expect(other.out.trimEnd().split("\n")).toHaveLength(1);
    expect(other.out).toMatch(/there$/m);
  });

  it("prints one JSON array with --json", async () => {
    const { header } = await closed("Hi");
    const list: SessionSummary[] = JSON.parse((await sessions([], { json: true })).out);
    expect(list).toMatchObject([{ id: header.id, cwd: folder, firstPrompt: "Hi" }]);
  });

  it("reports what is wrong with the command line", async () => {
    await expect(sessions(["shwo", "x"])).rejects.toThrow(/cannot "shwo".*"show"/);
    await expect(sessions(["constructor", "x"])).rejects.toThrow(UsageError);
    await expect(sessions(["show"])).rejects.toThrow(/needs the id/);
    await expect(sessions(["remove", "a", "b"])).rejects.toThrow(UsageError);
  });

  it("reports which session is not there or not one", async () => {
    await (await store.create({ cwd: folder, id: "k3m9p2q7" })).close();
    await (await store.create({ cwd: folder, id: "k3m9zzzz" })).close();
    for (const verb of ["show", "path", "fork", "check", "unlock", "remove"]) {
      const error: unknown = await sessions([verb, "k3m9p2q8"]).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(ExitError);
      expect(error).toMatchObject({ exitCode: EXIT.failed });
      expect(String(error)).toContain("k3m9p2q7");
    }
    await expect(sessions(["show", "k3m9"])).rejects.toThrow(
      /k3m9p2q7, k3m9zzzz|k3m9zzzz, k3m9p2q7/,
    );
  });
});

describe("gyre sessions show", () => {
  async function conversation(): Promise<SessionFile> {
    const session = await asked("Read \u001b]0;owned\u0007it");
    await session.append({
      type: "settings",
      settings: { model: { provider: "anthropic", id: "claude" }, thinkingLevel: "high" },
    });
    await session.append({
      type: "message",
      message: {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Let me see." },
          { type: "text", text: "I read." },
          { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.ts" } },
        ],
        api: "anthropic-messages",
        provider: "anthropic",
        model: "claude",
        usage: {},
        stopReason: "toolUse",
        timestamp: clock.now(),
      },
    });
    await session.append({
      type: "message",
      message: {
        role: "toolResult",
        toolCallId: "c1",
        toolName: "read",
        content: [
          { type: "text", text: "\u001b[2Jnot there" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ],
        isError: true,
        timestamp: clock.now(),
      },
    });
    await session.close();
    return session;
  }

  it("prints the conversation as text that a terminal can be shown", async () => {
    const { header } = await conversation();
    const { code, err, out } = await sessions(["show", header.id.slice(0, 8)]);
    expect({ code, err }).toEqual({ code: EXIT.done, err: "" });
    expect(out).toBe(
      [
        `Session ${header.id}, begun 2030-01-31 12:30:59 UTC`,
        `Folder: ${folder}`,
        "",
        "=== user",
        "",
        "Read ␛it",
        "",
        "--- model anthropic/claude, thinking high",
        "",
        "=== assistant (anthropic/claude)",
        "",
        "[thinking]",
        "Let me see.",
        "",
        "I read.",
        "",
        '[calls read {"path":"a.ts"}]',
        "",
        "=== result of read (error)",
        "",
        "not there",
        "[image: image/png]",
        "",
        "",
      ].join("\n"),
    );
  });

  it("prints every entry as a line of JSON with --json, other branches too", async () => {
    const { header, path } = await conversation();
    const open = await store.open(header.id);
    await open.branch(1);
    await open.close();
    for (const name of [header.id, path]) {
      const { out } = await sessions(["show", name], { json: true });
      const entries = out
        .trimEnd()
        .split("\n")
        .map((line): unknown => JSON.parse(line));
      expect(entries).toHaveLength(5);
      expect(entries[0]).toMatchObject({ id: 1, parentId: null, type: "message" });
    }
    expect((await sessions(["show", header.id])).out).not.toContain("I read.");
  });

  it("shows a session that a process writes to", async () => {
    const session = await asked("Hi");
    expect((await sessions(["show", session.header.id])).out).toContain("=== user\n\nHi\n");
    await session.close();
  });
});

describe("path, fork, remove", () => {
  it("prints the path of the file", async () => {
    const { header, path } = await closed("Hi");
    expect((await sessions(["path", header.id])).out).toBe(`${path}\n`);
  });

  it("forks, and prints the new id", async () => {
    const { header } = await closed("Hi");
    const id = (await sessions(["fork", header.id])).out.trim();
    const fork = await store.find(id);
    expect(fork).toMatchObject({ cwd: folder, firstPrompt: "Hi" });
    expect(id).not.toBe(header.id);
    const other = (await sessions(["fork", header.id], { cwd: "/elsewhere" })).out.trim();
    expect((await store.find(other)).cwd).toBe("/elsewhere");
    // It is not left locked.
    await (await store.open(id)).close();
  });

  it("removes, but not what a process writes to", async () => {
    const session = await asked("Hi");
    const { id } = session.header;
    await expect(sessions(["remove", id])).rejects.toThrow(/process \d+|this process/);
    await session.close();
    const kept = join(historyFolder({ XDG_STATE_HOME: folder }), id);
    await mkdir(kept, { recursive: true });
    expect((await sessions(["remove", id])).out).toBe(`Removed ${id}.\n`);
    expect(await store.list()).toEqual([]);
    await expect(access(kept)).rejects.toThrow("ENOENT");
  });
});

describe("gyre sessions import", () => {
  const PI = [
    { type: "session", version: 3, id: "pi-1", timestamp: "2030-01-01T00:00:00.000Z", cwd: "/pi" },
    {
      type: "message",
      id: "a",
      parentId: null,
      timestamp: "2030-01-01T00:00:00.000Z",
      message: { role: "user", content: "From pi", timestamp: 1 },
    },
    { type: "active_tools_change", id: "b", parentId: "a", activeToolNames: [] },
  ];

  async function piFile(): Promise<string> {
    const name = "pi.jsonl";
    await writeFile(join(folder, name), PI.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return name;
  }

  it("takes a session of pi, and lists what it left behind", async () => {
    const { err, out } = await sessions(["import", await piFile()]);
    expect(err).toMatch(/^Not everything .*:\n {2}line 3, active_tools_change: .*\n$/);
    expect(await store.find(out.trim())).toMatchObject({ cwd: "/pi", firstPrompt: "From pi" });
    await (await store.open(out.trim())).close();
    const json = await sessions(["import", await piFile()], { json: true });
    expect(JSON.parse(json.out)).toMatchObject({ id: expect.any(String), skipped: [{ line: 3 }] });
    expect(json.err).toBe("");
  });

  it("takes a copy of a session of its own", async () => {
    const file = join(folder, "own.jsonl");
    const own = await createSession(file, { cwd: "/own", id: "own1" }, { clock });
    await own.close();
    expect((await sessions(["import", "own.jsonl"])).out).toBe("own1\n");
    const { path } = await store.find("own1");
    expect(await readFile(path)).toEqual(await readFile(file));
    await expect(sessions(["import", "own.jsonl"])).rejects.toThrow(/own1 is here already/);
  });

  it("takes the contents of its files along, which are removed with it", async () => {
    const file = join(folder, "own.jsonl");
    const own = await createSession(file, { cwd: folder, id: "own3" }, { clock });
    await own.append(LARGE);
    await own.close();
    await sessions(["import", "own.jsonl"]);
    const { path } = await store.find("own3");
    expect(await readdir(`${path}.files`)).toEqual(await readdir(`${file}.files`));
    expect((await sessions(["check", "own3"])).code).toBe(EXIT.done);
    await sessions(["remove", "own3"]);
    await expect(access(`${path}.files`)).rejects.toThrow("ENOENT");
    expect(await readdir(`${file}.files`)).toHaveLength(1);
  });

  it("has settings that this installation may have written checked again: the file was elsewhere", async () => {
    const path = join(folder, "own.jsonl");
    const session = await createSession(path, { cwd: folder, id: "own2" });
    await session.append({ type: "settings", settings: { mode: "full", mark: "ours" } });
    await session.close();
    await sessions(["import", "own.jsonl"]);
    const open = await store.open("own2");
    expect((await open.context()).settings).toEqual({ mode: "full", mark: "" });
    await open.close();
  });

  it("refuses what is neither, and leaves nothing behind", async () => {
    await writeFile(join(folder, "notes.txt"), "notes\n");
    await expect(sessions(["import", "notes.txt"])).rejects.toThrow(/not a session/);
    await expect(sessions(["import", "missing"])).rejects.toThrow(/missing cannot be read/);
    await expect(sessions(["import", "."])).rejects.toThrow(ExitError);
    await writeFile(join(folder, "newer.jsonl"), JSON.stringify({ ...PI[0], version: 4 }));
    await expect(sessions(["import", "newer.jsonl"])).rejects.toThrow(/version 4/);
    expect(await store.list()).toEqual([]);
  });
});

describe("check and unlock", () => {
  it("says that a session is sound", async () => {
    const { header, path } = await closed("Hi");
    for (const name of [header.id, path]) {
      expect(await sessions(["check", name])).toEqual({
        code: EXIT.done,
        out: "No problems; 1 entry.\n",
        err: "",
      });
    }
  });

  it("reports files whose contents are missing or damaged", async () => {
    const session = await store.create({ cwd: folder });
    await session.append(LARGE);
    await session.close();
    const { id } = session.header;
    const [name = ""] = await readdir(`${session.path}.files`);
    await writeFile(join(`${session.path}.files`, name), "damaged");
    const { code, out } = await sessions(["check", id]);
    expect([code, out]).toEqual([
      EXIT.failed,
      expect.stringMatching(/^entry 1: The contents of a file .* are damaged/),
    ]);
    await rm(join(`${session.path}.files`, name));
    const json = await sessions(["check", id], { json: true });
    expect(JSON.parse(json.out)).toMatchObject([{ kind: "missing_file", sha256: name, entry: 1 }]);
  });

  it("reports every problem, ends with 1, and changes nothing", async () => {
    const { header, path } = await closed("Hi");
    await appendFile(path, "garbage\n");
    await appendFile(path, '{"id":9,"half');
    const { size } = await stat(path);
    const { code, out } = await sessions(["check", header.id]);
    expect(code).toBe(EXIT.failed);
    expect(out).toMatch(/^line 3 \(\d+ bytes at \d+\), damaged: .*\nline 4 .*, torn: .*\n$/);
    const json = await sessions(["check", path], { json: true });
    expect(JSON.parse(json.out)).toMatchObject([{ line: 3 }, { line: 4 }]);
    expect((await stat(path)).size).toBe(size);
  });

  it("removes a lock after saying whose it was, and refuses one that is in use", async () => {
    const session = await asked("Hi");
    const { id } = session.header;
    await expect(sessions(["unlock", id])).rejects.toThrow(ExitError);
    const lock = `${session.path}.lock`;
    const held: Record<string, unknown> = JSON.parse(await readFile(lock, "utf8"));
    await session.close();
    expect((await sessions(["unlock", id])).out).toBe("It is not locked.\n");
    await writeFile(lock, JSON.stringify({ ...held, host: "else\u001b[1mwhere", pid: 7 }));
    expect((await sessions(["unlock", id])).out).toBe(
      "Removed the lock of process 7 on elsewhere, held since 2030-01-31 12:30:59 UTC.\n",
    );
    await writeFile(lock, "");
    expect((await sessions(["unlock", id])).out).toMatch(/did not say whose/);
    const names = await readdir(join(session.path, ".."));
    expect(names).toHaveLength(1);
  });
});

describe("times and sizes", () => {
  it("are shown in one unit", () => {
    const minute = 60_000;
    const texts = [0, minute, 59 * minute, HOUR_MS, 24 * HOUR_MS, 14 * 24 * HOUR_MS].map((age) =>
      agoText(START - age, START),
    );
    expect(texts).toEqual([
      "just now",
      "1 min ago",
      "59 min ago",
      "1 h ago",
      "1 day ago",
      "14 days ago",
    ]);
    expect(agoText(START - 15 * 24 * HOUR_MS, START)).toBe("2030-01-16");
    expect(agoText(START + HOUR_MS, START)).toBe("just now");
    expect(agoText(-1e20, START)).toBe("an unknown time");
    expect([0, 1023, 1024, 10_240, 5_000_000, 3e12].map(sizeText)).toEqual([
      "0 B",
      "1023 B",
      "1.0 KB",
      "10 KB",
      "4.8 MB",
      "2794 GB",
    ]);
  });
});
