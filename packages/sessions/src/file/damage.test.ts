import type { ToolResultMessage, UserMessage } from "@gyre/ai";
import fc from "fast-check";
import { appendFile, readFile, truncate, writeFile } from "node:fs/promises";
import { isLlmMessage } from "@gyre/agent";
import { afterAll, describe, expect, it } from "vitest";
import type { Entry, EntryBody } from "../format/entry.ts";
import { encodeEntry } from "../format/line.ts";
import { createSession, openSession } from "./session-file.ts";
import { temporaryPaths } from "../testing/folder.ts";
import { type SessionFile, SessionError, type SessionProblem } from "../format/types.ts";
import { countCases } from "../../../../tests/support/cases.ts";

const newPath = temporaryPaths("damage", afterAll);
const RUNS = countCases(20, 60);
const DAMAGES = 6;

function user(content: string): UserMessage {
  return { role: "user", content, timestamp: 1 };
}

function userEntry(content: string): EntryBody {
  return { type: "message", message: user(content) };
}

/** A line as another writer would write it. */
function encodeLine(id: number, parentId: number | null, w: number, content: string): Buffer {
  const head = { id, parentId, type: "message", w, timestamp: 1 } as const;
  return encodeEntry(head, JSON.stringify({ message: user(content) }));
}

async function texts(session: SessionFile): Promise<unknown[]> {
  return (await session.context()).messages.filter(isLlmMessage).map(({ content }) => content);
}

function kinds(problems: readonly SessionProblem[]): string[] {
  return problems.map(({ kind }) => kind);
}

/** A closed file with these messages, and its lines with their LF. */
async function writeSession(words: readonly string[]): Promise<{ path: string; lines: Buffer[] }> {
  const session = await createSession(newPath(), { cwd: "/w" });
  for (const word of words) await session.append(userEntry(word));
  await session.close();
  return { path: session.path, lines: splitLines(await readFile(session.path)) };
}

function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf("\n", start) + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

describe("a torn tail", () => {
  it("is cut off and reported, wherever it was torn", async () => {
    const { path, lines } = await writeSession(["a", "b", "c"]);
    const whole = Buffer.concat(lines);
    const last = lines.at(-1)?.length ?? 0;
    for (let cut = 1; cut <= last; cut++) {
      await writeFile(path, whole.subarray(0, whole.length - cut));
      const session = await openSession(path);
      // With all but its LF a line is whole; with nothing left of it there is no tail.
      const isWhole = cut === 1;
      expect(kinds(session.problems)).toEqual(isWhole || cut === last ? [] : ["torn"]);
      await session.append(userEntry("d"));
      expect(await texts(session)).toEqual(isWhole ? ["a", "b", "c", "d"] : ["a", "b", "d"]);
      await session.close();
      expect((await readFile(path)).at(-1)).toBe(10);
      const again = await openSession(path);
      expect(again.problems).toEqual([]);
      await again.close();
    }
  });

  it("of zeros is cut off as well", async () => {
    const { path } = await writeSession(["a", "b"]);
    await appendFile(path, Buffer.alloc(5_000));
    const session = await openSession(path);
    expect(kinds(session.problems)).toEqual(["torn"]);
    await session.append(userEntry("c"));
    expect(await texts(session)).toEqual(["a", "b", "c"]);
    await session.close();
  });
});

