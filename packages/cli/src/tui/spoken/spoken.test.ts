import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  call,
  fail,
  say,
  scriptedModel,
  scriptedModelInfo,
  type ScriptStep,
  stall,
  think,
} from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interruption } from "../../exit-codes.ts";
import type { Models } from "../../models.ts";
import type { Values } from "../../options.ts";
import { textIo } from "../../testing/command-io.ts";
import { LineTalk } from "../../testing/line-talk.ts";
import { version } from "../../version.ts";
import { QUIET_MS } from "../permission-panel.ts";
import { runSpoken } from "./spoken.ts";

/** What a terminal would obey, or could not show. */
// oxlint-disable-next-line no-control-regex
const OBEYED = /[\x00-\x08\x0b-\x1f\x7f\x9b]/;
const TEST_MS = 30_000;

let base = "";
let work = "";
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-spoken-")));
  work = join(base, "work");
  mkdirSync(work);
});
const talks: { talk: LineTalk; ended: Promise<unknown> }[] = [];
afterEach(async () => {
  for (const { talk, ended } of talks.splice(0)) {
    talk.input.end();
    await ended;
    expect(talk.written).not.toMatch(OBEYED);
  }
  rmSync(base, { recursive: true, force: true });
});

interface Started {
  talk: LineTalk;
  code: Promise<number>;
  /** All that one sees, with what differs from run to run made the same. */
  seen: () => string;
  clock: { now: number };
}

interface StartOptions {
  values?: Values;
  prompt?: string;
  /** Without one, the program has to ask. */
  hasModels?: boolean;
}

function modelsOf(script: readonly ScriptStep[]): Models {
  const client = scriptedModel(script, { keepCalls: false });
  const model = { ...scriptedModelInfo, name: "the model" };
  return {
    client,
    fallbacks: [],
    current: () => Promise.resolve(model),
    find: () => Promise.resolve(model),
    list: () => Promise.resolve([model]),
  };
}

function start(script: readonly ScriptStep[], options: StartOptions = {}): Started {
  const { values = {}, prompt, hasModels = true } = options;
  const talk = new LineTalk();
  const clock = { now: 0 };
  const env = {
    PATH: process.env["PATH"],
    SHELL: "/bin/sh",
    XDG_STATE_HOME: join(base, "state"),
    XDG_CONFIG_HOME: join(base, "config"),
    GYRE_FAST: "1",
  };
  const code = runSpoken(
    prompt === undefined ? [] : [prompt],
    { sandbox: "none", ...values },
    textIo({ cwd: work, env }),
    talk,
    {
      ...(hasModels && { models: modelsOf(script) }),
      clock: {
        now: () => clock.now,
        after: (_ms, run) => {
          const timer = setTimeout(run, TEST_MS);
          return () => clearTimeout(timer);
        },
        turn: () => Promise.resolve(),
      },
    },
  );
  talks.push({ talk, ended: code.catch(() => {}) });
  const seen = (): string =>
    talk.seen
      .replaceAll(work, "WORK")
      .replaceAll(version(), "VERSION")
      .replace(/, \d+\.\d seconds\.$/gm, ", TIME.")
      .replace(/--resume \S+/g, "--resume ID");
  return { talk, code, seen, clock };
}

const BANNER =
  "This is gyre VERSION with the model in WORK. /help tells what can be written.\nYou: ";

