import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, isLlmMessage } from "@gyre/agent";
import { type AssistantMessage, type Message, textOf, validateTranscript } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importPiSession, isPiHeader, type PiImport } from "./import.ts";
import { createSession } from "../file/session-file.ts";
import { type NewSession, SessionError } from "../format/types.ts";

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-pi-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Line = Record<string, unknown>;

const TIME = "2030-01-31T12:00:00.000Z";
const HEADER = {
  type: "session",
  version: 3,
  id: "pi-1",
  timestamp: TIME,
  cwd: "/home/me/project",
};

/** Gives lines ids and parents, one after the other, where they have none. */
function chained(...lines: Line[]): Line[] {
  return lines.map((line, index) => ({
    id: `e${index + 1}`,
    parentId: index === 0 ? null : `e${index}`,
    timestamp: TIME,
    ...line,
  }));
}

function user(content: unknown): Line {
  return { type: "message", message: { role: "user", content, timestamp: 1 } };
}

function assistant(content: unknown, more: Line = {}): Line {
  return {
    type: "message",
    message: {
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude",
      usage: {},
      stopReason: "stop",
      timestamp: 2,
      ...more,
    },
  };
}

function answer(text: string): Line {
  return assistant([{ type: "text", text }]);
}

function calls(...ids: string[]): Line {
  const content = ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: { id } }));
  return assistant(content, { stopReason: "toolUse" });
}

function result(toolCallId: string, text = `read ${toolCallId}`): Line {
  const content = [{ type: "text", text }];
  const message = { role: "toolResult", toolCallId, toolName: "read", content, isError: false };
  return { type: "message", message: { ...message, timestamp: 3 } };
}

interface Imported extends PiImport {
  header: NewSession;
  messages: Message[];
}

async function importText(text: string): Promise<Imported> {
  const path = join(folder, `${++files}.pi.jsonl`);
  await writeFile(path, text);
  let header: NewSession | undefined;
  const imported = await importPiSession(path, (given) => {
    header = given;
    return createSession(join(folder, `${++files}.jsonl`), given);
  });
  const { messages } = await imported.session.context();
  return { ...imported, header: header ?? { cwd: "" }, messages: messages.filter(isLlmMessage) };
}

function importLines(...lines: (Line | string)[]): Promise<Imported> {
  const all = [HEADER, ...lines].map((line) =>
    typeof line === "string" ? line : JSON.stringify(line),
  );
  return importText(`${all.join("\n")}\n`);
}

function texts(messages: readonly Message[]): string[] {
  return messages.map((message) => `${message.role}: ${textOf(message)}`);
}

