import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Entry, SessionHeader, SessionSettings } from "../format/entry.ts";
import { importPiSession, isPiHeader, type SkippedPart } from "./import.ts";
import { createSession } from "../file/session-file.ts";

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-harness-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Line = Record<string, unknown>;

const BEGUN = Date.UTC(2031, 4, 6);
const HEADER = {
  v: 4,
  kind: "header",
  id: "h-1",
  storageVersion: 1,
  createdAt: BEGUN,
  cwd: "/home/me/tea",
};

let seq = 0;

function entry(id: string, parentId: string | null, more: Line): Line {
  return { kind: "entry", id, parentId, seq: ++seq, timestamp: BEGUN + seq, ...more };
}

function message(id: string, parentId: string | null, role: string, more: Line): Line {
  return entry(id, parentId, { type: "message", message: { role, timestamp: 7, ...more } });
}

function user(id: string, parentId: string | null, content: string): Line {
  return message(id, parentId, "user", { content });
}

function answer(id: string, parentId: string | null, text: string): Line {
  const from = { api: "anthropic-messages", provider: "anthropic", model: "claude", usage: {} };
  const content = [{ type: "text", text }];
  return message(id, parentId, "assistant", { ...from, content, stopReason: "stop" });
}

function value(namespace: string, key: string, set: unknown): Line {
  return { kind: "value", op: "set", seq: ++seq, namespace, key, value: set };
}

function gone(namespace: string, key: string): Line {
  return { kind: "value", op: "delete", seq: ++seq, namespace, key };
}

function tip(id: string | null, branch = "main"): Line {
  return value("pi.branch.tip", branch, id);
}

interface Imported {
  header: SessionHeader;
  texts: string[];
  settings: SessionSettings;
  entries: Entry[];
  title: string | undefined;
  skipped: SkippedPart[];
}

async function importLines(...lines: (Line | Line[] | string)[]): Promise<Imported> {
  const path = join(folder, `${++files}.pi.jsonl`);
  const all = [HEADER, ...lines].map((line) =>
    typeof line === "string" ? line : JSON.stringify(line),
  );
  await writeFile(path, `${all.join("\n")}\n`);
  const { session, skipped } = await importPiSession(path, (given) =>
    createSession(join(folder, `${++files}.jsonl`), given),
  );
  const { messages, settings, title } = await session.context();
  const entries = await Promise.all(session.entries.map(({ id }) => session.read(id)));
  const { header } = session;
  await session.close();
  return { header, texts: texts(messages), settings, entries, title, skipped };
}

function texts(messages: readonly AgentMessage[]): string[] {
  return messages.filter(isLlmMessage).map((each) => `${each.role}: ${textOf(each)}`);
}

