import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, fail, say, type ScriptStep, stall, think } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BANNER, type SpokenRun, SpokenWorld } from "../../testing/spoken-program.ts";
import { QUIET_MS } from "../tui/panels/permission.ts";

let world: SpokenWorld;
beforeEach(() => {
  world = new SpokenWorld();
});
// Each byte is looked at there.
afterEach(() => world.close());

describe("a conversation", () => {
  it("is lines one after the other, each paragraph when it is whole", async () => {
    const { talk, seen, code } = world.start([
      [think("Hm."), say("# Hello\nto you\n\n\n- one\n- two")],
      "Yes.",
    ]);
    await talk.until("You: ");
    talk.type("Say hello");
    await talk.until("You: ");
    talk.type("And then? \\");
    talk.type("Really?");
    await talk.until("You: ");
    talk.input.end();
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
    const { talk, seen } = world.start(["Four."], { prompt: "Two and two?" });
    await talk.until("You: ");
    expect(seen()).toContain("Agent: Four.\nDone.");
  });

  it("strips what a terminal would obey from answers and results", async () => {
    const { talk, seen } = world.start(
      [
        [say("\x1b[31mred\x1b[0m \x07 \u009b2J"), call("shell", { command: "printf '\\033[2Jx'" })],
        "Over.",
      ],
      { values: { mode: "full" } },
    );
    await talk.until("You: ");
    talk.type("Go");
    await talk.until("Agent: Over.");
    expect(seen()).toContain("Agent: red");
    expect(talk.written).not.toContain("\x1b");
  });

  it("an empty line does nothing", async () => {
    const { talk, seen } = world.start([]);
    await talk.until("You: ");
    talk.type("");
    await talk.until("You: ");
    expect(seen()).toBe(`${BANNER}\nYou: `);
  });

  it("tells a failure as a sentence, with a way out", async () => {
    const { talk, seen } = world.start([fail("No such key.", { kind: "auth" })]);
    await talk.until("You: ");
    talk.type("Go");
    await talk.until("You: ");
    expect(seen()).toBe(
      `${BANNER}Go\nError: No such key. Choose a model that has a key with /model, or set the key and start again.\nIt ended with an error. It took 0.0 seconds.\nYou: `,
    );
  });
});

