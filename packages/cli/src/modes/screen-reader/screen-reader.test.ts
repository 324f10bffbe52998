import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, fail, say, type ScriptStep, stall, think } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BANNER,
  type ScreenReaderRun,
  ScreenReaderWorld,
} from "../../testing/screen-reader-program.ts";
import { QUIET_MS } from "../tui/panels/permission.ts";

let world: ScreenReaderWorld;
beforeEach(() => {
  world = new ScreenReaderWorld();
});
// Each byte is looked at there.
afterEach(() => world.close());

describe("a conversation", () => {
  it("is lines one after the other, each paragraph when it is whole", async () => {
    const { driver, seen, code } = world.start([
      [think("Hm."), say("# Hello\nto you\n\n\n- one\n- two")],
      "Yes.",
    ]);
    await driver.until("You: ");
    driver.type("Say hello");
    await driver.until("You: ");
    driver.type("And then? \\");
    driver.type("Really?");
    await driver.until("You: ");
    driver.input.end();
    expect(await code).toBe(0);
    expect(seen()).toBe(`${BANNER}Say hello
Thinking.
Agent: # Hello
to you


- one
- two
Done. It took 0.0 seconds.
You: And then? \\
Really?
Agent: Yes.
Done. It took 0.0 seconds.
You: 
To come back: gyre --resume ID
`);
  });

  it("takes the prompt of the command line first", async () => {
    const { driver, seen } = world.start(["Four."], { prompt: "Two and two?" });
    await driver.until("You: ");
    expect(seen()).toContain("Agent: Four.\nDone.");
  });

  it("strips what a terminal would obey from answers and results", async () => {
    const { driver, seen } = world.start(
      [
        [say("\x1b[31mred\x1b[0m \x07 \u009b2J"), call("shell", { command: "printf '\\033[2Jx'" })],
        "Over.",
      ],
      { values: { mode: "full" } },
    );
    await driver.until("You: ");
    driver.type("Go");
    await driver.until("Agent: Over.");
    expect(seen()).toContain("Agent: red");
    expect(driver.written).not.toContain("\x1b");
  });

  it("an empty line does nothing", async () => {
    const { driver, seen } = world.start([]);
    await driver.until("You: ");
    driver.type("");
    await driver.until("You: ");
    expect(seen()).toBe(`${BANNER}\nYou: `);
  });

  it("shows a failure as a sentence, with what helps", async () => {
    const { driver, seen } = world.start([fail("No such key.", { kind: "auth" })]);
    await driver.until("You: ");
    driver.type("Go");
    await driver.until("You: ");
    expect(seen()).toBe(
      `${BANNER}Go\nError: No such key. Choose a model that has a key with /model, or set the key and start again.\nIt ended with an error. It took 0.0 seconds.\nYou: `,
    );
  });
});

describe("tools", () => {
  it("are shown when they begin and when they end, with what matters most", async () => {
    const { driver, seen } = world.start(
      [call("shell", { command: "seq 1 12; exit 3" }), "It counted."],
      { values: { mode: "full" } },
    );
    await driver.until("You: ");
    driver.type("Count");
    await driver.until("You: ");
    expect(seen().replace("exit code 3, TIME.", "exit code 3.")).toBe(`${BANNER}Count
Running shell: seq 1 12; exit 3
Done: shell, exit code 3.
5
6
7
8
9
10
11
12
4 more lines.
Agent: It counted.
Done. It took 0.0 seconds.
You: `);
  });

  it("say what they changed, in words", async () => {
    writeFileSync(join(world.work, "a.ts"), "one\ntwo\nthree\n");
    const edits = [{ oldText: "two\n", newText: "zwei\nzwo\n" }];
    const { driver, seen } = world.start(
      [
        call("read", { path: "a.ts" }),
        call("edit", { path: "a.ts", edits }),
        call("write", { path: "b.ts", content: "new\n" }),
        "Done.",
      ],
      { values: { mode: "full" } },
    );
    await driver.until("You: ");
    driver.type("Edit");
    await driver.until("You: ");
    expect(seen()).toBe(`${BANNER}Edit
Running read: a.ts
Done: read, 3 lines.
Running edit: a.ts
Changed a.ts: 2 lines added, 1 removed.
Removed: two
Added: zwei
Added: zwo
Running write: b.ts
Made b.ts: 1 line added, 0 removed.
Added: new
Agent: Done.
Done. It took 0.0 seconds.
You: `);
  });

  it("a command of the user's own is shown the same way, and to the model with the next prompt", async () => {
    const { driver, seen } = world.start([
      ({ messages }) => JSON.stringify(messages.map(({ content }) => content)),
    ]);
    await driver.until("You: ");
    driver.type("!echo hi");
    await driver.until("You: ");
    driver.type("What did I do?");
    await driver.until("You: ");
    expect(seen()).toContain("Running shell: echo hi\nDone: shell, exit code 0");
    expect(seen()).toContain("I ran this command myself: echo hi");
  });
});