describe("import of session files of pi's harness", () => {
  it("takes folder, time and messages, one to a line or several", async () => {
    const { header, skipped, texts } = await importLines(
      [user("a", null, "Which tea?"), tip("a")],
      answer("b", "a", "Green."),
      [user("c", "b", "Why?"), answer("d", "c", "It is noon."), tip("d")],
    );
    expect(header).toMatchObject({ cwd: "/home/me/tea", createdAt: BEGUN });
    expect(header.from?.session).toBe("h-1");
    expect(texts).toEqual([
      "user: Which tea?",
      "assistant: Green.",
      "user: Why?",
      "assistant: It is noon.",
    ]);
    expect(skipped).toEqual([]);
  });

  it("ends where the branch main does, and keeps the others in the tree", async () => {
    const { entries, texts } = await importLines(
      [user("a", null, "One"), tip("a")],
      [answer("b", "a", "Two"), tip("b")],
      [answer("c", "a", "Aside"), tip("c", "side")],
    );
    expect(texts).toEqual(["user: One", "assistant: Two"]);
    expect(JSON.stringify(entries)).toContain("Aside");
  });

  it("ends where a branch ended that went back, and at the last one without a main", async () => {
    const lines = [user("a", null, "One"), answer("b", "a", "Two")];
    expect((await importLines(lines, tip("b"), tip("a"))).texts).toEqual(["user: One"]);
    expect((await importLines(lines, tip("b"), tip(null))).texts).toEqual([]);
    const sides = await importLines(lines, tip("a", "x"), tip("b", "y"), tip("a", "x"));
    expect(sides.texts).toEqual(["user: One"]);
    expect((await importLines(lines)).texts).toEqual(["user: One", "assistant: Two"]);
  });

  it("takes the last name, labels, model and thinking level", async () => {
    const config = (modelId: string, thinkingLevel: string): Line => ({
      model: { provider: "openai", modelId },
      thinkingLevel,
      activeToolNames: ["read"],
    });
    const { entries, settings, skipped, texts, title } = await importLines(
      value("pi.lane.config", "main", config("gpt-old", "off")),
      value("pi.session.name", "", "Draft"),
      [user("a", null, "Hi"), value("pi.entry.label", "a", "start"), tip("a")],
      value("pi.entry.label", "b", "never"),
      [answer("b", "a", "Hello"), tip("b"), gone("pi.entry.label", "b")],
      value("pi.lane.config", "side", config("other", "low")),
      value("pi.lane.config", "main", config("gpt-new", "max")),
      value("pi.session.name", "", "Tea"),
    );
    expect(settings).toMatchObject({
      model: { provider: "openai", id: "gpt-new" },
      thinkingLevel: "max",
    });
    expect(title).toBe("Tea");
    const labels = entries.flatMap((each) => (each.type === "label" ? [each.label] : []));
    expect(labels).toEqual(["start"]);
    expect(texts).toEqual(["user: Hi", "assistant: Hello"]);
    expect(skipped).toEqual([]);
  });

  it("makes the system prompt of the messages that state it, in a tree", async () => {
    const lines = [
      message("s", null, "system", {
        content: "You know tea.",
        sections: { place: "<place>Leeds</place>", mood: "<mood>calm</mood>" },
        toolsAdded: [{ name: "boil", description: "Boils.", parameters: {} }],
      }),
      user("a", "s", "Hi"),
      message("t", "a", "system", {
        content: [{ type: "text", text: "Be brief." }],
        sections: { place: "<place>York</place>", mood: null },
      }),
      answer("b", "t", "Hello"),
      answer("c", "a", "Good day"),
    ];
    const now = await importLines(...lines, tip("b"));
    expect(now.settings.systemPrompt).toBe("You know tea.\n\nBe brief.\n\n<place>York</place>");
    expect(now.texts).toEqual(["user: Hi", "assistant: Hello"]);
    const other = await importLines(...lines, tip("c"));
    expect(other.settings.systemPrompt).toBe(
      "You know tea.\n\n<place>Leeds</place>\n\n<mood>calm</mood>",
    );
  });

  it("puts a summary in the place of what was compacted, with the messages that were kept", async () => {
    const kept = [
      { role: "system", content: "S.", timestamp: 1 },
      { role: "user", content: "Two", timestamp: 1 },
    ];
    const { settings, texts } = await importLines(
      message("s", null, "system", { content: "S." }),
      user("a", "s", "One"),
      user("b", "a", "Two"),
      entry("k", "b", {
        type: "compaction",
        summary: "It was about one.",
        retainedTail: kept,
        tokensBefore: 9,
        fromHook: false,
      }),
      [answer("c", "k", "Three"), tip("c")],
    );
    expect(texts).toEqual([
      "user: Summary of earlier turns:\n\nIt was about one.",
      "user: Two",
      "assistant: Three",
    ]);
    expect(settings.systemPrompt).toBe("S.");
  });

  it("leaves the course of runs behind, and reports what else has no place", async () => {
    const { skipped, texts } = await importLines(
      value("pi.lane.state", "main", { inbox: [] }),
      { kind: "usage", id: "u", seq: ++seq, usage: { input: 1 }, adjustment: false },
      {
        kind: "list",
        op: "append",
        seq: ++seq,
        namespace: "pi.pending.assistant_frame",
        key: "x",
        value: 1,
      },
      value("pi.pending.entry", "q", { type: "message", payload: {} }),
      value("pi.pending.entry", "r", { type: "message", payload: {} }),
      [user("r", null, "Hi"), gone("pi.pending.entry", "r"), tip("r")],
      value("shop.basket", "", ["tea"]),
      tip("lost", "main"),
    );
    expect(texts).toEqual(["user: Hi"]);
    expect(skipped.map(({ line, type }) => [line, type])).toEqual([
      [9, "leaf"],
      [5, "pi.pending.entry"],
      [8, "shop.basket"],
    ]);
  });

  it("goes on after a line that is damaged or torn", async () => {
    const lost = JSON.stringify([answer("b", "a", "Two"), tip("b")]).slice(0, -9);
    const { skipped, texts } = await importLines(
      [user("a", null, "One"), tip("a")],
      lost,
      [user("c", "b", "Three"), tip("c")],
      "[1]",
      '{"kind":"comet"}',
      '{"kind":"entry","id":"d"',
    );
    expect(texts).toEqual(["user: One", "user: Three"]);
    expect(skipped.map(({ line, type }) => [line, type])).toEqual(
      [3, 5, 6, 7].map((line) => [line, "unreadable"]),
    );
  });

  it("knows the first line, and refuses one that is newer", async () => {
    expect([HEADER, { ...HEADER, v: 9 }].map(isPiHeader)).toEqual([true, true]);
    expect(
      [{ kind: "header", v: 4 }, { ...HEADER, kind: "footer" }, [HEADER]].map(isPiHeader),
    ).toEqual([false, false, false]);
    for (const newer of [{ v: 5 }, { storageVersion: 2 }]) {
      const path = join(folder, `${++files}.pi.jsonl`);
      await writeFile(path, `${JSON.stringify({ ...HEADER, ...newer })}\n`);
      const tried = importPiSession(path, () => Promise.reject(new Error("no")));
      await expect(tried).rejects.toMatchObject({ code: "newer_version" });
    }
  });
});
