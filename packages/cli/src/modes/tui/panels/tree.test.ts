import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSession, type Entry, type Session } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Key } from "../terminal/key.ts";
import { OLD_OUTPUT } from "../../../testing/old-prompt.ts";
import { textOfRow, widthOfRow } from "../terminal/row.ts";
import { NO_COLORS } from "../terminal/theme.ts";
import { buildMessageTree } from "./tree-layout.ts";
import { TreePanel, type TreeSession } from "./tree.ts";
import { TreeTexts } from "./tree-texts.ts";

const COLUMNS = 60;
const ROWS = 20;
const HEAD = 1;

let folder = "";
let session: Session;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-tree-"));
  session = await createSession(join(folder, "s.jsonl"), { cwd: folder });
});
afterEach(async () => {
  await session.close();
  await rm(folder, { recursive: true, force: true });
});

function key(name: string): Key {
  return { type: "key", name, ctrl: false, alt: false, shift: false };
}

function asked(text: string): Promise<Entry> {
  return session.append({
    type: "message",
    message: { role: "user", content: text, timestamp: 0 },
  });
}

function answered(text: string): Promise<Entry> {
  return session.append({
    type: "message",
    message: {
      role: "assistant",
      content: [{ type: "text", text }],
      api: "x",
      provider: "x",
      model: "x",
      usage: {},
      stopReason: "stop",
      timestamp: 0,
    },
  });
}

/** One question, answered thrice: twice left, the third is talked in. */
async function branched(): Promise<{ fork: Entry; last: Entry }> {
  await session.append({ type: "settings", settings: { mode: "ask" } });
  await asked("Fix the parser\nplease");
  const fork = await answered("Which part?");
  await asked("The lexer");
  await answered("Done, the lexer");
  await session.branch(fork.id);
  await asked("The tables");
  await answered("Done, the tables");
  await session.branch(fork.id);
  await asked("All of it");
  const last = await answered("Done, all");
  return { fork, last };
}

describe("a prompt that the output of a command was sent with", () => {
  it("goes back to the editor as it was written", async () => {
    const { id } = await asked(`Why?\n\n${OLD_OUTPUT}`);
    await new Promise<void>((settle) => {
      const texts = new TreeTexts(session, () => {
        expect(texts.get(id)).toEqual({ line: "Why?", prompt: "Why?" });
        settle();
      });
      texts.request([id]);
    });
  });
});

interface Opened {
  panel: TreePanel;
  lines: (rows?: number) => string[];
  /** What is drawn once all is read that was asked for. */
  read: (rows?: number) => Promise<string[]>;
}

function opened(of: TreeSession = session): Opened {
  let pending = 0;
  const counted: TreeSession = {
    entries: of.entries,
    leaf: of.leaf,
    findIds: (...types) => of.findIds(...types),
    append: (body) => of.append(body),
    async read(id) {
      pending++;
      try {
        return await of.read(id);
      } finally {
        pending--;
      }
    },
  };
  const panel = new TreePanel({ session: counted, theme: NO_COLORS, changed: () => {} });
  const lines = (rows = ROWS): string[] => panel.rows(COLUMNS, rows).rows.map(textOfRow);
  const read = async (rows = ROWS): Promise<string[]> => {
    for (;;) {
      const drawn = lines(rows);
      const isQuiet = pending === 0;
      await turn();
      if (isQuiet && pending === 0) return drawn;
    }
  };
  return { panel, lines, read };
}

