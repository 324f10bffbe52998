import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanEnvironment, type HookEvent, type HookInput } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_HOOK_TEXT_CHARS, runHook } from "./hook-run.ts";
import type { CommandHook } from "../settings/hooks.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "gyre-hook-"));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const never = new AbortController().signal;

function run(
  command: CommandHook["command"],
  options: {
    event?: HookEvent;
    timeoutSeconds?: number;
    signal?: AbortSignal;
    env?: Record<string, string>;
  } = {},
) {
  const { event = "PreToolUse", timeoutSeconds = 20, signal = never, env = {} } = options;
  const hook: CommandHook = { event, command, timeoutSeconds, matches: () => true };
  const input: HookInput = {
    session_id: "s1",
    transcript_path: "",
    cwd,
    hook_event_name: event,
    tool_name: "shell",
    tool_input: { command: "rm -rf build" },
  };
  const place = {
    cwd,
    spoolFolder: cwd,
    env: cleanEnvironment(
      { PATH: process.env["PATH"], ...env },
      { set: { GYRE_PROJECT_DIR: cwd } },
    ),
  };
  return runHook(hook, input, place, signal);
}

/** A program that writes JSON. */
const says = (value: unknown): string[] => [
  process.execPath,
  "-e",
  `process.stdout.write(${JSON.stringify(JSON.stringify(value))})`,
];

describe("the program of a hook", () => {
  it("gets its input as JSON, in the folder, with a clean environment", async () => {
    const env = { SOME_API_KEY: "sk-secret-1234567890abcdef", LANG: "C" };
    await run('cat > input.json; env > env.txt; [ "$GYRE_PROJECT_DIR" = "$(pwd -P)" ] || exit 2', {
      env,
    });
    expect(JSON.parse(readFileSync(join(cwd, "input.json"), "utf8"))).toEqual({
      session_id: "s1",
      transcript_path: "",
      cwd,
      hook_event_name: "PreToolUse",
      tool_name: "shell",
      tool_input: { command: "rm -rf build" },
    });
    const variables = readFileSync(join(cwd, "env.txt"), "utf8");
    expect(variables).toContain("LANG=C");
    expect(variables).not.toContain("sk-secret");
  });

  it("that ends with 0 and says nothing wants nothing", async () => {
    expect(await run("cat > /dev/null")).toBeUndefined();
    expect(await run("echo looked at it")).toBeUndefined();
  });

  it("need not read its input", async () => {
    expect(await run(["true"])).toBeUndefined();
  });

  it("that ends with 2 blocks, with its stderr as the reason", async () => {
    expect(await run("echo 'not here' >&2; exit 2")).toEqual({ block: "not here" });
    expect(await run("exit 2")).toEqual({ block: 'The PreToolUse hook "exit 2" gave no reason.' });
  });

  it.each([
    ["echo no >&2; exit 1", 'The PreToolUse hook "echo no >&2; exit 1" ended with 1: no'],
    ["kill -TERM $$", 'The PreToolUse hook "kill -TERM $$" was ended by SIGTERM'],
    [["no-such-program"], "could not be run: Cannot start no-such-program"],
  ])("that fails is reported: %j", async (command, words) => {
    await expect(run(command)).rejects.toThrow(words);
  });

  it("that takes too long is ended", async () => {
    await expect(run("sleep 60", { timeoutSeconds: 0.05 })).rejects.toThrow(
      'The PreToolUse hook "sleep 60" was ended: it took more than 0.05 s',
    );
  });

  it("is ended with all that it started when the signal fires", async () => {
    const controller = new AbortController();
    // Both would write when they are ended by something softer, or not at all.
    const running = run("(sleep 60; echo > left) & echo > started; wait; echo > left", {
      signal: controller.signal,
    });
    await expect.poll(() => existsSync(join(cwd, "started"))).toBe(true);
    controller.abort();
    expect(await running).toBeUndefined();
    expect(existsSync(join(cwd, "left"))).toBe(false);
  });
});

describe("JSON on stdout", () => {
  const specific = (fields: object): object => ({
    hookSpecificOutput: { hookEventName: "PreToolUse", ...fields },
  });

  it.each([
    [
      { decision: "block", reason: "no" },
      { block: "no", reason: "no" },
    ],
    [{ decision: "approve" }, { permission: "allow" }],
    [
      { continue: false, stopReason: "enough" },
      { block: "enough", reason: "enough" },
    ],
    [specific({ permissionDecision: "deny" }), { block: "It gave no reason." }],
    [
      specific({ permissionDecision: "ask", permissionDecisionReason: "odd" }),
      { permission: "ask", reason: "odd" },
    ],
    [
      specific({ permissionDecision: "allow", updatedInput: { command: "ls" } }),
      { permission: "allow", input: { command: "ls" } },
    ],
    [specific({ additionalContext: "by the way" }), { context: "by the way" }],
    [{ systemMessage: "hello" }, { message: "hello" }],
    [{ suppressOutput: true }, {}],
  ])("%j", async (output, answer) => {
    expect(await run(says(output))).toEqual(answer);
  });

  it("that cannot be understood blocks a call, and is reported for anything else", async () => {
    const wrong = specific({ permissionDecision: "Deny" });
    expect(await run(says(wrong))).toEqual({
      block: expect.stringContaining('gave a decision that there is not, "Deny"'),
    });
    await expect(run(says(wrong), { event: "Stop" })).rejects.toThrow(
      "a decision that there is not",
    );
    expect(await run(says(specific({ updatedInput: "ls" })))).toEqual({
      block: expect.stringContaining("an updatedInput that is no object"),
    });
  });

  it.each(['{"decision":"block","rea', '{"decision":"block"}{"a":1}'])(
    "that breaks off or does not end blocks a call: %s",
    async (text) => {
      const half = [process.execPath, "-e", `process.stdout.write(${JSON.stringify(text)})`];
      const words = "gave JSON that cannot be read";
      expect(await run(half)).toEqual({ block: expect.stringContaining(words) });
      await expect(run(half, { event: "Stop" })).rejects.toThrow(words);
    },
  );

  it("that is too long blocks a call: what it wants is not known", async () => {
    const much = [process.execPath, "-e", "process.stdout.write('{' + ' '.repeat(100_000) + '}')"];
    expect(await run(much)).toEqual({ block: expect.stringContaining("which is too much") });
  });
});

describe("plain stdout", () => {
  it.each(["UserPromptSubmit", "SessionStart"] as const)(
    "of %s is for the model",
    async (event) => {
      expect(await run("echo the branch is main", { event })).toEqual({
        context: "the branch is main",
      });
      expect(await run("echo '{not JSON'", { event })).toEqual({ context: "{not JSON" });
    },
  );

  it("is cut where it is long, and has no sequences for terminals", async () => {
    const much = [
      process.execPath,
      "-e",
      "process.stdout.write('\\x1b[31mab' + 'x'.repeat(20_000))",
    ];
    const answer = await run(much, { event: "SessionStart" });
    expect(answer?.context).toMatch(/^abx+\n\[The rest was left out\.\]$/);
    expect(answer?.context?.length).toBeLessThan(MAX_HOOK_TEXT_CHARS + 50);
  });
});
