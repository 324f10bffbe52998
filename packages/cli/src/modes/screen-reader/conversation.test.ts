import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, say, type ScriptStep, stall } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ScreenReaderRun, ScreenReaderWorld } from "../../testing/screen-reader-program.ts";

let world: ScreenReaderWorld;
beforeEach(() => {
  world = new ScreenReaderWorld();
});
// Each byte is looked at there.
afterEach(() => world.close());

describe("while it works", () => {
  /** Works until it gets a message. */
  const patient: ScriptStep[] = [[say("Working."), stall()], "I see."];

  async function working(script: readonly ScriptStep[] = patient): Promise<ScreenReaderRun> {
    const started = world.start(script);
    await started.driver.until("You: ");
    started.driver.type("Go");
    await started.driver.until("Agent: Working.");
    return started;
  }

  it("a line that is queued is listed and can be taken back", async () => {
    const { driver, seen } = await working();
    driver.type("/then check it");
    await driver.until("Queued: it reads this when it is done.\n");
    driver.type("/queue");
    await driver.until("Then: check it\n");
    driver.type("/back");
    await driver.until("Taken back: check it\n/send sends that as it is.\n");
    driver.type("/queue");
    await driver.until("No message is waiting.\n");
    driver.type("/stop");
    await driver.until("You: ");
    expect(seen()).toMatch(
      /No message is waiting\.\n\/stop\nStopped\. It took 0\.0 seconds\.\nYou: $/,
    );
  });

  it("Ctrl-C interrupts, and leaves when nothing runs", async () => {
    const { driver, code, interrupt } = await working();
    expect(interrupt()).toBe(true);
    await driver.until("Stopped.");
    await driver.until("You: ");
    expect(interrupt()).toBe(true);
    expect(await code).toBe(0);
    expect(interrupt()).toBeUndefined();
  });

  it("a text that was taken back is sent with /send", async () => {
    const { driver, seen } = await working();
    driver.type("/then check it");
    await driver.until("Queued: ");
    driver.type("/stop");
    await driver.until("You: ");
    driver.type("/send");
    await driver.until("You: ");
    expect(seen()).toMatch(/\/send\nSent: check it\nAgent: I see\.\nDone\./);
  });

  it("a command that has to wait says so", async () => {
    const { driver, seen } = await working();
    driver.type("/new");
    await driver.until("/stop interrupts.");
    expect(seen()).toContain("Error: /new has to wait until the agent is done. /stop interrupts.");
  });
});

describe("steering", () => {
  it("a line that is typed while it works reaches it", async () => {
    const { driver, seen } = world.start(
      [call("shell", { command: "while [ ! -e go ]; do sleep 0.05; done" }), "I see."],
      { values: { mode: "full" } },
    );
    await driver.until("You: ");
    driver.type("Wait");
    await driver.until("Running shell");
    driver.type("then use tabs");
    await driver.until("before its next step.");
    writeFileSync(join(world.work, "go"), "");
    await driver.until("You: ");
    expect(seen()).toContain("It reads: then use tabs\nAgent: I see.\nDone.");
  });
});

describe("commands", () => {
  it("one that does not end is left by /stop, and the next line is a prompt", async () => {
    const mcpServers = { silent: { command: "cat", args: [] } };
    writeFileSync(join(world.work, ".mcp.json"), JSON.stringify({ mcpServers }));
    const { driver, seen } = world.start(["Here I am."], { values: { trust: true } });
    await driver.until("You: ");
    driver.type("/mcp");
    driver.type("/stop");
    await driver.until("Stopped.");
    await driver.until("You: ");
    driver.type("Still there?");
    await driver.until("Agent: Here I am.");
    expect(seen()).not.toContain("Error");
  });

  it("/new with a prompt begins a session that answers it", async () => {
    const { driver, seen } = world.start([({ messages }) => `Of ${messages.length} I see.`]);
    await driver.until("You: ");
    driver.type("/new What now?");
    // The prompt, after the facts that each session begins with.
    await driver.until("Agent: Of 2 I see.");
    expect(seen()).toContain("Sent: What now?\n");
  });

  it("/help lists all of them, each once", async () => {
    const { driver, seen } = world.start([]);
    await driver.until("You: ");
    driver.type("/help");
    await driver.until("You: ");
    expect(seen()).toContain("\n/then, send it something for when it is done (TEXT)\n");
    expect(seen()).toContain("\n/rewind, ");
    expect(seen().match(/^\/help, /gm)).toHaveLength(1);
  });

  it("one that is not there is an error", async () => {
    const { driver, seen } = world.start([]);
    await driver.until("You: ");
    driver.type("/nothing");
    await driver.until("You: ");
    expect(seen()).toContain('Error: There is no command "/nothing". /help lists the commands.\n');
  });

  it("a choice is a numbered list, taken by number or by a part of its text", async () => {
    const { driver, seen } = world.start([]);
    await driver.until("You: ");
    driver.type("/mode");
    await driver.until("Number: ");
    driver.type("edit");
    await driver.until("You: ");
    expect(seen()).toMatch(/1\. ask, .*\n2\. auto-edit, .*\n/);
    driver.type("/mode");
    await driver.until("Number: ");
    expect(seen()).toContain("Now: auto-edit");
    driver.type("1");
    await driver.until("You: ");
  });

  it("/context draws nothing", async () => {
    const { driver, seen } = world.start([]);
    await driver.until("You: ");
    driver.type("/context");
    await driver.until("You: ");
    expect(seen()).toMatch(/\nsystem, \S+, .*%\n/);
    expect(seen()).not.toMatch(/[│|─█▓▒░▄·]/);
  });

  it("/tree goes back to a prompt of this branch, which /send sends again", async () => {
    const { driver, seen } = world.start(["One.", "Two.", "One again."]);
    for (const prompt of ["First", "Second"]) {
      await driver.until("You: ");
      driver.type(prompt);
      await driver.until("Done.");
    }
    await driver.until("You: ");
    driver.type("/tree");
    await driver.until("Number: ");
    expect(seen()).toContain("1. Second\n2. First\n");
    driver.type("2");
    await driver.until("Your text:\nFirst\n/send sends it as it is.\n");
    await driver.until("You: ");
    driver.type("/send");
    await driver.until("Agent: One again.");
  });

  it("/copy writes nothing that a terminal obeys", async () => {
    const { driver, seen } = world.start(["One."]);
    await driver.until("You: ");
    driver.type("Go");
    await driver.until("You: ");
    driver.type("/copy");
    await driver.until("You: ");
    expect(seen()).toContain("Error: The terminal does not take 4 characters");
  });
});