describe("tools", () => {
  it("are told when they begin and when they end, with what tells most", async () => {
    const { talk, seen } = world.start(
      [call("shell", { command: "seq 1 12; exit 3" }), "It counted."],
      { values: { mode: "full" } },
    );
    await talk.until("You: ");
    talk.type("Count");
    await talk.until("You: ");
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

  it("tell what they changed, in words", async () => {
    writeFileSync(join(world.work, "a.ts"), "one\ntwo\nthree\n");
    const edits = [{ oldText: "two\n", newText: "zwei\nzwo\n" }];
    const { talk, seen } = world.start(
      [
        call("read", { path: "a.ts" }),
        call("edit", { path: "a.ts", edits }),
        call("write", { path: "b.ts", content: "new\n" }),
        "Done.",
      ],
      { values: { mode: "full" } },
    );
    await talk.until("You: ");
    talk.type("Edit");
    await talk.until("You: ");
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

  it("a command of the user's own is told the same way, and to the model with the next prompt", async () => {
    const { talk, seen } = world.start([
      ({ messages }) => JSON.stringify(messages.map(({ content }) => content)),
    ]);
    await talk.until("You: ");
    talk.type("!echo hi");
    await talk.until("You: ");
    talk.type("What did I do?");
    await talk.until("You: ");
    expect(seen()).toContain("Running shell: echo hi\nDone: shell, exit code 0");
    expect(seen()).toContain("I ran this command myself: echo hi");
  });
});

describe("permission", () => {
  const script: ScriptStep[] = [call("shell", { command: "touch made" }), "Good."];
  const question = `It asks for permission: shell.
It would run: touch made`;

  async function asked(): Promise<SpokenRun> {
    const started = world.start(script);
    await started.talk.until("You: ");
    started.talk.type("Make it");
    await started.talk.until("Answer: ");
    started.clock.now += QUIET_MS;
    return started;
  }

  it("is asked for in words, and given with yes", async () => {
    const { talk, seen } = await asked();
    expect(seen()).toContain(question);
    expect(seen()).toMatch(/Answer yes, always \(.+\), no, or no: and what to do instead\./);
    talk.type("yes");
    await talk.until("Agent: Good.");
    expect(readFileSync(join(world.work, "made"), "utf8")).toBe("");
  });

  it("is refused with what to do instead", async () => {
    const { talk, seen } = await asked();
    talk.type("no: ask me first");
    await talk.until("Agent: Good.");
    expect(seen()).toContain("Not done: shell, denied: a person said no: ask me first.");
  });

  it("is not given by a yes that was typed before the question was heard", async () => {
    const { talk, clock } = await asked();
    clock.now -= QUIET_MS;
    talk.type("yes");
    await talk.until("That came before the question could be heard.");
    expect(existsSync(join(world.work, "made"))).toBe(false);
    clock.now += QUIET_MS;
    talk.type("yes");
    await talk.until("Agent: Good.");
  });

  it("is asked for again where the line is no answer", async () => {
    const { talk, seen } = await asked();
    talk.type("perhaps");
    await talk.until("That is no answer.");
    talk.type("no");
    await talk.until("Agent: Good.");
    expect(seen()).toContain("Not done: shell, denied: ");
  });

  it("Ctrl-C at the question stops the run", async () => {
    const { talk, seen, interrupt } = await asked();
    expect(interrupt()).toBe(true);
    await talk.until("You: ");
    expect(seen()).toContain("Stopped. It took");
  });
});

describe("the start", () => {
  it("a session that is gone on with is told from its end", async () => {
    const before = world.start([[say("Yes?"), call("shell", { command: "true" })], "Hello."], {
      values: { mode: "full" },
    });
    await before.talk.until("You: ");
    before.talk.type("Hello");
    await before.talk.until("You: ");
    before.talk.input.end();
    await before.code;
    const { talk, seen } = world.start([], { values: { continue: true } });
    await talk.until("You: ");
    await talk.until("You: ");
    expect(seen())
      .toBe(`This is gyre VERSION with the model in WORK. /help tells what can be written.
The conversation so far:
You: Hello
Agent: Yes?
Ran shell: true
Agent: Hello.
You: `);
  });

  it("a session that was interrupted waits for the user", async () => {
    const before = world.start([[say("Well."), stall()]]);
    await before.talk.until("You: ");
    before.talk.type("Hello");
    await before.talk.until("Agent: Well.");
    before.talk.type("/stop");
    await before.talk.until("You: ");
    before.talk.input.end();
    await before.code;
    const { talk, seen } = world.start(["Yes."], { values: { continue: true } });
    await talk.until("You: ");
    await talk.until("You: ");
    talk.type("Go on");
    await talk.until("Agent: Yes.");
    expect(seen()).not.toContain("It goes on where it was cut off.");
  });

  it("asks for trust before anything of the folder is used", async () => {
    mkdirSync(join(world.work, ".gyre"));
    writeFileSync(join(world.work, ".gyre", "config.json"), '{"mode":"plan"}');
    const { talk, seen } = world.start([]);
    await talk.until("Number: ");
    expect(seen()).toContain("Trust what WORK brings along?");
    expect(seen()).not.toContain("This is gyre");
    talk.type("");
    await talk.until("You: ");
    expect(seen()).toContain("in WORK, which is not trusted.");
  });

  it("without a model asks how to begin, and a key is never typed in the open", async () => {
    const { talk, seen, code } = world.start([], { hasModels: false });
    await talk.until("Number: ");
    expect(seen()).toContain("There is no model to ask yet");
    talk.type("Store a key");
    await talk.until("Number: ");
    talk.type("1");
    await talk.until("Warning: A key would be shown here.");
    await talk.until("Number: ");
    talk.type("leave");
    expect(await code).toBe(0);
  });

  it("the scripted model is talked to like any other", async () => {
    const { talk, seen } = world.start([], { hasModels: false });
    await talk.until("Number: ");
    talk.type("scripted");
    await talk.until("You: ");
    expect(seen()).toContain("This is a scripted model");
    talk.type("Hello");
    await talk.until("Agent: ");
  });
});