describe("damage in the middle", () => {
  const after = async (damage: (lines: Buffer[]) => Buffer[]): Promise<SessionFile> => {
    const { path, lines } = await writeSession(["a", "b", "c", "d"]);
    await writeFile(path, Buffer.concat(damage(lines)));
    return openSession(path);
  };

  it("is reported with its place, and what follows is attached to what stood before", async () => {
    const session = await after((lines) => {
      lines[2]?.write("#", 60);
      return lines;
    });
    const line = { line: 3, offset: expect.any(Number), bytes: expect.any(Number) };
    expect(session.problems).toEqual([
      { kind: "damaged", ...line, message: "The line is damaged." },
      {
        kind: "orphan",
        ...line,
        line: 4,
        message: "Entry 3 followed entry 2, which is missing, and now follows entry 1.",
      },
    ]);
    expect(await texts(session)).toEqual(["a", "c", "d"]);
    await session.close();
  });

  it.each<[string, (lines: Buffer[]) => Buffer[]]>([
    ["zeros before a line", (lines) => lines.toSpliced(2, 0, Buffer.alloc(4096))],
    ["half a line before another", (lines) => lines.toSpliced(2, 0, Buffer.from('{"id":7,"pa'))],
    ["garbage lines", (lines) => lines.toSpliced(2, 0, Buffer.from("\xff\n{}\n[]\n\n7\n"))],
    ["a line twice", (lines) => lines.toSpliced(2, 0, lines[1] ?? Buffer.alloc(0))],
    ["an old line at the end", (lines) => [...lines, lines[1] ?? Buffer.alloc(0)]],
    [
      "the last line at the beginning",
      (lines) => lines.toSpliced(1, 0, lines[4] ?? Buffer.alloc(0)),
    ],
    ["a lost line end", (lines) => lines.with(2, (lines[2] ?? Buffer.alloc(0)).subarray(0, -1))],
  ])("%s loses nothing else", async (_name, damage) => {
    const session = await after(damage);
    expect(session.leaf).toBe(4);
    expect(await texts(session)).toEqual(["a", "b", "c", "d"]);
    await session.append(userEntry("e"));
    expect(await texts(session)).toEqual(["a", "b", "c", "d", "e"]);
    await session.close();
  });

  it("of the header takes the id from the file's name", async () => {
    const session = await after((lines) => lines.with(0, Buffer.from("garbage\n")));
    expect(kinds(session.problems)).toEqual(["header"]);
    expect(session.path).toContain(`_${session.header.id}.jsonl`);
    expect(await texts(session)).toEqual(["a", "b", "c", "d"]);
    await session.close();
    const without = await after((lines) => lines.slice(1));
    expect(kinds(without.problems)).toEqual(["header"]);
    expect(await texts(without)).toEqual(["a", "b", "c", "d"]);
    await without.close();
  });

  it("leaves a message out whose result is lost", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    const content: ToolResultMessage["content"] = [{ type: "text", text: "x" }];
    const call = { toolCallId: "c", toolName: "t", isError: false };
    await session.append(userEntry("a"));
    await session.append({ type: "result", ...call, result: { content } });
    const message: ToolResultMessage = { role: "toolResult", ...call, content, timestamp: 5 };
    await session.append({ type: "message", message });
    await session.append(userEntry("b"));
    await session.close();
    const lines = splitLines(await readFile(session.path));
    lines[2]?.write("#", 70);
    await writeFile(session.path, Buffer.concat(lines));
    const again = await openSession(session.path);
    expect(await texts(again)).toEqual(["a", "b"]);
    await again.context();
    expect(kinds(again.problems)).toEqual(["damaged", "damaged"]);
    await expect(again.read(3)).rejects.toMatchObject({ code: "unreadable" });
    await again.close();
  });
});

describe("fencing", () => {
  it("skips what a writer wrote after another one had taken over", async () => {
    const { path } = await writeSession(["a"]);
    await appendFile(path, Buffer.concat([encodeLine(2, 1, 2, "new"), encodeLine(2, 1, 1, "old")]));
    const session = await openSession(path);
    expect(kinds(session.problems)).toEqual(["fenced"]);
    expect(await texts(session)).toEqual(["a", "new"]);
    await session.append(userEntry("b"));
    expect(await readFile(path, "utf8")).toContain('"w":3');
    await session.close();
  });

  it("skips it too where it came just before the first line of the other", async () => {
    const { path } = await writeSession(["a"]);
    await appendFile(
      path,
      Buffer.concat([
        encodeLine(2, 1, 1, "old"),
        encodeLine(3, 2, 1, "older"),
        encodeLine(2, 1, 2, "new"),
      ]),
    );
    const session = await openSession(path);
    expect(session.problems.map(({ kind, line }) => [kind, line])).toEqual([
      ["fenced", 3],
      ["fenced", 4],
    ]);
    expect(await texts(session)).toEqual(["a", "new"]);
    await session.close();
  });
});

type Damage =
  | { kind: "flip"; at: number; mask: number }
  | { kind: "cut"; at: number }
  | { kind: "remove"; at: number; bytes: number }
  | { kind: "insert"; at: number; bytes: Uint8Array }
  | { kind: "twice"; line: number; before: number };

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const damages: fc.Arbitrary<Damage[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant("flip" as const),
      at: share,
      mask: fc.integer({ min: 1, max: 255 }),
    }),
    fc.record({ kind: fc.constant("cut" as const), at: share }),
    fc.record({
      kind: fc.constant("remove" as const),
      at: share,
      bytes: fc.integer({ min: 1, max: 400 }),
    }),
    fc.record({
      kind: fc.constant("insert" as const),
      at: share,
      bytes: fc.oneof(
        fc.uint8Array({ minLength: 1, maxLength: 300 }),
        fc
          .constantFrom("\n", "\0\0\0\0", '{"id":1,', "}\n", ',"crc":"00000000"}')
          .map((text) => Buffer.from(text)),
      ),
    }),
    fc.record({ kind: fc.constant("twice" as const), line: share, before: share }),
  ),
  { minLength: DAMAGES, maxLength: DAMAGES },
);

/** An entry; or the file is reopened, after a branch from somewhere if `branch` is not 0. */
type Step = { body: EntryBody } | { branch: number };

const bodies: fc.Arbitrary<EntryBody> = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: "binary", maxLength: 60 }).map(userEntry) },
  { weight: 1, arbitrary: fc.string().map((title): EntryBody => ({ type: "title", title })) },
  {
    weight: 1,
    arbitrary: fc.jsonValue().map((data): EntryBody => ({ type: "custom", kind: "k", data })),
  },
);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: bodies.map((body) => ({ body })) },
    { weight: 1, arbitrary: fc.oneof(share, fc.constant(0)).map((branch) => ({ branch })) },
  ),
  { minLength: 1, maxLength: 20 },
);