describe("import of pi's session files", () => {
  it("takes the folder, and notes where the session came from", async () => {
    const { header, session } = await importLines(...chained(user("Hi")));
    expect(header.cwd).toBe("/home/me/project");
    expect(header.from?.session).toBe("pi-1");
    expect(header.from?.file).toMatch(/\.pi\.jsonl$/);
    await session.close();
  });

  it("keeps the time at which the session was begun, where it is one", async () => {
    const begun = async (timestamp: string): Promise<number | undefined> => {
      const { header, session } = await importText(`${JSON.stringify({ ...HEADER, timestamp })}\n`);
      await session.close();
      if (header.createdAt !== undefined) expect(session.header.createdAt).toBe(header.createdAt);
      return header.createdAt;
    };
    expect(await begun("2030-01-02T03:04:05.000Z")).toBe(Date.UTC(2030, 0, 2, 3, 4, 5));
    expect(await begun("some day")).toBeUndefined();
    expect(await begun("1900-01-01T00:00:00.000Z")).toBeUndefined();
  });

  it("brings messages over with signatures, usage and stop reasons", async () => {
    const usage = { input: 10, output: 5, cacheRead: 3, cacheWrite: 0, totalTokens: 18 };
    const cost = { input: 0.1, output: 0.2, cacheRead: 0, cacheWrite: 0, total: 0.3 };
    const { messages, skipped, session } = await importLines(
      ...chained(
        user([
          { type: "text", text: "Look" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ]),
        assistant(
          [
            { type: "thinking", thinking: "Hm", thinkingSignature: "sealed" },
            { type: "thinking", thinking: "", thinkingSignature: "hidden", redacted: true },
            { type: "text", text: "I read." },
            { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } },
          ],
          {
            usage: { ...usage, cost },
            stopReason: "toolUse",
            responseId: "r1",
            responseModel: "claude-2030",
          },
        ),
        { ...result("c1", "content"), type: "message" },
        assistant([], { stopReason: "error", errorMessage: "overloaded" }),
      ),
    );
    expect(skipped).toEqual([]);
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Look" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ],
        timestamp: 1,
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "sealed" },
          { type: "thinking", thinking: "", signature: "hidden", redacted: true },
          { type: "text", text: "I read." },
          { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } },
        ],
        api: "anthropic-messages",
        provider: "anthropic",
        model: "claude",
        servedModel: "claude-2030",
        responseId: "r1",
        usage: { ...usage, cost },
        stopReason: "toolUse",
        timestamp: 2,
      },
      {
        role: "toolResult",
        toolCallId: "c1",
        toolName: "read",
        content: [{ type: "text", text: "content" }],
        isError: false,
        timestamp: 3,
      },
      expect.objectContaining({ stopReason: "error", errorMessage: "overloaded", usage: {} }),
    ]);
    await session.close();
  });

  it("takes a cost of 0 for an unknown price, and zeros for usage that was not reported", async () => {
    const zero = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    const { messages, session } = await importLines(
      ...chained(
        user("Hi"),
        assistant("a", { usage: { input: 7, output: 1, cost: zero } }),
        assistant("b", { usage: { ...zero, totalTokens: 0, cost: zero } }),
      ),
    );
    const usages = messages.flatMap((message) =>
      message.role === "assistant" ? [message.usage] : [],
    );
    expect(usages).toEqual([{ input: 7, output: 1 }, {}]);
    await session.close();
  });

  it("takes settings and the name", async () => {
    const { session } = await importLines(
      ...chained(
        { type: "model_change", provider: "openai", modelId: "gpt-5" },
        { type: "thinking_level_change", thinkingLevel: "max" },
        user("Hi"),
        { type: "session_info", name: "  A name  " },
      ),
    );
    const { settings, title } = await session.context();
    expect(settings).toEqual({
      model: { provider: "openai", id: "gpt-5" },
      thinkingLevel: "max",
    });
    expect(title).toBe("A name");
    await session.close();
  });

  it("goes on with the model that answered last, if no setting says so", async () => {
    const { session } = await importLines(
      ...chained(
        { type: "model_change", provider: "openai", modelId: "gpt-5" },
        user("Hi"),
        answer("Hello"),
      ),
    );
    const { settings } = await session.context();
    expect(settings.model).toEqual({ provider: "anthropic", id: "claude" });
    await session.close();
  });

  it("keeps the branches in place, and the end where it was", async () => {
    const { messages, session, skipped } = await importLines(
      { ...user("Start"), id: "a", parentId: null, timestamp: TIME },
      { ...answer("one"), id: "b", parentId: "a", timestamp: TIME },
      { ...user("left"), id: "c", parentId: "b", timestamp: TIME },
      { ...answer("gone"), id: "d", parentId: "c", timestamp: TIME },
      { ...user("other"), id: "e", parentId: "b", timestamp: TIME },
      { type: "label", targetId: "d", label: "here", id: "f", parentId: "e", timestamp: TIME },
    );
    expect(skipped).toEqual([]);
    expect(texts(messages)).toEqual(["user: Start", "assistant: one", "user: other"]);
    const entries = await Promise.all(session.entries.map(({ id }) => session.read(id)));
    const label = entries.find((entry) => entry.type === "label");
    const marked = label?.type === "label" ? label.entry : 0;
    const other = await session.context(marked);
    expect(texts(other.messages.filter(isLlmMessage))).toEqual([
      "user: Start",
      "assistant: one",
      "user: left",
      "assistant: gone",
    ]);
    await session.close();
  });

  it("goes back to the end of a branch whose later entries could not be brought over", async () => {
    const { messages, session } = await importLines(
      { ...user("Start"), id: "a", parentId: null },
      { ...answer("one"), id: "b", parentId: "a" },
      { ...answer("two"), id: "c", parentId: "a" },
      { type: "of the future", id: "d", parentId: "b" },
    );
    expect(texts(messages)).toEqual(["user: Start", "assistant: one"]);
    await session.close();
  });

  it("keeps the roots apart whose first entry could not be brought over", async () => {
    const { messages, session } = await importLines(
      { type: "of the future", id: "a", parentId: null },
      { ...user("one"), id: "b", parentId: "a" },
      { ...user("two"), id: "c", parentId: "a" },
    );
    expect(texts(messages)).toEqual(["user: two"]);
    await session.close();
  });

  it("sends a compaction's summary in place of what it stands for", async () => {
    const { messages, session } = await importLines(
      ...chained(
        user("old"),
        answer("older answer"),
        user("kept"),
        answer("kept answer"),
        { type: "compaction", summary: "They talked.", firstKeptEntryId: "e3", tokensBefore: 9 },
        user("new"),
      ),
    );
    expect(texts(messages)).toEqual([
      "user: Summary of earlier turns:\n\nThey talked.",
      "user: kept",
      "assistant: kept answer",
      "user: new",
    ]);
    await session.close();
  });

  it("takes the last of several compactions, and one that kept nothing", async () => {
    const { messages, session } = await importLines(
      ...chained(
        user("old"),
        answer("a"),
        { type: "compaction", summary: "First.", firstKeptEntryId: "e2" },
        user("b"),
        { type: "compaction", summary: "Second.", firstKeptEntryId: "nowhere" },
        user("c"),
      ),
    );
    expect(texts(messages)).toEqual(["user: Summary of earlier turns:\n\nSecond.", "user: c"]);
    await session.close();
  });

  it("never keeps a result whose call is left out", async () => {
    const { messages, session } = await importLines(
      ...chained(user("old"), calls("c1"), result("c1"), answer("kept"), {
        type: "compaction",
        summary: "S.",
        firstKeptEntryId: "e3",
      }),
    );
    expect(texts(messages)).toEqual(["user: Summary of earlier turns:\n\nS.", "assistant: kept"]);
    await session.close();
  });

  it("nor one that comes after something else was said, before or after the compaction", async () => {
    const before = await importLines(
      ...chained(user("old"), calls("c1"), user("between"), result("c1"), answer("kept"), {
        type: "compaction",
        summary: "S.",
        firstKeptEntryId: "e3",
      }),
    );
    expect(texts(before.messages)).toEqual([
      "user: Summary of earlier turns:\n\nS.",
      "assistant: kept",
    ]);
    await before.session.close();
    const after = await importLines(
      ...chained(
        user("old"),
        calls("c1"),
        user("kept"),
        { type: "compaction", summary: "S.", firstKeptEntryId: "e3" },
        result("c1"),
      ),
    );
    expect(texts(after.messages)).toEqual(["user: Summary of earlier turns:\n\nS.", "user: kept"]);
    expect(after.skipped).toHaveLength(1);
    await after.session.close();
  });

  it("puts a result that came late next to its call", async () => {
    const { messages, session, skipped } = await importLines(
      ...chained(user("a"), calls("c1"), user("b"), result("c1"), answer("c")),
    );
    expect(skipped).toEqual([]);
    expect(texts(messages)).toEqual([
      "user: a",
      "assistant: ",
      "toolResult: read c1",
      "user: b",
      "assistant: c",
    ]);
    await session.close();
  });

  it("takes the messages that a newer compaction has copies of", async () => {
    const kept = [calls("c1"), result("c1"), answer("tail")].map(({ message }) => message);
    const { messages, session } = await importLines(
      ...chained(
        user("old"),
        calls("c1"),
        result("c1"),
        answer("tail"),
        { type: "compaction", summary: "S.", retainedTail: kept },
        user("new"),
      ),
    );
    expect(texts(messages)).toEqual([
      "user: Summary of earlier turns:\n\nS.",
      "assistant: ",
      "toolResult: read c1",
      "assistant: tail",
      "user: new",
    ]);
    expect(validateTranscript(messages)).toEqual([]);
    await session.close();
  });

  it("turns summaries of branches, commands and extensions' messages into the user's words", async () => {
    const bash = { role: "bashExecution", command: "npm test", output: "2 failed", timestamp: 5 };
    const { messages, session, skipped } = await importLines(
      ...chained(
        user("Hi"),
        { type: "branch_summary", fromId: "x", summary: "We tried A." },
        { type: "message", message: { ...bash, exitCode: 1, cancelled: false, truncated: true } },
        { type: "message", message: { ...bash, command: "secret", excludeFromContext: true } },
        { type: "custom_message", customType: "ext", content: "Injected", display: false },
        { type: "message", message: { role: "custom", customType: "x", content: "Own" } },
        { type: "custom", customType: "ext-state", data: { count: 1 } },
      ),
    );
    expect(skipped).toEqual([]);
    expect(texts(messages)).toEqual([
      "user: Hi",
      "user: Summary of a branch that was left:\n\nWe tried A.",
      "user: [The user ran a command]\n$ npm test\n2 failed\n[exit code 1; the output was cut]",
      "user: Injected",
      "user: Own",
    ]);
    const last = await session.read(session.leaf ?? 0);
    expect(last).toMatchObject({ type: "custom", kind: "ext-state", data: { count: 1 } });
    await session.close();
  });

  it("drops results that no call waits for, and says so", async () => {
    const { messages, session, skipped } = await importLines(
      ...chained(
        user("Hi"),
        calls("c1"),
        result("c1"),
        result("c1", "again"),
        result("missing"),
        answer("done"),
      ),
    );
    expect(texts(messages)).toEqual([
      "user: Hi",
      "assistant: ",
      "toolResult: read c1",
      "assistant: done",
    ]);
    expect(skipped.map(({ line, type }) => [line, type])).toEqual([
      [5, "toolResult"],
      [6, "toolResult"],
    ]);
    expect(skipped[1]?.why).toContain('"missing"');
    await session.close();
  });

  it("says what else it left behind, and goes on after it", async () => {
    const { messages, session, skipped } = await importLines(
      ...chained(
        user("Hi"),
        { type: "active_tools_change", activeToolNames: ["bash"] },
        { type: "message", message: { role: "oracle", content: "Obey" } },
        { type: "label", targetId: "missing", label: "x" },
        { type: "thinking_level_change", thinkingLevel: "galactic" },
        { type: "branch_summary", fromId: "e1", summary: "" },
        assistant([{ type: "hologram" }, { type: "text", text: "Hello" }]),
      ),
    );
    expect(texts(messages)).toEqual(["user: Hi", "assistant: Hello"]);
    expect(skipped.map(({ line, type }) => [line, type])).toEqual([
      [3, "active_tools_change"],
      [4, "message oracle"],
      [5, "label"],
      [6, "thinking_level_change"],
      [7, "branch_summary"],
      [8, "block hologram"],
    ]);
    await session.close();
  });

  it("gives ids that a service used again a new name, for each call and its result", async () => {
    const { messages, session } = await importLines(
      ...chained(
        user("Hi"),
        calls("call_0", "call_0"),
        result("call_0", "first"),
        result("call_0", "second"),
        calls("call_0"),
        result("call_0", "third"),
      ),
    );
    expect(validateTranscript(messages)).toEqual([]);
    const results = messages.filter((message) => message.role === "toolResult");
    expect(results.map((message) => [message.toolCallId, textOf(message)])).toEqual([
      ["call_0", "first"],
      ["call_0_2", "second"],
      ["call_0_3", "third"],
    ]);
    await session.close();
  });

  it("keeps the proofs of each wire as ours keeps them", async () => {
    const reasoning = JSON.stringify({ type: "reasoning", id: "rs_1", encrypted_content: "x" });
    const detail = { type: "reasoning.encrypted", id: "c9", data: "sealed" };
    const { messages, session } = await importLines(
      ...chained(
        user("Hi"),
        assistant(
          [
            { type: "thinking", thinking: "", thinkingSignature: reasoning },
            { type: "text", text: "old", textSignature: "msg_1" },
            {
              type: "text",
              text: "new",
              textSignature: JSON.stringify({ v: 1, id: "msg_2", phase: "commentary" }),
            },
            { type: "toolCall", id: "call_1|fc_1", name: "read", arguments: {} },
          ],
          { api: "azure-openai-responses" },
        ),
        result("call_1|fc_1"),
        assistant(
          [
            { type: "text", text: "g", textSignature: "text-proof" },
            { type: "toolCall", id: "g1", name: "read", arguments: {}, thoughtSignature: "proof" },
          ],
          { api: "google-vertex" },
        ),
        result("g1"),
        assistant(
          [
            { type: "thinking", thinking: "Hm", thinkingSignature: "reasoning_content" },
            {
              type: "toolCall",
              id: "c9",
              name: "read",
              arguments: "not an object",
              thoughtSignature: JSON.stringify(detail),
            },
          ],
          { api: "openai-completions" },
        ),
        result("c9"),
        assistant([{ type: "thinking", thinking: "Hm", thinkingSignature: "reasoning" }], {
          api: "openai-completions",
        }),
      ),
    );
    const answers = messages.filter(
      (message): message is AssistantMessage => message.role === "assistant",
    );
    expect(answers.map(({ api }) => api)).toEqual([
      "openai-responses",
      "google-generative-ai",
      "openai-completions",
      "openai-completions",
    ]);
    expect(answers.map(({ content }) => content)).toEqual([
      [
        { type: "thinking", thinking: "", signature: reasoning },
        { type: "text", text: "old", signature: '{"id":"msg_1"}' },
        { type: "text", text: "new", signature: '{"id":"msg_2","phase":"commentary"}' },
        { type: "toolCall", id: "call_1", name: "read", arguments: {}, signature: "fc_1" },
      ],
      [
        { type: "text", text: "g", signature: "text-proof" },
        { type: "toolCall", id: "g1", name: "read", arguments: {}, signature: "proof" },
      ],
      [
        { type: "thinking", thinking: "Hm", signature: JSON.stringify([detail]) },
        {
          type: "toolCall",
          id: "c9",
          name: "read",
          arguments: {},
          rawArguments: "not an object",
          argumentsError: expect.any(String),
        },
      ],
      [{ type: "thinking", thinking: "Hm" }],
    ]);
    expect(validateTranscript(messages)).toEqual([]);
    await session.close();
  });
});

