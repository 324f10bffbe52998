import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectMcp, listenMcp, type McpConnection } from "@gyre/mcp";
import { SessionStore } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createOffer, MAX_LISTED_SESSIONS, MAX_TRANSCRIPT_CHARS } from "./serve-offer.ts";

const KEY = "sk-ant-api03-abcdefghijklmnop";

let home: string;
let work: string;
let store: SessionStore;
let warnings: string[];
const close: (() => Promise<void>)[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gyre-mcp-offer-"));
  work = join(home, "work");
  mkdirSync(work);
  store = new SessionStore(join(home, "sessions"));
  warnings = [];
});
afterEach(async () => {
  for (const one of close.splice(0)) await one();
  rmSync(home, { recursive: true, force: true });
});

function put(path: string, text: string): void {
  mkdirSync(join(home, path, ".."), { recursive: true });
  writeFileSync(join(home, path), text);
}

/** A client of what is offered. */
async function connect(isWithSessions = true): Promise<McpConnection> {
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, "config") };
  const offer = await createOffer({
    ...{ cwd: work, settings: {}, env, warn: (text) => void warnings.push(text) },
    ...(isWithSessions && { store }),
  });
  const server = await listenMcp({ version: "1", ...offer });
  const client = connectMcp({ config: { url: server.url } });
  close.push(
    () => client.close(),
    () => server.close(),
  );
  return client;
}

async function say(id: string, cwd: string, ...texts: readonly string[]): Promise<void> {
  const session = await store.create({ cwd, id });
  for (const content of texts) {
    await session.append({ type: "message", message: { role: "user", content, timestamp: 0 } });
  }
  await session.close();
}

describe("what gyre mcp serve offers beside tools", () => {
  it("has skills as resources and as prompts, with the text that the agent gets", async () => {
    const skill = "---\nname: brew-tea\ndescription: How to brew tea\n---\nPour at 80 degrees.\n";
    put("config/gyre/skills/brew-tea/SKILL.md", skill);
    const client = await connect();
    expect(await client.resources()).toMatchObject([
      { uri: "gyre://skills/brew-tea", name: "brew-tea", description: "How to brew tea" },
    ]);
    const {
      contents: [read],
    } = await client.read("gyre://skills/brew-tea");
    expect(read).toMatchObject({ mimeType: "text/markdown" });
    expect(JSON.stringify(read)).toContain("Pour at 80 degrees.");
    expect(await client.prompts()).toMatchObject([{ name: "skill:brew-tea" }]);
    const prompt = await client.prompt("skill:brew-tea", { arguments: "Two cups" });
    expect(JSON.stringify(prompt)).toContain("Pour at 80 degrees.");
    expect(JSON.stringify(prompt)).toContain("Do this by the skill above: Two cups");
  });

  it("has commands in files as prompts; what they would run is an error and runs nothing", async () => {
    const text = "---\ndescription: Explain a file\nargument-hint: FILE\n---\nExplain $1.\n";
    put("config/gyre/commands/explain.md", text);
    put("config/gyre/commands/run.md", "See !`touch owned`.\n");
    const client = await connect();
    expect(await client.prompts()).toMatchObject([
      {
        name: "explain",
        description: "Explain a file",
        arguments: [{ name: "arguments", description: "FILE" }],
      },
      { name: "run" },
    ]);
    const { messages } = await client.prompt("explain", { arguments: "tea.txt now" });
    expect(messages).toMatchObject([{ role: "user", content: { text: "Explain tea.txt." } }]);
    await expect(client.prompt("run", {})).rejects.toMatchObject({
      words: expect.stringContaining("runs commands or names files"),
    });
    expect(existsSync(join(work, "owned"))).toBe(false);
  });

  it("has no file with the name of a command of the program", async () => {
    put("config/gyre/commands/help.md", "Mine.\n");
    const client = await connect();
    expect(await client.prompts()).toEqual([]);
  });

  it("has the sessions of the folder alone, without keys", async () => {
    await say("s1", work, `Use ${KEY}.`, "Thanks.");
    await say("other", join(home, "elsewhere"), "Secret plans.");
    const client = await connect();
    expect(await client.resources()).toMatchObject([{ uri: "gyre://sessions/s1", name: "s1" }]);
    const text = JSON.stringify(await client.read("gyre://sessions/s1"));
    expect(text).toContain("Thanks.");
    expect(text).toContain("[redacted]");
    expect(text).not.toContain(KEY);
    expect(JSON.stringify(await client.resources())).not.toContain(KEY);
    await expect(client.read("gyre://sessions/other")).rejects.toThrow("answered with an error");
    await expect(client.read("gyre://sessions/..%2Fx")).rejects.toThrow("answered with an error");
    // One that began later is there by its id.
    await say("s2", work, "Later.");
    expect(JSON.stringify(await client.read("gyre://sessions/s2"))).toContain("Later.");
  });

  it("lists the latest sessions, and cuts the beginning of a long one", async () => {
    for (let nth = 0; nth < MAX_LISTED_SESSIONS + 2; nth++) await say(`s${nth}`, work, "Hi.");
    await say("long", work, "x".repeat(MAX_TRANSCRIPT_CHARS), "The end.");
    const client = await connect();
    expect(await client.resources()).toHaveLength(MAX_LISTED_SESSIONS);
    const text = JSON.stringify(await client.read("gyre://sessions/long"));
    expect(text.length).toBeLessThan(MAX_TRANSCRIPT_CHARS + 1_000);
    expect(text).toContain("characters are left out");
    expect(text).toContain("The end.");
  });

  it("has no sessions where none are to be kept", async () => {
    await say("s1", work, "Hi.");
    const client = await connect(false);
    expect(await client.resources()).toEqual([]);
    await expect(client.read("gyre://sessions/s1")).rejects.toThrow("answered with an error");
  });
});