/** The bytes after the damage, and which of the lines still have all of theirs. */
function damaged(lines: Buffer[], damage: Damage): { bytes: Buffer; isWhole: boolean[] } {
  const whole = Buffer.concat(lines);
  const place = (at: number): number => Math.floor(at * whole.length);
  if (damage.kind === "twice") {
    const line = Math.floor(damage.line * (lines.length - 1));
    const before = Math.floor(damage.before * (lines.length - 1)) + 1;
    const copy = lines[line] ?? Buffer.alloc(0);
    return {
      bytes: Buffer.concat(lines.toSpliced(before, 0, copy)),
      isWhole: lines.map(() => true),
    };
  }
  const at = place(damage.at);
  const touched = { flip: 1, cut: whole.length, remove: 1, insert: 0 }[damage.kind];
  const end = at + (damage.kind === "remove" ? damage.bytes : touched);
  const middle = {
    flip: () => Buffer.of((whole[at] ?? 0) ^ (damage.kind === "flip" ? damage.mask : 0)),
    cut: () => Buffer.alloc(0),
    remove: () => Buffer.alloc(0),
    insert: () => Buffer.from(damage.kind === "insert" ? damage.bytes : []),
  }[damage.kind]();
  let start = 0;
  const isWhole = lines.map((line) => {
    // The LF is not part of it.
    const [from, to] = [start, start + line.length - 1];
    start += line.length;
    return damage.kind === "insert" ? at <= from || at >= to : at >= to || end <= from;
  });
  return { bytes: Buffer.concat([whole.subarray(0, at), middle, whole.subarray(end)]), isWhole };
}

/** A closed file made by a script, and its entries. */
async function written(script: readonly Step[]): Promise<{ path: string; entries: Entry[] }> {
  let session = await createSession(newPath(), { cwd: "/w" });
  const { path } = session;
  let appends: Promise<unknown>[] = [];
  for (const step of script) {
    if ("body" in step) appends.push(session.append(step.body));
    else {
      await Promise.all(appends);
      appends = [];
      const ids = session.entries.map(({ id }) => id);
      if (step.branch > 0) await session.branch(ids[Math.floor(step.branch * ids.length)] ?? null);
      await session.close();
      session = await openSession(path);
    }
  }
  await Promise.all(appends);
  const entries: Entry[] = [];
  for (const { id } of session.entries) entries.push(await session.read(id));
  await session.close();
  return { path, entries };
}

describe("any damage", () => {
  it("loses no entry but those it hit, and the file goes on", { tags: "long" }, async () => {
    const seed = Date.now() & 0x7fff_ffff;
    await fc.assert(
      fc.asyncProperty(steps, damages, async (script, list) => {
        const { path, entries } = await written(script);
        const lines = splitLines(await readFile(path));
        const epochs = new Set(
          lines.slice(1).map((line) => /"w":(\d+)/.exec(line.toString())?.[1]),
        );
        for (const damage of list) {
          // A copy of a later writer's line fences those that stand behind it: reported, not lost.
          if (damage.kind === "twice" && epochs.size > 1) continue;
          const { bytes, isWhole } = damaged(lines, damage);
          await writeFile(path, bytes);
          const kept = entries.filter((_entry, index) => isWhole[index + 1]);
          await checkKept(path, kept, isWhole[0] ?? false);
        }
      }),
      { seed, numRuns: RUNS },
    );
  });
});

async function checkKept(path: string, kept: Entry[], hasHeader: boolean): Promise<void> {
  let session: SessionFile;
  try {
    session = await openSession(path);
  } catch (error) {
    // Only where there is nothing left of it.
    if (!(error instanceof SessionError)) throw error;
    expect([error.code, hasHeader, kept]).toEqual(["not_a_session", false, []]);
    return;
  }
  const known = new Set(session.entries.map(({ id }) => id));
  const check = async (): Promise<void> => {
    for (const entry of kept) {
      const { parentId, ...rest } = await session.read(entry.id);
      expect({ ...rest, parentId: entry.parentId }).toEqual(entry);
      if (entry.parentId === null || known.has(entry.parentId)) {
        expect(parentId).toBe(entry.parentId);
      }
    }
  };
  await check();
  await session.context();
  const added = await session.append(userEntry("more"));
  const { leaf } = session;
  await session.close();
  session = await openSession(path);
  expect(session.leaf).toBe(leaf);
  expect(await session.read(added.id)).toEqual(added);
  await check();
  await session.close();
}

it("a long line costs no more than its bytes, and is found again", async () => {
  const session = await createSession(newPath(), { cwd: "/w" });
  const long = "long ".repeat(2_000_000);
  for (const word of ["a", long, "b"]) await session.append(userEntry(word));
  await session.close();
  const again = await openSession(session.path);
  expect(again.problems).toEqual([]);
  expect(await texts(again)).toEqual(["a", long, "b"]);
  await again.close();
  await truncate(session.path, 7_000_000);
  const torn = await openSession(session.path);
  expect(kinds(torn.problems)).toEqual(["torn"]);
  expect(await texts(torn)).toEqual(["a"]);
  await torn.close();
});