describe("older versions", () => {
  it("reads version 1, which is a plain list", async () => {
    const lines = [
      {
        type: "session",
        id: "old",
        timestamp: TIME,
        cwd: "/x",
        provider: "anthropic",
        modelId: "claude",
        thinkingLevel: "low",
      },
      user("old"),
      answer("older answer"),
      user("kept"),
      { type: "compaction", summary: "S.", firstKeptEntryIndex: 3, timestamp: TIME },
      answer("new"),
    ];
    const { messages, session, skipped } = await importText(
      lines.map((line) => JSON.stringify(line)).join("\n"),
    );
    expect(skipped).toEqual([]);
    expect(texts(messages)).toEqual([
      "user: Summary of earlier turns:\n\nS.",
      "user: kept",
      "assistant: new",
    ]);
    const { settings } = await session.context();
    expect(settings).toEqual({
      model: { provider: "anthropic", id: "claude" },
      thinkingLevel: "low",
    });
    await session.close();
  });

  it("reads version 2, where messages of extensions have another name", async () => {
    const lines = [
      { ...HEADER, version: 2 },
      ...chained({ type: "message", message: { role: "hookMessage", content: "Hooked" } }),
    ];
    const { messages, session } = await importText(
      lines.map((line) => JSON.stringify(line)).join("\n"),
    );
    expect(texts(messages)).toEqual(["user: Hooked"]);
    await session.close();
  });
});

