import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { scriptedModel } from "@gyre/ai/testing";
import { openSession, SessionStore } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Harness, openHarness } from "../harness/harness.ts";
import { sessionTitle, userText } from "./prompt-text.ts";
import { exitText, toLlmMessages, type UserCommandMessage } from "./user-command.ts";

const RAN: UserCommandMessage = {
  role: "userCommand",
  command: "npm test",
  output: "1 failed",
  exitCode: 1,
  aside: false,
  durationMs: 5,
  timestamp: 7,
};

let folder = "";
let harness: Harness | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-user-command-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(path: string, script: Parameters<typeof scriptedModel>[0]): Promise<Harness> {
  const client = scriptedModel(script);
  const { model } = client;
  const session = await openSession(path).catch(() => undefined);
  const store = new SessionStore(folder);
  harness = await openHarness({
    settings: {
      tools: [],
      sandbox: "none",
      instructionFiles: false,
      skills: false,
      facts: false,
    },
    cwd: folder,
    env: { XDG_STATE_HOME: folder, HOME: folder },
    approvals: "deny",
    warn: () => {},
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(model),
      find: () => Promise.resolve(model),
      list: () => Promise.resolve([model]),
    },
    ...(session ? { session } : { newSession: () => store.create({ cwd: folder }) }),
  });
  return harness;
}

describe("what the model gets of a command", () => {
  it("is a message of the user with the command, its output and how it ended", () => {
    expect(toLlmMessages([RAN])).toEqual([
      {
        role: "user",
        content: "I ran this command myself: npm test\n(exit code 1)\nOutput:\n1 failed",
        timestamp: 7,
      },
    ]);
    expect(toLlmMessages([{ ...RAN, output: "", exitCode: null }])).toMatchObject([
      { content: "I ran this command myself: npm test\n(ended by a signal)\nIt printed nothing." },
    ]);
  });

  it("is nothing where it was run aside", () => {
    const user = { role: "user", content: "Why?", timestamp: 0 } as const;
    expect(toLlmMessages([{ ...RAN, aside: true }, user])).toEqual([user]);
  });
});

describe("a session", () => {
  it("has commands as messages of their own, and reopens with them", async () => {
    const seen: string[] = [];
    const answer = ({ messages }: { messages: readonly unknown[] }): string => {
      seen.push(JSON.stringify(messages));
      return "I see.";
    };
    const first = await open("", [answer]);
    await first.prompt({
      text: "Why?",
      userCommands: [RAN, { ...RAN, aside: true, output: "no" }],
    });
    const path = first.session?.path ?? "";
    await first.close();
    const again = await open(path, [answer]);
    expect(again.agent.state.messages).toMatchObject([
      RAN,
      { ...RAN, aside: true, output: "no" },
      { role: "user", content: "Why?" },
      { role: "assistant" },
    ]);
    expect(again.isCutOff).toBe(false);
    await again.prompt({ text: "And now?" });
    expect(seen).toHaveLength(2);
    for (const request of seen) {
      expect(request).toContain("1 failed");
      expect(request).not.toContain('"no"');
    }
    const [summary] = await new SessionStore(folder).list();
    expect(summary && sessionTitle(summary)).toBe("Why?");
  });

  it("counts what commands printed when its context is compacted", async () => {
    const first = await open("", ["One.", "Two.", "Three.", "Four.", "A summary."]);
    const output = "line\n".repeat(1_000);
    await first.prompt({ text: "First" });
    await first.prompt({ text: "Why?", userCommands: [{ ...RAN, output }] });
    await first.prompt({ text: "And?" });
    await first.prompt({ text: "So?" });
    const { before = 0, after = 0 } = (await first.agent.compact()) ?? {};
    expect(before - after).toBeGreaterThan(1_000);
  });

  it("that ends with a command is not cut off", async () => {
    const first = await open("", ["I see."]);
    await first.prompt({ text: "Hi" });
    first.agent.appendMessage(RAN);
    expect(first.isCutOff).toBe(false);
  });
});

describe("a session of an early version, with output inside of prompts", () => {
  const OLD = fileURLToPath(
    new URL("../testing/fixtures/commands-in-prompts.jsonl", import.meta.url),
  );

  it("opens, shows what the user wrote, and is sent as it was", async () => {
    const path = join(folder, "old.jsonl");
    await copyFile(OLD, path);
    let request = "";
    const old = await open(path, [
      ({ messages }) => {
        request = JSON.stringify(messages);
        return "Yes.";
      },
    ]);
    const prompts = old.agent.state.messages.flatMap((message) =>
      message.role === "user" ? [userText(message.content)] : [],
    );
    expect(prompts).toEqual(["Why?", "Did both run?"]);
    await old.prompt({ text: "Sure?" });
    expect(request).toContain("[I ran this command myself (exit code 3): ");
  });
});

it.each([
  [0, "exit code 0"],
  [null, "ended by a signal"],
])("exit code %s is %s", (exitCode, shown) => {
  expect(exitText({ exitCode })).toBe(shown);
});
