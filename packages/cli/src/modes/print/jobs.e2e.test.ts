import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { requestCheckFor } from "../../../../ai/src/providers/testing/request-checks.ts";
import { DEFAULT_TOOLS } from "@gyre/coding/internal/core/tool-lists";
import {
  BROKEN_CODE,
  FIXED_CODE,
  PROJECT_FILES,
  SOURCE_FILE,
  TASK,
  TEST_COMMAND,
} from "../demo/project.ts";
import {
  buildProgram,
  type Ended,
  jsonLines,
  type Program,
  type RunOptions,
  sessionFiles,
  TEST_KEY,
  stripSandboxLine,
} from "../../testing/program.ts";
import {
  type Script,
  type ScriptedService,
  scriptedService,
  type ServiceRequest,
} from "../../testing/scripted-service.ts";
import { readTranscript } from "../../testing/transcript.ts";

// The program as a process, a service that speaks as the real ones do, real tools and files.

let program: Program;
const services: ScriptedService[] = [];

beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
afterEach(async () => {
  const open = services.splice(0);
  await Promise.all(open.map((service) => service.close()));
  // A request that the service would not take is a failure, whatever the test looked at.
  const problems = open.flatMap((service) => service.problems);
  if (problems.length > 0) throw new Error(problems.join("\n"));
});

async function serve(script: Script, provider = "anthropic"): Promise<ScriptedService> {
  const service = await scriptedService(script, {
    check: ({ wire, body }) => requestCheckFor({ api: wire, provider })(body),
  });
  services.push(service);
  return service;
}

/** Runs a job to its end. */
async function run(
  script: Script,
  args: readonly string[],
  options: Omit<RunOptions, "service"> = {},
): Promise<Ended> {
  return program.gyre(args, { service: await serve(script), ...options });
}

/** What every request of `gyre` begins with, in a folder without instructions. */
const MAX_FIXED_TOKENS = 1400;

const ONCE = { say: "Once upon a time." } as const;

/** The tools that a request has. */
function toolNames(request: ServiceRequest | undefined): string[] {
  const tools: unknown = request?.body["tools"];
  return (Array.isArray(tools) ? tools : []).map(({ name }) => String(name));
}

/** Of the only session of a home. */
async function readSession(home: string): Promise<string[]> {
  const files = sessionFiles(home);
  expect(files).toHaveLength(1);
  const { lines, problems } = await readTranscript(files[0] ?? "");
  expect(problems).toEqual([]);
  return lines;
}