describe("damage", () => {
  it("attaches what followed a lost line to what stood before it", async () => {
    const [a, b, c, d] = chained(user("a"), answer("b"), user("c"), answer("d"));
    const broken = JSON.stringify(c).slice(0, -9);
    const { messages, session, skipped } = await importLines(a ?? {}, b ?? {}, broken, d ?? {});
    expect(texts(messages)).toEqual(["user: a", "assistant: b", "assistant: d"]);
    expect(skipped).toEqual([{ line: 4, type: "unreadable", why: "The line is damaged." }]);
    await session.close();
  });

  it("does so on the branch that the lost line was on, as far as its head can be read", async () => {
    const { messages, session } = await importLines(
      { type: "message", id: "a", parentId: null, message: user("a")["message"] },
      { type: "message", id: "b", parentId: "a", message: answer("b")["message"] },
      '{"type":"message","id":"c","parentId":"a","timestamp":"20',
      { type: "message", id: "d", parentId: "c", message: user("d")["message"] },
    );
    expect(texts(messages)).toEqual(["user: a", "user: d"]);
    await session.close();
  });

  it("takes a line once", async () => {
    const [a = {}, b = {}] = chained(user("a"), answer("b"));
    const { messages, session, skipped } = await importLines(a, b, b);
    expect(texts(messages)).toEqual(["user: a", "assistant: b"]);
    expect(skipped).toHaveLength(1);
    await session.close();
    const broken = JSON.stringify(b).slice(0, -1);
    const second = await importLines(a, broken, b);
    expect(texts(second.messages)).toEqual(["user: a", "assistant: b"]);
    await second.session.close();
  });

  it("keeps characters that only look like the end of a line", async () => {
    const text = "one\u2028two\u0085three\r";
    const { messages, session } = await importLines(...chained(user(text)));
    expect(texts(messages)).toEqual([`user: ${text}`]);
    await session.close();
  });

  it("refuses what is not pi's, is newer, or is not there", async () => {
    const importCode = (text: string): Promise<unknown> =>
      importText(text).then(
        () => "imported",
        (error: unknown) => (error instanceof SessionError ? error.code : error),
      );
    expect(await importCode("")).toBe("not_a_session");
    expect(await importCode("\u0000\u0000")).toBe("not_a_session");
    expect(await importCode('{"type":"session","version":1,"id":"x","createdAt":1}\n')).toBe(
      "not_a_session",
    );
    expect(await importCode(JSON.stringify({ ...HEADER, version: 4 }))).toBe("newer_version");
    const missing = importPiSession(join(folder, "missing"), () => Promise.reject(new Error("no")));
    await expect(missing).rejects.toMatchObject({ code: "unreadable" });
    expect(isPiHeader(HEADER)).toBe(true);
    expect(isPiHeader({ type: "session", version: 1, id: "x", createdAt: 1 })).toBe(false);
  });

  it("imports any damaged file, to a session that can be gone on with", async () => {
    const lines = chained(
      user("a"),
      calls("c1", "c2"),
      result("c1"),
      result("c2"),
      answer("b"),
      { type: "compaction", summary: "S.", firstKeptEntryId: "e5" },
      user("c"),
      { ...answer("d"), parentId: "e5" },
      calls("c3"),
      result("c3"),
    );
    const header = `${JSON.stringify(HEADER)}\n`;
    const whole = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const damage = fc.array(
      fc.record({
        at: fc.nat(whole.length - 1),
        cut: fc.nat(200),
        put: fc.constantFrom("", "\n", "\u0000\u0000", '{"type":"message"}\n', "null\n"),
      }),
      { minLength: 1, maxLength: 4 },
    );
    await fc.assert(
      fc.asyncProperty(damage, async (edits) => {
        let bytes = whole;
        for (const { at, cut, put } of edits) {
          bytes = Buffer.concat([
            bytes.subarray(0, at),
            Buffer.from(put),
            bytes.subarray(at + cut),
          ]);
        }
        const { messages, session } = await importText(header + bytes.toString("utf8"));
        const faults = new Set(validateTranscript(messages).map(({ fault }) => fault));
        faults.delete("call-without-result");
        faults.delete("empty-content");
        expect([...faults]).toEqual([]);
        await session.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe("going on with an imported session", () => {
  it("R19: answers calls that have no result, and sends all that was said", async () => {
    const { session } = await importLines(...chained(user("Hi"), calls("c1", "c2"), result("c2")));
    const context = await session.context();
    const model = scriptedModel(["Going on.", [call("read", {}, "c1")], "Done."]);
    const agent = new Agent({
      protocol: model,
      unfinished: (id) => context.unfinished(id),
      model: model.model,
      messages: context.messages,
    });
    const end = await agent.prompt("And now?");
    expect(end.stop).toBe("done");
    const sent = model.calls[0]?.messages ?? [];
    expect(validateTranscript(sent)).toEqual([]);
    expect(sent.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
    ]);
    await session.close();
  });

  it("imports thousands of entries without a sync for each", async () => {
    const turns = Array.from({ length: 2_000 }, (_, n) => [user(`q${n}`), answer(`a${n}`)]).flat();
    const { messages, session } = await importLines(...chained(...turns));
    expect(messages).toHaveLength(4_000);
    expect(texts(messages.slice(-1))).toEqual(["assistant: a1999"]);
    const lines = (await readFile(session.path ?? "", "utf8")).trimEnd().split("\n");
    // The header and the settings are lines as well.
    expect(lines).toHaveLength(4_002);
    await session.close();
  });
});
