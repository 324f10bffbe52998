import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { requestCheckFor } from "../../../../ai/src/providers/testing/request-checks.ts";
import {
  buildProgram,
  type Ended,
  jsonLines,
  type Program,
  type RunOptions,
  sessionFiles,
} from "../../testing/program.ts";
import {
  type Script,
  type ScriptedService,
  scriptedService,
  type ServiceOptions,
} from "../../testing/scripted-service.ts";
import { readTranscript } from "../../testing/transcript.ts";
import { countCases } from "../../../../../tests/support/cases.ts";

// What a disk, a pipe, a signal or a service may do to the program in the middle of its work.

let program: Program;
const services: ScriptedService[] = [];

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

async function serve(script: Script, options: ServiceOptions = {}): Promise<ScriptedService> {
  const service = await scriptedService(script, options);
  services.push(service);
  return service;
}

async function run(
  script: Script,
  args: readonly string[],
  options: Omit<RunOptions, "service"> = {},
): Promise<Ended> {
  return program.gyre(["-p", "A story.", ...args], { service: await serve(script), ...options });
}

/** A home with a folder to work in. */
function homeWith(files: Record<string, string>, name: string): string {
  const home = join(program.entry, "../..", name);
  mkdirSync(join(home, "work"), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(home, "work", file), text);
  return home;
}

/** Refuses what the real service would refuse. */
const checked: ServiceOptions = {
  check: ({ wire, body }) => requestCheckFor({ api: wire, provider: "anthropic" })(body),
};
const ONCE = { say: "Once upon a time." } as const;
const PUBLISH = { say: [{ call: "shell", arguments: { command: "npm publish" } }] } as const;
const FORMATS = ["text", "json", "stream-json"] as const;
/** A file that can be opened, and takes nothing. */
const FULL = "/dev/full";

describe.runIf(existsSync(FULL))("a full disk", () => {
  it.each(FORMATS)("below stdout is reported in one line (%s)", async (format) => {
    const ended = await run([ONCE], ["--output", format], { outputTo: FULL });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/^gyre: stdout cannot be written to: ENOSPC[^\n]*\n$/);
    const [file = ""] = sessionFiles(ended.home);
    expect((await readTranscript(file)).problems).toEqual([]);
  });

  it("below stderr does not change how it ends", async () => {
    const ended = await run([], ["--model", "absent/nothing"], { errorsTo: FULL });
    expect([ended.code, ended.stdout]).toEqual([2, ""]);
  });

  it.each(["--verbose", "--log"])("below %s is a warning", async (flag) => {
    const ended = await run([ONCE], [flag, FULL]);
    expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
    expect(ended.stderr).toMatch(/^gyre: [^\n]*ENOSPC[^\n]*\n$/);
  });
});

