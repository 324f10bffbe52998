import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import { textIo } from "../../testing/command-io.ts";
import { type ScriptedService, scriptedService } from "../../testing/scripted-service.ts";
import { runPrint } from "./print.ts";

let home: string;
let service: ScriptedService;
/** Copies to the clipboard, clears the screen, hides a link and turns text around. */
const ANSWER =
  "a\u001B]52;c;cm0gLXJm\u0007b\u001B[2Jc\u001B]8;;http://evil\u001B\\d\u009B31me\u202Ef\tg\nh";

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "gyre-print-"));
  mkdirSync(join(home, "work"));
  service = await scriptedService([{ say: ANSWER }]);
});
afterEach(async () => {
  await service.close();
  rmSync(home, { recursive: true, force: true });
});

async function print(isTTY: boolean, more: Values = {}): Promise<string> {
  let out = "";
  const io = textIo({
    cwd: join(home, "work"),
    stdout: { write: (text: string) => (out += text), isTTY },
    env: {
      HOME: home,
      PATH: process.env["PATH"],
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_STATE_HOME: join(home, "state"),
      ANTHROPIC_API_KEY: "test-key",
      ANTHROPIC_BASE_URL: service.url,
    },
  });
  await runPrint(["Hi"], { "no-session": true, quiet: true, ...more }, io);
  return out;
}

describe("an answer that cites", () => {
  const cited = {
    type: "web_search_result_location",
    url: "https://tea.example/",
    title: "Tea\u001B[2J",
    encrypted_index: "Eo8B",
    cited_text: "...",
  };

  beforeEach(async () => {
    await service.close();
    const texts = [{ text: "Tea is old.", citations: [cited] }, { text: " Milk is not." }];
    service = await scriptedService([{ say: texts }]);
  });

  it("has the list of its sources below it", async () => {
    expect(await print(true)).toBe(
      "Tea is old. [1] Milk is not.\n\nSources:\n[1] Tea: https://tea.example/\n",
    );
  });

  it("has them as data in JSON, and its text as it came", async () => {
    const result = JSON.parse(await print(false, { output: "json" })) as object;
    expect(result).toMatchObject({
      text: "Tea is old. Milk is not.",
      sources: [{ url: "https://tea.example/", title: cited.title }],
    });
  });
});

describe("a session in a database", () => {
  const ask = async (prompt: string, more: Values): Promise<string> => {
    let out = "";
    const io = textIo({
      cwd: join(home, "work"),
      stdout: { write: (text: string) => (out += text), isTTY: false },
      env: {
        HOME: home,
        PATH: process.env["PATH"],
        XDG_CONFIG_HOME: join(home, "config"),
        XDG_STATE_HOME: join(home, "state"),
        ANTHROPIC_API_KEY: "test-key",
        ANTHROPIC_BASE_URL: service.url,
      },
    });
    await runPrint([prompt], { quiet: true, database: "file:runs.db", ...more }, io);
    return out;
  };

  it("is made, continued and forked; no file is written", async () => {
    await service.close();
    service = await scriptedService([{ say: "Green." }, { say: "I named it." }, { say: "So." }]);
    expect(await ask("Name a tea.", {})).toBe("Green.\n");
    expect(await ask("Which?", { continue: true })).toBe("I named it.\n");
    expect(await ask("And?", { continue: true, fork: true })).toBe("So.\n");
    const { openRuns, hostPool } = await import("@gyre/durable");
    const runs = await openRuns(`file:${join(home, "work", "runs.db")}`);
    const sessions = await runs.sessions({ pool: hostPool() }).list({ cwd: join(home, "work") });
    expect(sessions.map(({ firstPrompt }) => firstPrompt)).toEqual(["Name a tea.", "Name a tea."]);
    expect(await runs.workers()).toEqual([]);
    await runs.close();
    expect(existsSync(join(home, "state", "gyre", "sessions"))).toBe(false);
  });

  it("says what is wrong with the address, and with options that do not go with it", async () => {
    await expect(ask("Hi", { database: "mysql://x" })).rejects.toThrow(
      "Runs cannot be opened from",
    );
    await expect(ask("Hi", { continue: true })).rejects.toThrow("There is no session of");
    const together = ask("Hi", { "no-session": true });
    await expect(together).rejects.toThrow("--database and --no-session cannot be used together.");
  });
});

describe("the answer on stdout", () => {
  it("has nothing that a terminal obeys where stdout is one", async () => {
    expect(await print(true)).toBe("a␛bc␛def\tg\nh\n");
  });

  it("is as the model wrote it where a program reads it", async () => {
    expect(await print(false)).toBe(`${ANSWER}\n`);
  });
});