/** A request without the marks for the cache, which move on. */
function plainMessages({ body }: ServiceRequest): unknown[] {
  const text = JSON.stringify(body["messages"], (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return JSON.parse(text) as unknown[];
}

/** The results in the last message of a request, by the id of their call. */
function resultsIn(request: ServiceRequest | undefined): Record<string, unknown>[] {
  if (!request) throw new Error("There was no such request.");
  const last = plainMessages(request).at(-1) as { content: Record<string, unknown>[] };
  return last.content.filter(({ type }) => type === "tool_result");
}

describe("a job", () => {
  it("fixes a failing test in a small repository", async () => {
    const home = join(program.entry, "../..", "home-fix");
    const cwd = join(home, "work");
    mkdirSync(cwd, { recursive: true });
    for (const [name, text] of Object.entries(PROJECT_FILES)) writeFileSync(join(cwd, name), text);
    const edits = [{ oldText: BROKEN_CODE, newText: FIXED_CODE }];
    const ended = await run(
      [
        {
          say: [
            { text: "I run the tests first." },
            { call: "shell", arguments: { command: TEST_COMMAND } },
          ],
        },
        {
          say: [
            { call: "read", arguments: { path: SOURCE_FILE } },
            { call: "grep", arguments: { pattern: "splitBill" } },
            { call: "find", arguments: { pattern: "*.js" } },
          ],
        },
        { say: [{ call: "edit", arguments: { path: SOURCE_FILE, edits } }] },
        { say: [{ call: "shell", arguments: { command: TEST_COMMAND } }] },
        { say: "Fixed: no cent is lost any more." },
      ],
      ["-p", TASK, "--mode", "auto-edit", "--allow", `shell(${TEST_COMMAND})`],
      { home, cwd },
    );
    expect(stripSandboxLine(ended)).toBe("");
    expect([ended.code, ended.stdout]).toEqual([0, "Fixed: no cent is lost any more.\n"]);
    expect(readFileSync(join(cwd, SOURCE_FILE), "utf8")).toContain(FIXED_CODE);
    const [first, ...later] = ended.requests;
    expect(first?.body).toMatchObject({ stream: true, messages: [{ role: "user" }] });
    expect(first?.headers["x-api-key"]).toBe(TEST_KEY);
    expect(JSON.stringify(resultsIn(later[0]))).toContain("fail 1");
    expect(JSON.stringify(resultsIn(later[1]))).toMatch(/bill\.js.*bill\.test\.js/);
    expect(JSON.stringify(resultsIn(later[2]))).toContain("Applied 1 edit");
    expect(JSON.stringify(resultsIn(later[3]))).toContain("fail 0");
    // The tools and what was said before are in each request as they were in the one before.
    for (const [nth, request] of later.entries()) {
      const before = ended.requests[nth] ?? request;
      expect(request.body["system"]).toEqual(before.body["system"]);
      expect(request.body["tools"]).toEqual(before.body["tools"]);
      const earlier = plainMessages(before);
      expect(plainMessages(request).slice(0, earlier.length)).toEqual(earlier);
    }
    const lines = await readSession(home);
    expect(lines.map((line) => line.split(":")[0])).toEqual([
      "user",
      "assistant",
      "shell failed",
      "assistant",
      "read gave",
      "grep gave",
      "find gave",
      "assistant",
      "edit gave",
      "assistant",
      "shell gave",
      "assistant",
    ]);
    expect(ended.leftBehind).toEqual([]);
  });

  it("is refused a command, learns why, and ends well without it", async () => {
    const ended = await run(
      [
        { say: [{ call: "shell", arguments: { command: "npm publish" } }] },
        { say: "I may not publish. Please do it yourself." },
      ],
      ["-p", "Publish it.", "--output", "json"],
    );
    expect(ended.code).toBe(0);
    expect(stripSandboxLine(ended)).toBe(
      "gyre: 1 call was denied: shell. To allow that: --allow 'shell(npm publish)'.\n",
    );
    const [result] = resultsIn(ended.requests[1]);
    expect(result).toMatchObject({ tool_use_id: "toolu_1", is_error: true });
    expect(JSON.stringify(result)).toContain("Denied");
    expect(jsonLines(ended.stdout)).toMatchObject([
      {
        type: "result",
        ok: true,
        exitCode: 0,
        text: "I may not publish. Please do it yourself.",
        denied: [
          {
            tool: "shell",
            toolCallId: "toolu_1",
            reason: expect.stringContaining("needs an approval"),
            summary: expect.stringContaining("npm publish"),
            rule: "shell(npm publish)",
          },
        ],
      },
    ]);
    const lines = await readSession(ended.home);
    expect(lines[2]).toMatch(/^shell failed: .*Denied/);
  });

  it("ends with 54 when it got no further than what is not allowed", async () => {
    const insist = { say: [{ call: "shell", arguments: { command: "npm publish" } }] } as const;
    const ended = await run(
      [insist, { say: [{ call: "write", arguments: { path: "a.txt", content: "a" } }] }],
      ["-p", "Publish it.", "--mode", "ask", "--max-turns", "2"],
    );
    expect([ended.code, ended.stdout]).toEqual([54, ""]);
    expect(stripSandboxLine(ended)).toMatch(
      /^gyre: 2 calls were denied: shell, write\. To allow that: --mode auto-edit --allow .*\ngyre: .*not allowed.*\n$/,
    );
    expect(existsSync(join(ended.cwd, "a.txt"))).toBe(false);
    const lines = await readSession(ended.home);
    expect(lines.at(-1)).toMatch(/^write failed: .*Denied/);
  });

  it("says where a rule was written that is wrong", async () => {
    const flag = await run([], ["-p", "Do it.", "--allow", "shel(ls)"]);
    expect([flag.code, flag.stdout]).toEqual([2, ""]);
    expect(stripSandboxLine(flag)).toMatch(
      /^gyre: A rule of --allow, or of "allow" in the settings, "shel\(ls\)", is wrong: .*shell/,
    );
    const file = join(flag.cwd, "config.json");
    writeFileSync(file, JSON.stringify({ ask: ["shel"] }));
    const set = await run([], ["-p", "Do it.", "--config", file]);
    expect(set.code).toBe(2);
    expect(stripSandboxLine(set)).toContain('A rule of "ask" in the settings, "shel", is wrong');
  });

  it("gives the model the rule that forbids, which takes precedence over what is allowed", async () => {
    const ended = await run(
      [
        { say: [{ call: "write", arguments: { path: "LICENSE", content: "Mine." } }] },
        { say: "It stays." },
      ],
      ["-p", "Change the license.", "--mode", "full", "--deny", "write(LICENSE)"],
    );
    expect([ended.code, ended.stdout]).toEqual([0, "It stays.\n"]);
    expect(JSON.stringify(resultsIn(ended.requests[1]))).toContain("write(LICENSE)");
    expect(existsSync(join(ended.cwd, "LICENSE"))).toBe(false);
  });
});

describe("a connection that is lost", () => {
  it("before any text is made again, and nothing is shown twice", async () => {
    const ended = await run(
      [{ say: "Lost.", fault: { how: "cut", afterDeltas: 0 } }, ONCE],
      ["-p", "Write a story."],
    );
    expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
    expect(stripSandboxLine(ended)).toMatch(
      /^gyre: Asking again (?:in .*|at once) \(2 of 10\): .+\n$/,
    );
    expect(ended.requests[1]?.text).toBe(ended.requests[0]?.text);
    expect(await readSession(ended.home)).toEqual([
      "user: Write a story.",
      "assistant: Once upon a time.",
    ]);
  });

  it("in the middle of text is retried by itself, with a whole answer", async () => {
    const story = "Once upon a time there was a fox.";
    const ended = await run(
      [{ say: story, deltaChars: 5, fault: { how: "cut", afterDeltas: 2 } }, { say: story }],
      ["-p", "Write a story."],
    );
    expect([ended.code, ended.stdout]).toEqual([0, `${story}\n`]);
    expect(stripSandboxLine(ended)).toMatch(
      /^gyre: Asking again: .*broke off \(ECONNRESET\)\..*\n$/,
    );
    expect(await readSession(ended.home)).toEqual([
      "user: Write a story.",
      "assistant (error): Once upon ",
      `assistant: ${story}`,
    ]);
  });

  it("R22: in the middle of text is another turn of one run, and all of it is counted", async () => {
    const usage = { input: 100, output: 10 };
    const cut = { how: "cut", afterDeltas: 2 } as const;
    const ended = await run(
      [
        { say: "Once upon a time.", deltaChars: 5, fault: cut, usage },
        { say: "The end.", usage },
      ],
      ["-p", "Write a story.", "--output", "stream-json"],
    );
    const lines = jsonLines(ended.stdout);
    const types = lines.map((line) => (line as { type: string }).type);
    const count = (type: string): number => types.filter((each) => each === type).length;
    expect([count("agent_start"), count("turn_start"), count("agent_end")]).toEqual([1, 2, 1]);
    expect(lines.at(-2)).toMatchObject({ type: "agent_end", stop: "done", turns: 2 });
    expect(lines.at(-1)).toMatchObject({ ok: true, text: "The end.", turns: 2 });
    // The service names what the question costs at the start of its response.
    expect((lines.at(-1) as { usage: { input: number } }).usage.input).toBe(200);
    expect(ended.requests[1]?.text).toBe(ended.requests[0]?.text);
  });

  it("again and again fails after three retries", async () => {
    const cut = {
      say: "Once upon a time.",
      deltaChars: 5,
      fault: { how: "cut", afterDeltas: 1 },
    } as const;
    const ended = await run(() => cut, ["-p", "Write a story.", "--output", "json"]);
    expect([ended.code, ended.requests.length]).toEqual([1, 4]);
    expect(jsonLines(ended.stdout)).toMatchObject([{ type: "result", ok: false, exitCode: 1 }]);
    const lines = await readSession(ended.home);
    expect(lines.filter((line) => line.startsWith("assistant (error): Once "))).toHaveLength(4);
  });

  it("in the middle of a call runs nothing that did not come whole", async () => {
    const ended = await run(
      [
        {
          say: [
            { text: "I write it down." },
            { call: "write", arguments: { path: "a.txt", content: "all of it" } },
          ],
          deltaChars: 16,
          fault: { how: "cut", afterDeltas: 2 },
        },
        { say: "Nothing is written." },
      ],
      ["-p", "Write.", "--mode", "auto-edit"],
    );
    expect(ended.code).toBe(0);
    expect(existsSync(join(ended.cwd, "a.txt"))).toBe(false);
  });

  it("to a service that has too much to do waits as long as that asks for", async () => {
    const ended = await run(
      [{ status: 429, headers: { "retry-after": "1" } }, ONCE],
      ["-p", "Write a story."],
    );
    expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
    const [refused, answered] = ended.requests;
    expect((answered?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThanOrEqual(990);
  });
});

describe("a limit", () => {
  const busy: Script = ({ nth }) => ({
    say: [{ call: "find", arguments: { pattern: `*.${nth}` } }],
    usage: { input: 1_000_000, output: 10 },
  });

  it.each([
    ["--max-turns", "2", /limit of 2 turns.*--max-turns/, 2],
    ["--max-cost", "0.5", /limit of \$0\.50 is reached: \$\d+\.\d\d+ \(--max-cost/, 1],
  ])("%s %s ends with 53", async (flag, value, why, requests) => {
    const ended = await run(busy, ["-p", "Look around.", flag, value]);
    expect([ended.code, ended.stdout, ended.requests.length]).toEqual([53, "", requests]);
    expect(stripSandboxLine(ended)).toMatch(why);
    expect(stripSandboxLine(ended).trimEnd()).not.toContain("\n");
    const lines = await readSession(ended.home);
    expect(lines).toHaveLength(1 + 2 * requests);
    expect(lines.at(-1)).toMatch(/^find gave/);
  });

  it("that the last answer went past is no failure, however small it is", async () => {
    const answer = { say: "Dear.", usage: { input: 1_000_000, output: 10 } };
    const ended = await run([answer], ["-p", "Hello there.", "--max-cost", "0.00000001"]);
    expect([ended.code, ended.stdout]).toEqual([0, "Dear.\n"]);
    const more = await run(busy, ["-p", "Look around.", "--max-cost", "0.00000001"]);
    expect([more.code, more.stdout]).toEqual([53, ""]);
    expect(stripSandboxLine(more)).toContain("The limit of $0.00000001 is reached: $");
  });

  it.each(["json", "stream-json"])("is reported in %s", async (format) => {
    const ended = await run(busy, ["-p", "Look.", "--max-turns", "1", "--output", format]);
    expect(jsonLines(ended.stdout).at(-1)).toMatchObject({
      type: "result",
      ok: false,
      exitCode: 53,
      stop: "limit",
      limit: "maxTurns",
      error: { kind: "limit" },
    });
  });

  it("of time ends with 124", async () => {
    const ended = await run([{ silent: true }], ["-p", "Wait.", "--timeout", "1"]);
    expect([ended.code, ended.stdout]).toEqual([124, ""]);
    expect(stripSandboxLine(ended)).toBe("gyre: The time is over: 1 s (--timeout).\n");
    expect((await readSession(ended.home))[0]).toBe("user: Wait.");
  });

  it("of time ends a command that is running", async () => {
    const ended = await run(
      [{ say: [{ call: "shell", arguments: { command: "sleep 1000" } }] }],
      ["-p", "Wait.", "--timeout", "2", "--mode", "full", "--sandbox", "none"],
    );
    expect([ended.code, ended.stdout]).toEqual([124, ""]);
    const lines = await readSession(ended.home);
    expect(lines.slice(0, 3)).toMatchObject([
      "user: Wait.",
      "assistant: [shell]",
      expect.stringMatching(/^shell failed/),
    ]);
  });
});

describe("an interruption", () => {
  it("by SIGINT ends with 130, and keeps what had come", async () => {
    const service = await serve([
      {
        say: "Once upon a time there was a fox.",
        deltaChars: 5,
        fault: { how: "silence", afterDeltas: 2 },
      },
    ]);
    const started = await program.start(["-p", "A story.", "--output", "stream-json"], { service });
    await started.shows('"upon "');
    started.kill("SIGINT");
    const ended = await started.end;
    expect([ended.code, ended.signal]).toEqual([130, null]);
    expect(stripSandboxLine(ended)).toBe("gyre: Interrupted.\n");
    const events = jsonLines(ended.stdout);
    expect(events.at(-1)).toMatchObject({
      type: "result",
      exitCode: 130,
      stop: "aborted",
      text: "Once upon",
    });
    expect(await readSession(ended.home)).toEqual([
      "user: A story.",
      "assistant (aborted): Once upon ",
    ]);
  });

  it("while stdin is waited for ends with 130", async () => {
    const service = await serve([]);
    const started = await program.start(["-p"], { service, stdin: "open" });
    // More than a pipe holds: it has been written once the program reads.
    const beginning = "the beginning of ".repeat(60_000);
    await new Promise((settle) => started.stdin?.write(beginning, settle));
    started.kill("SIGINT");
    const ended = await started.end;
    expect([ended.code, ended.stdout, ended.requests]).toEqual([130, "", []]);
  });
});

describe("a key", () => {
  it("that is refused ends with 41 and one line, after one request", async () => {
    const service = await serve(() => ({ status: 401, message: "invalid x-api-key" }));
    const ended = await program.gyre(["-p", "Hello."], { service });
    expect([ended.code, ended.stdout, ended.requests.length]).toEqual([41, "", 1]);
    expect(stripSandboxLine(ended)).toMatch(/^gyre: [^\n]*invalid x-api-key[^\n]*\n$/);
    expect(stripSandboxLine(ended)).not.toContain(TEST_KEY);
  });

  it("that is missing ends with 41, and says what to do", async () => {
    const ended = await program.gyre(["-p", "Hello."]);
    expect([ended.code, ended.stdout]).toEqual([41, ""]);
    expect(stripSandboxLine(ended)).toMatch(/^gyre: .*gyre login/);
  });

  it("is in no file that is written", async () => {
    const folder = join(program.entry, "../..", "reported");
    mkdirSync(folder);
    const files = { verbose: join(folder, "raw.log"), log: join(folder, "calls.log") };
    const ended = await run(
      [{ say: [{ call: "find", arguments: { pattern: "*.x" } }] }, ONCE],
      ["-p", "Hello.", "--verbose", files.verbose, "--log", files.log],
    );
    expect(ended.code).toBe(0);
    const raw = readFileSync(files.verbose, "utf8");
    expect(raw).toContain("content_block_delta");
    expect(raw).not.toContain(TEST_KEY);
    expect(jsonLines(readFileSync(files.log, "utf8")).length).toBeGreaterThan(1);
    for (const file of sessionFiles(ended.home)) {
      expect(readFileSync(file, "utf8")).not.toContain(TEST_KEY);
    }
  });
});

it("--verbose without a file writes what is sent and received to stderr, without keys", async () => {
  const ended = await run([ONCE], ["-p", "Hello.", "--verbose", "--no-session"]);
  expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
  const lines = jsonLines(ended.stderr.replaceAll(/^[^{].*\n/gm, ""));
  expect(lines[0]).toMatchObject({ request: 1, headers: { "x-api-key": "[redacted]" } });
  expect(ended.stderr).toContain("content_block_delta");
  expect(ended.stderr).not.toContain(TEST_KEY);
});

it(`a request begins with at most ${MAX_FIXED_TOKENS} tokens of system prompt and tools`, async () => {
  const service = await serve([ONCE]);
  await program.gyre(["-p", "Hello."], { service });
  const system: unknown = service.requests[0]?.body["system"];
  const tools: unknown = service.requests[0]?.body["tools"];
  expect(toolNames(service.requests[0])).toEqual([...DEFAULT_TOOLS]);
  const parts = [
    ...(Array.isArray(system) ? system : []).map(({ text }) => String(text)),
    ...(Array.isArray(tools) ? tools : []).map(({ name, description, input_schema }) =>
      JSON.stringify({ name, description, input_schema }),
    ),
  ];
  const counts = parts.map((part) => encode(part).length);
  const sum = counts.reduce((all, one) => all + one, 0);
  expect(parts).toHaveLength(1 + DEFAULT_TOOLS.length);
  expect(sum, counts.join(" + ")).toBeLessThanOrEqual(MAX_FIXED_TOKENS);
});

it.each([
  [["--tools", "+ls"], ["git", "task", "fetch", "ls"], []],
  [["--tools", "-git"], ["task"], ["git", "ls"]],
  [["--tools", "read,+git"], ["read", "git"], ["task"]],
])("%j changes the tools", async (flags, has, hasNot) => {
  const service = await serve([ONCE]);
  const ended = await program.gyre(["-p", "Hello.", ...flags], { service });
  expect(ended.code).toBe(0);
  const names = toolNames(service.requests[0]);
  expect(names).toEqual(expect.arrayContaining(has));
  for (const name of hasNot) expect(names).not.toContain(name);
});

describe("wrong usage ends with 2", () => {
  it.each([
    [["-p"], "There is no prompt"],
    [["-p", "x", "--output", "xml"], "xml"],
    [["-p", "x", "--outptu", "json"], "--output"],
    [["-p", "x", "--max-turns", "many"], "many"],
    [["-p", "x", "--fork"], "--fork"],
    [["-p", "x", "--continue", "--no-session"], "--no-session"],
    [["-p", "x", "--cwd", "nowhere"], "nowhere"],
    [["-p", "x", "--schema", "nothing.json"], "nothing.json"],
    [["-p", "x", "--mode", "careful"], "careful"],
    [["-p", "x", "--allow", "shel(ls)"], "shel"],
    [["-p", "x", "--model", "no-such-model"], "no-such-model"],
  ])("%j", async (args, why) => {
    const ended = await run([], args);
    expect(stripSandboxLine(ended)).toContain("gyre: ");
    expect(stripSandboxLine(ended)).toContain(why);
    expect([ended.code, ended.stdout, ended.requests, sessionFiles(ended.home)]).toEqual([
      2,
      "",
      [],
      [],
    ]);
  });

  it.each(["json", "stream-json"])("and so does %s, with a result that says so", async (format) => {
    const ended = await run([], ["-p", "x", "--output", format, "--model", "no-such-model"]);
    expect([ended.code, jsonLines(ended.stdout)]).toMatchObject([
      2,
      [{ type: "result", ok: false, exitCode: 2, error: { kind: "usage" }, turns: 0 }],
    ]);
  });
});

describe("a session", () => {
  it("is gone on with after kill -9: what was shown is there", async () => {
    const service = await serve([
      {
        say: [
          { text: "I look at both." },
          { call: "find", arguments: { pattern: "*.a" } },
          { call: "find", arguments: { pattern: "*.b" } },
        ],
      },
      { say: "There is nothing.", deltaChars: 5, fault: { how: "silence", afterDeltas: 2 } },
      { say: "Nothing is there, really." },
    ]);
    const started = await program.start(
      ["-p", "Look.", "--mode", "ask", "--output", "stream-json"],
      { service },
    );
    await started.shows('" is n"');
    started.kill("SIGKILL");
    const killed = await started.end;
    expect([killed.code, killed.signal]).toEqual([null, "SIGKILL"]);
    const ended = await program.gyre(["-p", "And now?", "--continue"], {
      service,
      home: killed.home,
    });
    expect([ended.code, ended.stdout, stripSandboxLine(ended)]).toEqual([
      0,
      "Nothing is there, really.\n",
      "",
    ]);
    const [request] = ended.requests;
    if (!request) throw new Error("It did not ask.");
    const before = plainMessages(service.requests[1] ?? request);
    expect(plainMessages(request).slice(0, 2)).toEqual(before.slice(0, 2));
    expect(JSON.stringify(plainMessages(request)[2])).toContain("toolu_2");
    expect((await readSession(ended.home)).map((line) => line.split(":")[0])).toEqual([
      "user",
      "assistant",
      "find gave",
      "find gave",
      "user",
      "assistant",
    ]);
  });

  it("that was cut off is resumed without a prompt, once", async () => {
    const service = await serve([
      { say: [{ call: "find", arguments: { pattern: "*.a" } }] },
      { say: "There is nothing.", deltaChars: 5, fault: { how: "silence", afterDeltas: 2 } },
      { say: "Nothing is there." },
    ]);
    const started = await program.start(
      ["-p", "Look.", "--mode", "ask", "--output", "stream-json"],
      { service },
    );
    await started.shows('" is n"');
    started.kill("SIGKILL");
    const { home } = await started.end;
    const ended = await program.gyre(["--continue"], { service, home });
    expect([ended.code, ended.stdout, stripSandboxLine(ended)]).toEqual([
      0,
      "Nothing is there.\n",
      "",
    ]);
    // The same question once more: nothing of it is lost, and nothing added.
    expect(ended.requests[0]?.text).toBe(service.requests[1]?.text);
    const again = await program.gyre(["--continue"], { service, home });
    expect([again.code, again.stdout]).toEqual([2, ""]);
    expect(stripSandboxLine(again)).toContain("there is nothing to resume");
  });

  it("is gone on with by requests that begin as its last one did, byte for byte", async () => {
    const service = await serve([
      {
        say: [
          { thinking: "I should look." },
          { text: "Looking." },
          { call: "find", arguments: { pattern: "*.a" } },
        ],
      },
      { say: "Nothing — wirklich nichts." },
      { say: "Still nothing." },
    ]);
    const options = { service };
    const first = await program.gyre(["-p", "Look."], options);
    const second = await program.gyre(["-p", "Again.", "-c"], { ...options, home: first.home });
    expect([first.code, second.code]).toEqual([0, 0]);
    const [, last, resumed] = service.requests;
    if (!last || !resumed) throw new Error("There were to be three requests.");
    expect(JSON.stringify(resumed.body["system"])).toBe(JSON.stringify(last.body["system"]));
    expect(JSON.stringify(resumed.body["tools"])).toBe(JSON.stringify(last.body["tools"]));
    const earlier = plainMessages(last);
    expect(JSON.stringify(plainMessages(resumed).slice(0, earlier.length))).toBe(
      JSON.stringify(earlier),
    );
  });

  it("is found by its id, and forked into a copy that leaves it as it is", async () => {
    const service = await serve([ONCE, { say: "Another end." }, { say: "A third end." }]);
    const first = await program.gyre(["-p", "A story.", "--output", "json"], { service });
    const id = String(jsonLines(first.stdout)[0]?.["sessionId"]);
    const [file = ""] = sessionFiles(first.home);
    const before = readFileSync(file);
    const forked = await program.gyre(["-p", "Go on.", "--resume", id, "--fork"], {
      service,
      home: first.home,
    });
    expect([forked.code, forked.stdout, stripSandboxLine(forked)]).toEqual([
      0,
      "Another end.\n",
      "",
    ]);
    expect(readFileSync(file).equals(before)).toBe(true);
    const copy = sessionFiles(first.home).find((each) => each !== file) ?? "";
    expect((await readTranscript(copy)).lines).toEqual([
      "user: A story.",
      "assistant: Once upon a time.",
      "user: Go on.",
      "assistant: Another end.",
    ]);
    const resumed = await program.gyre(["-p", "Go on.", "--resume", id], {
      service,
      home: first.home,
    });
    expect([resumed.code, resumed.stdout]).toEqual([0, "A third end.\n"]);
    expect((await readTranscript(file)).lines.at(-1)).toBe("assistant: A third end.");
  });

  it("in a file of one's own is made, loaded and appended to", async () => {
    const service = await serve([ONCE, { say: "There was a fox." }]);
    const first = await program.gyre(["-p", "A story.", "--history", "my.jsonl"], { service });
    const file = join(first.cwd, "my.jsonl");
    const begun = readFileSync(file, "utf8");
    const second = await program.gyre(["-p", "Go on.", "--history", "my.jsonl"], {
      service,
      home: first.home,
    });
    expect([first.code, second.code, second.stdout]).toEqual([0, 0, "There was a fox.\n"]);
    expect(readFileSync(file, "utf8").startsWith(begun)).toBe(true);
    expect((await readTranscript(file)).lines).toEqual([
      "user: A story.",
      "assistant: Once upon a time.",
      "user: Go on.",
      "assistant: There was a fox.",
    ]);
    expect(sessionFiles(first.home)).toEqual([]);
  });

  it("is not there to go on with: that is said", async () => {
    const ended = await run([], ["-p", "Go on.", "--continue"]);
    expect([ended.code, ended.stdout, ended.requests]).toEqual([1, "", []]);
    expect(stripSandboxLine(ended)).toMatch(/^gyre: There is no session/);
  });

  it("is not written with --no-session", async () => {
    const ended = await run([ONCE], ["-p", "A story.", "--no-session"]);
    expect([ended.code, ended.stdout, sessionFiles(ended.home)]).toEqual([
      0,
      "Once upon a time.\n",
      [],
    ]);
  });

  it("is one process's at a time", async () => {
    const service = await serve([ONCE, { silent: true }]);
    const first = await program.gyre(["-p", "A story."], { service });
    const { home } = first;
    const busy = await program.start(["-p", "Go on.", "-c"], { service, home });
    await service.asked(1);
    const refused = await program.gyre(["-p", "Me too.", "-c"], { service, home });
    busy.kill("SIGINT");
    expect([refused.code, refused.stdout, refused.requests]).toEqual([1, "", []]);
    expect(stripSandboxLine(refused)).toMatch(/^gyre: [^\n]+\n$/);
    expect((await busy.end).code).toBe(130);
  });
});

describe("input and output", () => {
  it("adds what is piped in to the prompt", async () => {
    const ended = await run([ONCE], ["-p", "What is this?"], { stdin: "a line\nand another\n" });
    expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
    expect(JSON.stringify(ended.requests[0]?.body["messages"])).toContain(
      String.raw`What is this?\n\na line\nand another`,
    );
  });

  it("takes what is piped in for the prompt, without being asked to print", async () => {
    const ended = await run([ONCE], [], { stdin: "A story." });
    expect([ended.code, ended.stdout]).toEqual([0, "Once upon a time.\n"]);
    expect((await readSession(ended.home))[0]).toBe("user: A story.");
  });

  it("gives an answer that fits a schema, and nothing else", async () => {
    const schema = {
      type: "object",
      properties: { legs: { type: "integer" } },
      required: ["legs"],
    };
    const home = join(program.entry, "../..", "home-schema");
    mkdirSync(join(home, "work"), { recursive: true });
    writeFileSync(join(home, "work/fox.json"), JSON.stringify(schema));
    const ended = await run(
      [
        { say: [{ call: "final_answer", arguments: { legs: "many" } }] },
        { say: [{ call: "final_answer", arguments: { legs: 4 } }] },
      ],
      ["-p", "How many legs has a fox?", "--schema", "fox.json"],
      { home },
    );
    expect([ended.code, ended.stdout, stripSandboxLine(ended)]).toEqual([0, '{"legs":4}\n', ""]);
    expect(resultsIn(ended.requests[1])).toMatchObject([{ is_error: true }]);
  });

  it("asks a service that has structured output for it, and for a repair in the same form", async () => {
    const schema = {
      type: "object",
      properties: { legs: { type: "integer" } },
      required: ["legs"],
    };
    const home = join(program.entry, "../..", "home-structured");
    mkdirSync(join(home, "work"), { recursive: true });
    writeFileSync(join(home, "work/fox.json"), JSON.stringify(schema));
    const ended = await run(
      [{ say: '{"legs":"many"}' }, { say: '{"legs":4}' }],
      ["-p", "How many legs has a fox?", "--schema", "fox.json"],
      { home },
    );
    expect([ended.code, ended.stdout, stripSandboxLine(ended)]).toEqual([0, '{"legs":4}\n', ""]);
    expect(ended.requests[0]?.body).toMatchObject({
      output_config: { format: { type: "json_schema", schema: { required: ["legs"] } } },
    });
    const sent = JSON.stringify(ended.requests[1]?.body);
    expect(sent).toContain("/legs: expected integer");
    expect(sent).not.toContain('"name":"final_answer"');
  });

  it("ends with 1 where no answer fits the schema", async () => {
    const home = join(program.entry, "../..", "home-no-schema");
    mkdirSync(join(home, "work"), { recursive: true });
    writeFileSync(join(home, "work/fox.json"), JSON.stringify({ type: "integer" }));
    const ended = await run(
      () => ({ say: "Four." }),
      ["-p", "How many?", "--schema", "fox.json", "--output", "json"],
      { home },
    );
    expect(ended.code).toBe(1);
    expect(jsonLines(ended.stdout)).toMatchObject([
      { type: "result", ok: false, exitCode: 1, error: { kind: "output" } },
    ]);
  });

  it("writes each event as a line, from the session to the result", async () => {
    const ended = await run(
      [
        { say: [{ thinking: "Hm." }, { call: "find", arguments: { pattern: "*.a" } }] },
        { say: "Nothing.\u2028At all." },
      ],
      ["-p", "Look.", "--mode", "ask", "--output", "stream-json"],
    );
    const events = jsonLines(ended.stdout);
    expect(events[0]).toMatchObject({ type: "session", cwd: ended.cwd, mode: "ask" });
    expect(events.at(-1)).toMatchObject({
      type: "result",
      ok: true,
      exitCode: 0,
      text: "Nothing.\u2028At all.",
      turns: 2,
      usage: { input: 200, output: 40 },
      denied: [],
    });
    const types = events.map(({ type }) => type);
    // The facts of the start are one of them.
    expect(types.filter((type) => type === "message_end")).toHaveLength(5);
    expect(types.filter((type) => type === "tool_execution_end")).toHaveLength(1);
    // Deltas alone: the message so far is not repeated.
    for (const event of events) {
      if (event["type"] === "message_update") expect(Object.keys(event)).toEqual(["type", "event"]);
    }
    expect([ended.code, stripSandboxLine(ended)]).toEqual([0, ""]);
  });

  it("speaks chat completions as well", async () => {
    const service = await serve(
      [{ say: [{ call: "find", arguments: { pattern: "*.a" } }] }, ONCE],
      "deepseek",
    );
    const ended = await program.gyre(["-p", "A story.", "--model", "deepseek/pro"], {
      service,
      env: { DEEPSEEK_API_KEY: TEST_KEY, DEEPSEEK_BASE_URL: service.url },
    });
    expect([ended.code, ended.stdout, stripSandboxLine(ended)]).toEqual([
      0,
      "Once upon a time.\n",
      "",
    ]);
    expect(ended.requests.map(({ wire }) => wire)).toEqual([
      "openai-completions",
      "openai-completions",
    ]);
  });
});