describe("the end", () => {
  it("comes without a word when the reader is gone", async () => {
    const service = await serve([{ say: "Once upon a time. ".repeat(100), paceMs: 5 }]);
    const reading = await program.start(["-p", "A story.", "--output", "stream-json"], { service });
    await reading.shows('"text_delta"');
    reading.stopReading();
    const ended = await reading.end;
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    const [file = ""] = sessionFiles(ended.home);
    const { lines, problems } = await readTranscript(file);
    expect([lines.length, problems]).toEqual([2, []]);
    expect(lines[1]).toMatch(/^assistant \(aborted\): Once upon/);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("by %s has the same code in the result", async (signal, code) => {
    const service = await serve([{ silent: true }]);
    const asking = await program.start(["-p", "A story.", "--output", "json"], { service });
    await service.asked(0);
    asking.kill(signal);
    const ended = await asking.end;
    expect([ended.code, ended.stderr]).toEqual([code, "gyre: Interrupted.\n"]);
    expect(jsonLines(ended.stdout)).toMatchObject([
      { ok: false, exitCode: code, error: { kind: "interrupted" } },
    ]);
  });

  it.each(["0.001", "0.02", "0.04", "0.06"])(
    "of a time of %s s is reported, however far it got",
    async (seconds) => {
      const args = ["--timeout", seconds, "--output", "stream-json"];
      const ended = await run([{ silent: true }], args);
      expect(ended.code).toBe(124);
      expect(ended.stderr).toBe(`gyre: The time is over: ${seconds} s (--timeout).\n`);
    },
  );

  it("is 53 where the model may write no more, and what it wrote is shown", async () => {
    const ended = await run([{ say: "Once upon", stop: "length" }], []);
    expect([ended.code, ended.stdout]).toEqual([53, "Once upon\n"]);
    expect(ended.stderr).toMatch(/^gyre: The answer is cut short[^\n]*\n$/);
  });

  it("is 54 where the same denied call is made over and over", async () => {
    const ended = await run(() => PUBLISH, ["--output", "json"]);
    expect(ended.code).toBe(54);
    expect(jsonLines(ended.stdout)).toMatchObject([
      { exitCode: 54, error: { kind: "denied" }, limit: "maxIdenticalCalls" },
    ]);
  });

  it("is 1 where the service fails, whatever was denied before", async () => {
    const ended = await run([PUBLISH, { status: 400, message: "Too odd." }], []);
    expect([ended.code, ended.stdout]).toEqual([1, ""]);
    expect(ended.stderr).toContain("Too odd.");
  });
});

describe("a connection that is lost", () => {
  it("in a call that nothing came before is retried", async () => {
    const call = { call: "write", arguments: { path: "a.txt", content: "all of it" } };
    const cut = { how: "cut", afterDeltas: 1 } as const;
    const ended = await run(
      [{ say: [call], deltaChars: 8, fault: cut }, { say: "Nothing is written." }],
      ["--mode", "auto-edit"],
    );
    expect([ended.code, ended.stdout]).toEqual([0, "Nothing is written.\n"]);
    expect(existsSync(join(ended.cwd, "a.txt"))).toBe(false);
  });

  it("in such a call each time fails after three retries", async () => {
    const call = { call: "write", arguments: { path: "a.txt", content: "all of it" } };
    const cut = { how: "cut", afterDeltas: 1 } as const;
    const ended = await run(() => ({ say: [call], deltaChars: 8, fault: cut }), []);
    expect([ended.code, ended.stdout, ended.requests.length]).toEqual([1, "", 4]);
  });
});

describe("a session file", () => {
  it.each([
    ["deleted", (file: string): void => rmSync(file), /was deleted/],
    ["cut", (file: string): void => writeFileSync(file, ""), /written to by another process/],
    ["unlocked", (file: string): void => rmSync(`${file}.lock`), /taken over/],
  ])(
    "that is %s while it is written to ends the run, and that is reported",
    async (name, how, why) => {
      const service = await serve([]);
      const home = homeWith({}, `home-${name}`);
      service.play(() => {
        how(sessionFiles(home)[0] ?? "");
        return ONCE;
      });
      const args = ["-p", "A story.", "--output", "json"];
      const ended = await program.gyre(args, { service, home });
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(why);
      expect(ended.stderr).toMatch(/^gyre: [^\n]*\n$/);
      expect(jsonLines(ended.stdout)).toMatchObject([{ exitCode: 1, error: { kind: "session" } }]);
    },
  );

  it("that is empty is made a session", async () => {
    const home = homeWith({ "my.jsonl": "" }, "home-empty");
    const ended = await run([ONCE], ["--history", "my.jsonl"], { home });
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    const { lines } = await readTranscript(join(ended.cwd, "my.jsonl"));
    expect(lines).toEqual(["user: A story.", "assistant: Once upon a time."]);
  });

  it("that is gone on with in another folder speaks of that one, and else as before", async () => {
    const service = await serve(() => ONCE, checked);
    const home = homeWith({}, "home-moved");
    const cwd = join(home, "other");
    const first = await program.gyre(["-p", "A story."], { service, home });
    const [file = ""] = sessionFiles(home);
    const second = await program.gyre(["-p", "Go on.", "--resume", file], { service, home, cwd });
    const [before, after] = [first, second].map(({ requests }) =>
      JSON.stringify(requests[0]?.body["system"]),
    );
    expect(before).toContain(`You work in ${first.cwd} on `);
    expect(after).toBe(before?.replace(first.cwd, cwd));
  });

  it("is never what is no session", async () => {
    const home = homeWith({ "notes.txt": "Buy milk.\n" }, "home-notes");
    const cwd = join(home, "work");
    symlinkSync("nowhere.jsonl", join(cwd, "link.jsonl"));
    for (const file of ["notes.txt", ".", "link.jsonl"]) {
      const ended = await run([], ["--history", file], { home });
      expect([ended.code, ended.stdout]).toEqual([1, ""]);
      expect(ended.stderr).toMatch(/^gyre: [^\n]*\n$/);
    }
    expect(readFileSync(join(cwd, "notes.txt"), "utf8")).toBe("Buy milk.\n");
    expect(existsSync(join(cwd, "nowhere.jsonl"))).toBe(false);
  });

  it.runIf(existsSync("/dev/zero"))("is no device, which may have no end", async () => {
    for (const args of [
      ["--resume", "/dev/zero"],
      ["--history", "/dev/null"],
    ]) {
      const ended = await run([], args);
      expect([ended.code, ended.stdout]).toEqual([1, ""]);
      expect(ended.stderr).toMatch(/^gyre: \/dev\/\w+ is not a session file[^\n]*\n$/);
      expect(existsSync(`${args[1]}.lock`)).toBe(false);
    }
  });
});

/** Hurts a file at a place that is given as a part of its length. Entries may be hit, not the header. */
type Damage = (entries: Buffer, part: number) => Buffer;

function lineAt(entries: Buffer, part: number): [start: number, end: number] {
  const at = Math.floor(part * entries.length);
  return [entries.lastIndexOf("\n", at - 1) + 1, entries.indexOf("\n", at) + 1];
}

const DAMAGES: Readonly<Record<string, Damage>> = {
  flipped(entries, part) {
    const at = Math.floor(part * entries.length);
    entries[at] = (entries[at] ?? 0) ^ 1;
    return entries;
  },
  gone(entries, part) {
    const [start, end] = lineAt(entries, part);
    return Buffer.concat([entries.subarray(0, start), entries.subarray(end)]);
  },
  twice(entries, part) {
    const [start, end] = lineAt(entries, part);
    return Buffer.concat([entries, entries.subarray(start, end)]);
  },
  torn: (entries, part) => entries.subarray(0, Math.ceil((entries.length * (1 + part)) / 2)),
};

describe("a damaged session", () => {
  const RUNS = countCases(4, 12);
  const look = (pattern: string) => ({ call: "find", arguments: { pattern } });

  it("is gone on with by a request that the service takes", { tags: "long" }, async () => {
    const home = homeWith({}, "home-damaged");
    const whole = await run(
      [{ say: [{ text: "I look." }, look("*.a"), look("*.b"), look("*.c")] }, ONCE],
      ["--history", "whole.jsonl"],
      { home },
    );
    expect(whole.code).toBe(0);
    const bytes = readFileSync(join(whole.cwd, "whole.jsonl"));
    const start = bytes.indexOf("\n") + 1;
    const service = await serve(() => ONCE, checked);
    let nth = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(DAMAGES)),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        async (name, part) => {
          const entries = DAMAGES[name]?.(Buffer.from(bytes.subarray(start)), part) ?? bytes;
          const file = `damaged-${nth++}.jsonl`;
          const damaged = Buffer.concat([bytes.subarray(0, start), entries]);
          writeFileSync(join(whole.cwd, file), damaged);
          const ended = await program.gyre(["-p", "Go on.", "--history", file], { service, home });
          expect(service.problems).toEqual([]);
          expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
  });
});

describe("what is wrong is reported in one line", () => {
  it("of a folder that cannot be made", async () => {
    const home = homeWith({ file: "" }, "home-no-state");
    const env = { XDG_STATE_HOME: join(home, "work/file") };
    const ended = await run([], [], { home, env });
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/^gyre: [^\n]*mkdir[^\n]* Set XDG_STATE_HOME [^\n]*\n$/);
  });

  it("of an option without its value", async () => {
    const ended = await run([], ["--timeout", "-1"]);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(/^gyre: [^\n]*--timeout[^\n]*\nSee gyre --help.\n$/);
  });
});
