import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, say, type ScriptStep, stall } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SpokenRun, SpokenWorld } from "../../testing/spoken-program.ts";

let world: SpokenWorld;
beforeEach(() => {
  world = new SpokenWorld();
});
// Each byte is looked at there.
afterEach(() => world.close());

describe("while it works", () => {
  /** Works until it is told something. */
  const patient: ScriptStep[] = [[say("Working."), stall()], "I see."];

  async function working(script: readonly ScriptStep[] = patient): Promise<SpokenRun> {
    const started = world.start(script);
    await started.talk.until("You: ");
    started.talk.type("Go");
    await started.talk.until("Agent: Working.");
    return started;
  }

  it("a line that is queued is listed and can be taken back", async () => {
    const { talk, seen } = await working();
    talk.type("/then check it");
    await talk.until("Queued: it reads this when it is done.\n");
    talk.type("/queue");
    await talk.until("Then: check it\n");
    talk.type("/back");
    await talk.until("Taken back: check it\n/send sends that as it is.\n");
    talk.type("/queue");
    await talk.until("No message is waiting.\n");
    talk.type("/stop");
    await talk.until("You: ");
    expect(seen()).toMatch(
      /No message is waiting\.\n\/stop\nStopped\. It took 0\.0 seconds\.\nYou: $/,
    );
  });

  it("Ctrl-C interrupts, and leaves when nothing runs", async () => {
    const { talk, code, interrupt } = await working();
    expect(interrupt()).toBe(true);
    await talk.until("Stopped.");
    await talk.until("You: ");
    expect(interrupt()).toBe(true);
    expect(await code).toBe(0);
    expect(interrupt()).toBeUndefined();
  });

  it("a text that was taken back is sent with /send", async () => {
    const { talk, seen } = await working();
    talk.type("/then check it");
    await talk.until("Queued: ");
    talk.type("/stop");
    await talk.until("You: ");
    talk.type("/send");
    await talk.until("You: ");
    expect(seen()).toMatch(/\/send\nSent: check it\nAgent: I see\.\nDone\./);
  });

  it("a command that has to wait says so", async () => {
    const { talk, seen } = await working();
    talk.type("/new");
    await talk.until("/stop interrupts.");
    expect(seen()).toContain("Error: /new has to wait until the agent is done. /stop interrupts.");
  });
});

describe("steering", () => {
  it("a line that is typed while it works is told to it", async () => {
    const { talk, seen } = world.start(
      [call("shell", { command: "while [ ! -e go ]; do sleep 0.05; done" }), "I see."],
      { values: { mode: "full" } },
    );
    await talk.until("You: ");
    talk.type("Wait");
    await talk.until("Running shell");
    talk.type("then use tabs");
    await talk.until("before its next step.");
    writeFileSync(join(world.work, "go"), "");
    await talk.until("You: ");
    expect(seen()).toContain("It reads: then use tabs\nAgent: I see.\nDone.");
  });
});

describe("commands", () => {
  it("one that does not end is let go of by /stop, and the next line is a prompt", async () => {
    const mcpServers = { silent: { command: "cat", args: [] } };
    writeFileSync(join(world.work, ".mcp.json"), JSON.stringify({ mcpServers }));
    const { talk, seen } = world.start(["Here I am."], { values: { trust: true } });
    await talk.until("You: ");
    talk.type("/mcp");
    talk.type("/stop");
    await talk.until("Stopped.");
    await talk.until("You: ");
    talk.type("Still there?");
    await talk.until("Agent: Here I am.");
    expect(seen()).not.toContain("Error");
  });

  it("/new with a prompt begins a session that answers it", async () => {
    const { talk, seen } = world.start([({ messages }) => `Of ${messages.length} I see.`]);
    await talk.until("You: ");
    talk.type("/new What now?");
    await talk.until("Agent: Of 1 I see.");
    expect(seen()).toContain("Sent: What now?\n");
  });

  it("/help tells all of them, each once", async () => {
    const { talk, seen } = world.start([]);
    await talk.until("You: ");
    talk.type("/help");
    await talk.until("You: ");
    expect(seen()).toContain("\n/then, send it something for when it is done (TEXT)\n");
    expect(seen()).toContain("\n/rewind, ");
    expect(seen().match(/^\/help, /gm)).toHaveLength(1);
  });

  it("one that is not there is an error", async () => {
    const { talk, seen } = world.start([]);
    await talk.until("You: ");
    talk.type("/nothing");
    await talk.until("You: ");
    expect(seen()).toContain('Error: There is no command "/nothing". /help lists the commands.\n');
  });

  it("a choice is a numbered list, taken by number or by a part of its text", async () => {
    const { talk, seen } = world.start([]);
    await talk.until("You: ");
    talk.type("/mode");
    await talk.until("Number: ");
    talk.type("auto");
    await talk.until("You: ");
    expect(seen()).toMatch(/1\. ask, .*\n2\. auto-edit, .*\n/);
    talk.type("/mode");
    await talk.until("Number: ");
    expect(seen()).toContain("Now: auto-edit");
    talk.type("1");
    await talk.until("You: ");
  });

  it("/context draws nothing", async () => {
    const { talk, seen } = world.start([]);
    await talk.until("You: ");
    talk.type("/context");
    await talk.until("You: ");
    expect(seen()).toMatch(/\nsystem, \S+, .*%\n/);
    expect(seen()).not.toMatch(/[│|─█▓▒░▄·]/);
  });

  it("/tree goes back to a prompt of this branch, which /send sends again", async () => {
    const { talk, seen } = world.start(["One.", "Two.", "One again."]);
    for (const prompt of ["First", "Second"]) {
      await talk.until("You: ");
      talk.type(prompt);
      await talk.until("Done.");
    }
    await talk.until("You: ");
    talk.type("/tree");
    await talk.until("Number: ");
    expect(seen()).toContain("1. Second\n2. First\n");
    talk.type("2");
    await talk.until("Your text:\nFirst\n/send sends it as it is.\n");
    await talk.until("You: ");
    talk.type("/send");
    await talk.until("Agent: One again.");
  });

  it("/copy writes nothing that a terminal obeys", async () => {
    const { talk, seen } = world.start(["One."]);
    await talk.until("You: ");
    talk.type("Go");
    await talk.until("You: ");
    talk.type("/copy");
    await talk.until("You: ");
    expect(seen()).toContain("Error: The terminal does not take 4 characters");
  });
});