describe("a conversation", () => {
  it("is lines one after the other, each paragraph when it is whole", async () => {
    const { talk, seen, code } = start([
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
You: ${"\n"}To come back: gyre --resume ID
`);
  });

  it("takes the prompt of the command line first", async () => {
    const { talk, seen } = start(["Four."], { prompt: "Two and two?" });
    await talk.until("You: ");
    expect(seen()).toContain("Agent: Four.\nDone.");
  });

  it("strips what a terminal would obey from answers and results", async () => {
    const { talk, seen } = start(
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
    expect(talk.written).not.toMatch(OBEYED);
  });

  it("an empty line does nothing", async () => {
    const { talk, seen } = start([]);
    await talk.until("You: ");
    talk.type("");
    await talk.until("You: ");
    expect(seen()).toBe(`${BANNER}\nYou: `);
  });

  it("tells a failure as a sentence, with a way out", async () => {
    const { talk, seen } = start([fail("No such key.", { kind: "auth" })]);
    await talk.until("You: ");
    talk.type("Go");
    await talk.until("You: ");
    expect(seen()).toBe(
      `${BANNER}Go\nError: No such key. Choose a model that has a key with /model, or set the key and start again.\nIt ended with an error. It took 0.0 seconds.\nYou: `,
    );
  });
});

describe("tools", () => {
  it(
    "are told when they begin and when they end, with what tells most",
    async () => {
      const { talk, seen } = start(
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
    },
    TEST_MS,
  );

  it("tell what they changed, in words", async () => {
    writeFileSync(join(work, "a.ts"), "one\ntwo\nthree\n");
    const edits = [{ oldText: "two\n", newText: "zwei\nzwo\n" }];
    const { talk, seen } = start(
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
    const { talk, seen } = start([({ messages }) => JSON.stringify(messages.at(-1)?.content)]);
    await talk.until("You: ");
    talk.type("!echo hi");
    await talk.until("You: ");
    talk.type("What did I do?");
    await talk.until("You: ");
    expect(seen()).toContain("Running shell: echo hi\nDone: shell, exit code 0");
    expect(seen()).toContain("I ran this command myself (exit code 0)");
  });
});

describe("permission", () => {
  const script: ScriptStep[] = [call("shell", { command: "touch made" }), "Good."];
  const question = `It asks for permission: shell.
It would run: touch made`;

  async function asked(): Promise<Started> {
    const started = start(script);
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
    expect(readFileSync(join(work, "made"), "utf8")).toBe("");
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
    clock.now += QUIET_MS;
    talk.type("yes");
    await talk.until("Agent: Good.");
  });

  it("is asked for again where the line is no answer", async () => {
    const { talk } = await asked();
    talk.type("perhaps");
    await talk.until("That is no answer.");
    talk.type("no");
    await talk.until("Agent: Good.");
  });

  it("Ctrl-C at the question stops the run", async () => {
    const { talk, seen } = await asked();
    expect(interruption.take?.()).toBe(true);
    await talk.until("You: ");
    expect(seen()).toContain("Stopped. It took");
  });
});

describe("while it works", () => {
  /** Works until it is told something. */
  const patient: ScriptStep[] = [[say("Working."), stall()], "I see."];

  async function working(script: readonly ScriptStep[] = patient): Promise<Started> {
    const started = start(script);
    await started.talk.until("You: ");
    started.talk.type("Go");
    await started.talk.until("Agent: Working.");
    return started;
  }

  it("a line that is queued is listed and can be taken back", async () => {
    const { talk, seen } = await working();
    talk.type("/then check it");
    await talk.until("Told it for when it is done.\n");
    talk.type("/queue");
    await talk.until("Then: check it\n");
    talk.type("/back");
    await talk.until("Taken back: check it\n/send sends that as it is.\n");
    talk.type("/queue");
    await talk.until("Nothing waits.\n");
    talk.type("/stop");
    await talk.until("You: ");
    expect(seen()).toMatch(/Nothing waits\.\n\/stop\nStopped\. It took 0\.0 seconds\.\nYou: $/);
  });

  it("Ctrl-C interrupts, and leaves when nothing runs", async () => {
    const { talk, code } = await working();
    expect(interruption.take?.()).toBe(true);
    await talk.until("Stopped.");
    await talk.until("You: ");
    expect(interruption.take?.()).toBe(true);
    expect(await code).toBe(0);
    expect(interruption.take).toBeUndefined();
  });

  it("a text that was taken back is sent with /send", async () => {
    const { talk, seen } = await working();
    talk.type("/then check it");
    await talk.until("Told it");
    talk.type("/stop");
    await talk.until("You: ");
    talk.type("/send");
    await talk.until("You: ");
    expect(seen()).toMatch(/\/send\nAgent: I see\.\nDone\./);
  });

  it("a command that has to wait says so", async () => {
    const { talk } = await working();
    talk.type("/new");
    await talk.until("Error: /new has to wait until it is done. /stop interrupts.");
  });
});

describe("steering", () => {
  it(
    "a line that is typed while it works is told to it",
    async () => {
      const { talk, seen } = start(
        [call("shell", { command: "while [ ! -e go ]; do sleep 0.05; done" }), "I see."],
        { values: { mode: "full" } },
      );
      await talk.until("You: ");
      talk.type("Wait");
      await talk.until("Running shell");
      talk.type("then use tabs");
      await talk.until("Told it.");
      writeFileSync(join(work, "go"), "");
      await talk.until("You: ");
      expect(seen()).toContain("It reads: then use tabs\nAgent: I see.\nDone.");
    },
    TEST_MS,
  );
});

describe("commands", () => {
  it("/help tells all of them, each once", async () => {
    const { talk, seen } = start([]);
    await talk.until("You: ");
    talk.type("/help");
    await talk.until("You: ");
    expect(seen()).toContain("\n/then: tell it something for when it is done (TEXT)\n");
    expect(seen()).toContain("\n/rewind: ");
    expect(seen().match(/^\/help: /gm)).toHaveLength(1);
  });

  it("one that is not there is an error", async () => {
    const { talk } = start([]);
    await talk.until("You: ");
    talk.type("/nothing");
    await talk.until('Error: There is no command "/nothing". /help lists those that there are.');
    await talk.until("You: ");
  });

  it("a choice is a numbered list, taken by number or by a part of its text", async () => {
    const { talk, seen } = start([]);
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
    const { talk, seen } = start([]);
    await talk.until("You: ");
    talk.type("/context");
    await talk.until("You: ");
    expect(seen()).toMatch(/\nsystem, \S+, .*%\n/);
    expect(seen()).not.toMatch(/[│|─█▓▒░▄·]/);
  });

  it("/tree goes back to a prompt of this branch, which /send sends again", async () => {
    const { talk, seen } = start(["One.", "Two.", "One again."]);
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
    const { talk } = start(["One."]);
    await talk.until("You: ");
    talk.type("Go");
    await talk.until("You: ");
    talk.type("/copy");
    await talk.until("Error: The terminal cannot be told to do that here");
    await talk.until("You: ");
  });
});

describe("the start", () => {
  it("a session that is gone on with is told from its end", async () => {
    const before = start([[say("Yes?"), call("shell", { command: "true" })], "Hello."], {
      values: { mode: "full" },
    });
    await before.talk.until("You: ");
    before.talk.type("Hello");
    await before.talk.until("You: ");
    before.talk.input.end();
    await before.code;
    const { talk, seen } = start([], { values: { continue: true } });
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

  it("asks for trust before anything of the folder is used", async () => {
    mkdirSync(join(work, ".gyre"));
    writeFileSync(join(work, ".gyre", "config.json"), '{"mode":"plan"}');
    const { talk, seen } = start([]);
    await talk.until("Number: ");
    expect(seen()).toContain("Trust what WORK brings along?");
    expect(seen()).not.toContain("This is gyre");
    talk.type("");
    await talk.until("You: ");
    expect(seen()).toContain("in WORK, which is not trusted.");
  });

  it("without a model asks how to begin, and a key is never typed in the open", async () => {
    const { talk, seen, code } = start([], { hasModels: false });
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
    const { talk, seen } = start([], { hasModels: false });
    await talk.until("Number: ");
    talk.type("scripted");
    await talk.until("You: ");
    expect(seen()).toContain("This is a scripted model");
    talk.type("Hello");
    await talk.until("Agent: ");
  });
});