describe("permission", () => {
  const script: ScriptStep[] = [call("shell", { command: "touch made" }), "Good."];
  const question = `It asks for permission: shell.
It would run: touch made`;

  async function asked(): Promise<ScreenReaderRun> {
    const started = world.start(script);
    await started.driver.until("You: ");
    started.driver.type("Make it");
    await started.driver.until("Answer: ");
    started.clock.now += QUIET_MS;
    return started;
  }

  it("is asked for in words, and given with yes", async () => {
    const { driver, seen } = await asked();
    expect(seen()).toContain(question);
    expect(seen()).toMatch(/Answer yes, always \(.+\), no, or no: and what to do instead\./);
    driver.type("yes");
    await driver.until("Agent: Good.");
    expect(readFileSync(join(world.work, "made"), "utf8")).toBe("");
  });

  it("is refused with what to do instead", async () => {
    const { driver, seen } = await asked();
    driver.type("no: ask me first");
    await driver.until("Agent: Good.");
    expect(seen()).toContain("Not done: shell, denied: a person said no: ask me first.");
  });

  it("is not given by a yes that was typed before the question was heard", async () => {
    const { driver, clock } = await asked();
    clock.now -= QUIET_MS;
    driver.type("yes");
    await driver.until("That came before the question could be heard.");
    expect(existsSync(join(world.work, "made"))).toBe(false);
    clock.now += QUIET_MS;
    driver.type("yes");
    await driver.until("Agent: Good.");
  });

  it("is asked for again where the line is no answer", async () => {
    const { driver, seen } = await asked();
    driver.type("perhaps");
    await driver.until("That is no answer.");
    driver.type("no");
    await driver.until("Agent: Good.");
    expect(seen()).toContain("Not done: shell, denied: ");
  });

  it("Ctrl-C at the question stops the run", async () => {
    const { driver, seen, interrupt } = await asked();
    expect(interrupt()).toBe(true);
    await driver.until("You: ");
    expect(seen()).toContain("Stopped. It took");
  });
});

describe("the start", () => {
  it("a session that is gone on with is shown from its end", async () => {
    const before = world.start([[say("Yes?"), call("shell", { command: "true" })], "Hello."], {
      values: { mode: "full" },
    });
    await before.driver.until("You: ");
    before.driver.type("Hello");
    await before.driver.until("You: ");
    before.driver.input.end();
    await before.code;
    const { driver, seen } = world.start([], { values: { continue: true } });
    await driver.until("You: ");
    await driver.until("You: ");
    expect(seen()).toBe(`This is gyre VERSION with the model in WORK. /help lists the commands.
The conversation so far:
You: Hello
Agent: Yes?
Ran shell: true
Agent: Hello.
You: `);
  });

  it("a session that was interrupted waits for the user", async () => {
    const before = world.start([[say("Well."), stall()]]);
    await before.driver.until("You: ");
    before.driver.type("Hello");
    await before.driver.until("Agent: Well.");
    before.driver.type("/stop");
    await before.driver.until("You: ");
    before.driver.input.end();
    await before.code;
    const { driver, seen } = world.start(["Yes."], { values: { continue: true } });
    await driver.until("You: ");
    await driver.until("You: ");
    driver.type("Go on");
    await driver.until("Agent: Yes.");
    expect(seen()).not.toContain("It goes on where it was cut off.");
  });

  it("asks for trust before anything of the folder is used", async () => {
    mkdirSync(join(world.work, ".gyre"));
    writeFileSync(join(world.work, ".gyre", "config.json"), '{"mode":"plan"}');
    const { driver, seen } = world.start([]);
    await driver.until("Number: ");
    expect(seen()).toContain("Trust what WORK brings along?");
    expect(seen()).not.toContain("This is gyre");
    driver.type("");
    await driver.until("You: ");
    expect(seen()).toContain("in WORK, which is not trusted.");
  });

  it("without a model asks how to begin, and a key is never typed in the open", async () => {
    const { driver, seen, code } = world.start([], { hasModels: false });
    await driver.until("Number: ");
    expect(seen()).toContain("There is no model to ask yet");
    driver.type("Store a key");
    await driver.until("Number: ");
    driver.type("1");
    await driver.until("Warning: A key would be shown here.");
    await driver.until("Number: ");
    driver.type("leave");
    expect(await code).toBe(0);
  });

  it("the scripted model is talked to like any other", async () => {
    const { driver, seen } = world.start([], { hasModels: false });
    await driver.until("Number: ");
    driver.type("scripted");
    await driver.until("You: ");
    expect(seen()).toContain("This is a scripted model");
    driver.type("Hello");
    await driver.until("Agent: ");
  });
});