/** All that is ready goes on. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function list(lines: readonly string[]): string[] {
  return lines.slice(HEAD, -1);
}

describe("the tree", () => {
  it("shows prompts and answers, what was left beside what is talked in, and where one is", async () => {
    await branched();
    expect(list(await opened().read())).toEqual([
      "  > Fix the parser",
      "    Which part?",
      "  ├ > The lexer",
      "  │   Done, the lexer",
      "  └ > The tables",
      "      Done, the tables",
      "  > All of it",
      "›   ● here Done, all",
    ]);
  });

  it("leaves out what is neither a prompt nor an answer", async () => {
    await asked("Look");
    await session.append({
      type: "message",
      message: {
        role: "toolResult",
        toolCallId: "1",
        toolName: "read",
        content: [{ type: "text", text: "secret" }],
        isError: false,
        timestamp: 0,
      },
    });
    await answered("Seen");
    expect(list(await opened().read())).toEqual(["  > Look", "›   ● here Seen"]);
  });

  it("takes a prompt for the place before it, with its text to edit", async () => {
    const { fork, last } = await branched();
    const { panel, read } = opened();
    await read();
    panel.take(key("up"));
    expect(panel.take(key("enter"))).toEqual({
      type: "done",
      value: { entry: fork.id, edit: "All of it", before: last.id - 1 },
    });
    panel.take(key("home"));
    const first = panel.take(key("enter"));
    const value = { entry: 1, edit: "Fix the parser\nplease", before: 2 };
    expect(first).toEqual({ type: "done", value });
  });

  it("takes an answer for itself", async () => {
    const { last } = await branched();
    const { panel, read } = opened();
    await read();
    expect(panel.take(key("enter"))).toEqual({ type: "done", value: { entry: last.id } });
    expect(panel.take(key("escape"))).toEqual({ type: "done", value: undefined });
  });

  it("folds a branch, goes to its sibling, and unfolds it", async () => {
    await branched();
    const { panel, lines, read } = opened();
    await read();
    for (let up = 0; up < 2; up++) panel.take(key("up"));
    panel.take(key("left"));
    expect(list(lines()).slice(4, 6)).toEqual(["› └ > The tables  ▸ 1 more", "  > All of it"]);
    panel.take(key("left"));
    expect(lines().find((line) => line.startsWith("›"))).toContain("The lexer");
    panel.take(key("right"));
    expect(lines().find((line) => line.startsWith("›"))).toContain("The tables");
    panel.take(key("right"));
    expect(lines()).toContain("      Done, the tables");
  });

  it("shows prompts alone where that is wanted, with the mark on one of them", async () => {
    await branched();
    const { panel, read } = opened();
    await read();
    panel.take({ type: "text", text: "u" });
    expect(list(await read())).toEqual([
      "  > Fix the parser",
      "  ├ > The lexer",
      "  └ > The tables",
      "› > All of it",
    ]);
  });

  it("reports when there is something new to draw", async () => {
    await branched();
    const drawn = await new Promise<string[]>((resolve) => {
      const panel: TreePanel = new TreePanel({
        session,
        theme: NO_COLORS,
        changed: () => resolve(panel.rows(COLUMNS, ROWS).rows.map(textOfRow)),
      });
      expect(panel.rows(COLUMNS, ROWS).rows.map(textOfRow)[HEAD]).toBe("  Reading…");
    });
    expect(drawn).toContain("  > Fix the parser");
  });

  it("gives a place a name, which is written down and shown", async () => {
    const { last } = await branched();
    const { panel, lines, read } = opened();
    await read();
    panel.take({ type: "text", text: "l" });
    panel.take({ type: "text", text: "good" });
    expect(lines()).toContain("› good");
    panel.take(key("enter"));
    const [id = 0] = await eventually(() => session.findIds("label"));
    expect(await session.read(id)).toMatchObject({ entry: last.id, label: "good" });
    expect(list(await opened().read()).at(-1)).toBe("›   [good] ● here Done, all");
  });

  it("says so where a name cannot be stored", async () => {
    await branched();
    const broken: TreeSession = {
      entries: session.entries,
      leaf: session.leaf,
      read: (id) => session.read(id),
      findIds: (...types) => session.findIds(...types),
      append: () => Promise.reject(new Error("The disk is full.")),
    };
    const { panel, read } = opened(broken);
    await read();
    panel.take({ type: "text", text: "l" });
    panel.take(key("enter"));
    await turn();
    expect((await read()).at(-1)).toBe("The name was not stored: The disk is full.");
  });

  it("says so where there are no messages", () => {
    expect(opened().lines()[HEAD]).toBe("  No messages yet.");
  });

  it("stays within rows and columns, also with branches within branches", async () => {
    for (let depth = 0; depth < 40; depth++) {
      const { id } = await asked(`Question ${depth} 日本語 ${"x".repeat(80)}`);
      await answered("yes");
      await session.branch(id);
    }
    const { panel, read } = opened();
    await read();
    for (const columns of [1, 10, 40]) {
      for (const rows of [1, 2, 3, 5, 12]) {
        const view = panel.rows(columns, rows);
        expect(view.rows.length).toBeLessThanOrEqual(rows);
        expect(Math.max(...view.rows.map(widthOfRow))).toBeLessThanOrEqual(columns);
      }
    }
  });
});

describe("a long session", () => {
  const LONG = 5_000;

  /** A session of which every reading is counted. */
  function long(count: number): TreeSession & { reads: number } {
    const entries = Array.from({ length: count }, (_, index) => ({
      id: index + 1,
      parentId: index === 0 ? null : index,
      type: "message" as const,
      bytes: 10,
    }));
    return {
      entries,
      leaf: count,
      reads: 0,
      findIds: () => [],
      append: () => Promise.reject(new Error("not here")),
      read(id) {
        this.reads++;
        const content = `prompt ${id}`;
        return Promise.resolve({
          id,
          parentId: id - 1,
          timestamp: 0,
          type: "message",
          message: { role: "user", content, timestamp: 0 },
        });
      },
    };
  }

  it("is read no further than the screen and a page beyond", async () => {
    const of = long(LONG);
    const { panel, read } = opened(of);
    expect(list(await read()).at(-1)).toBe("› > ● here prompt 5000");
    expect(of.reads).toBeLessThanOrEqual(3 * ROWS);
    panel.take(key("home"));
    expect(list(await read())[0]).toBe("› > prompt 1");
    expect(of.reads).toBeLessThanOrEqual(6 * ROWS);
  });

  it("goes by pages through what has been read", async () => {
    const { panel, read } = opened(long(LONG));
    await read();
    panel.take(key("pageUp"));
    expect((await read()).find((line) => line.startsWith("›"))).toBe("› > prompt 4983");
  });

  it("is laid out in one go, however deep it is", () => {
    const { entries, leaf } = long(100_000);
    const rows = buildMessageTree(entries, leaf).rows(new Set());
    expect(rows).toHaveLength(100_000);
    expect(rows.at(-1)?.branch.rest).toBe("");
  });
});

async function eventually<T>(look: () => readonly T[]): Promise<readonly T[]> {
  for (;;) {
    const found = look();
    if (found.length > 0) return found;
    await turn();
  }
}
