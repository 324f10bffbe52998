import { Agent, defineTool, type Middleware } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { type HookAnswer, type HookEvent, type HookInput, permissions } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { type Hook, Hooks, MAX_STOPS_IN_A_ROW, PromptBlockedError } from "./hooks.ts";

const never = new AbortController().signal;

interface World {
  hooks: Hooks;
  /** The inputs of hooks, in order. */
  inputs: HookInput[];
  warnings: string[];
  denied: string[];
}

type Reply = HookAnswer | undefined | ((input: HookInput) => HookAnswer | undefined);

function world(...given: [HookEvent, Reply][]): World {
  const inputs: HookInput[] = [];
  const warnings: string[] = [];
  const denied: string[] = [];
  const list = given.map(([event, answer], index): Hook => ({
    event,
    name: `Hook ${index + 1}`,
    matches: () => true,
    run: async (input) => {
      inputs.push(input);
      return typeof answer === "function" ? answer(input) : answer;
    },
  }));
  const hooks = new Hooks(list, {
    facts: () => ({ session_id: "s1", transcript_path: "/s1.jsonl", cwd: "/work" }),
    warn: (text) => void warnings.push(text),
    denied: (_call, reason) => void denied.push(reason),
  });
  return { hooks, inputs, warnings, denied };
}

const failing = (): undefined => {
  throw new Error("It broke.");
};

/** An agent that calls `echo` once, under these hooks; what came of the call. */
async function run(
  { hooks }: World,
  options: { args?: Record<string, unknown>; rules?: object; around?: Middleware } = {},
): Promise<{ text: string; isError: boolean; ran: unknown[] }> {
  const { args = { text: "hello" }, rules = {} } = options;
  const ran: unknown[] = [];
  const echo = {
    ...defineTool({
      name: "echo",
      description: "Says it again.",
      parameters: {
        type: "object",
        properties: { text: { type: "string" }, times: { type: "integer" } },
        required: ["text"],
      },
      execute: (given) => {
        ran.push(given);
        if (given.text === "fail") throw new Error("It cannot be said.");
        return given.text;
      },
    }),
    access: ({ text }: Record<string, unknown>) => ({
      kind: "network" as const,
      targets: [String(text)],
      summary: "Say it",
      destructive: text === "destroy",
    }),
  };
  const guard = permissions({
    rules,
    headless: true,
    sandboxed: false,
    tools: [echo],
    advice: (call) => hooks.advice(call),
  });
  const script = scriptedModel([call("echo", args), "Done."]);
  const agent = new Agent({
    protocol: script,
    model: script.model,
    tools: [echo],
    middleware: [hooks.middleware, guard],
  });
  const { messages } = await agent.prompt("Say hello.");
  const result = messages.find((message) => message.role === "toolResult");
  return { text: result ? textOf(result) : "", isError: result?.isError ?? false, ran };
}

const ALLOW = { allow: ["echo"] };

describe("PreToolUse", () => {
  it("gets the call", async () => {
    const made = world(["PreToolUse", undefined]);
    await run(made, { rules: ALLOW });
    expect(made.inputs).toEqual([
      {
        session_id: "s1",
        transcript_path: "/s1.jsonl",
        cwd: "/work",
        hook_event_name: "PreToolUse",
        tool_name: "echo",
        tool_use_id: expect.any(String),
        tool_input: { text: "hello" },
      },
    ]);
  });

  it("that blocks: the tool is not run, and the model gets the reason", async () => {
    const made = world(["PreToolUse", { block: "Not on Sundays." }], ["PreToolUse", failing]);
    expect(await run(made, { rules: ALLOW })).toEqual({
      text: 'Tool "echo" failed: Denied by a hook: Not on Sundays.',
      isError: true,
      ran: [],
    });
    expect(made.denied).toEqual(["Not on Sundays."]);
    // Those after it are not asked.
    expect(made.warnings).toEqual([]);
  });

  it("that fails is reported, and the call goes on", async () => {
    const made = world(["PreToolUse", failing]);
    expect(await run(made, { rules: ALLOW })).toMatchObject({ text: "hello", isError: false });
    expect(made.warnings).toEqual(["It broke."]);
  });

  it("changes the input, which is checked again, and seen by the hooks after it", async () => {
    const made = world(
      ["PreToolUse", { input: { text: "changed", times: "2" } }],
      ["PreToolUse", undefined],
      ["PostToolUse", undefined],
    );
    const { ran, text } = await run(made, { rules: ALLOW });
    expect({ ran, text }).toEqual({ ran: [{ text: "changed", times: 2 }], text: "changed" });
    expect(made.inputs[1]?.tool_input).toEqual({ text: "changed", times: "2" });
    expect(made.inputs[2]?.tool_input).toEqual({ text: "changed", times: 2 });
  });

  it("that changes the input to what the tool does not take: it is not run", async () => {
    const made = world(["PreToolUse", { input: { word: "x" } }]);
    const { ran, text } = await run(made, { rules: ALLOW });
    expect(ran).toEqual([]);
    expect(text).toContain("Denied by a hook: Hook 1 changed it so: Invalid arguments");
  });

  it("cannot change a call into one that is denied", async () => {
    const made = world(["PreToolUse", { input: { text: "secret" }, permission: "allow" }]);
    const { ran, text } = await run(made, { rules: { ...ALLOW, deny: ["echo(secret)"] } });
    expect(ran).toEqual([]);
    expect(text).toContain('The rule "echo(secret)" forbids it.');
  });

  it("that allows saves the question", async () => {
    expect((await run(world())).text).toContain("no person can be asked here");
    expect((await run(world(["PreToolUse", { permission: "allow" }]))).text).toBe("hello");
  });

  it.each([
    ["a rule that denies", { deny: ["echo"] }, "hello", 'The rule "echo" forbids it.'],
    ["a rule that asks", { ask: ["echo"] }, "hello", 'The rule "echo" wants it asked about.'],
    ["what cannot be undone", {}, "destroy", "It cannot be undone."],
  ])("that allows does not go past %s", async (_what, rules, text, words) => {
    const made = world(["PreToolUse", { permission: "allow" }]);
    const result = await run(made, { rules, args: { text } });
    expect(result.ran).toEqual([]);
    expect(result.text).toContain(words);
  });

  it("that wants it asked about takes precedence over one that allows, and over rules", async () => {
    const made = world(
      ["PreToolUse", { permission: "ask", reason: "Look at it." }],
      ["PreToolUse", { permission: "allow" }],
    );
    const { ran, text } = await run(made, { rules: ALLOW });
    expect(ran).toEqual([]);
    expect(text).toContain("wants it asked about: Look at it.");
  });

  it("adds to what the model reads of the result", async () => {
    const made = world(["PreToolUse", { context: "It echoes." }]);
    expect((await run(made, { rules: ALLOW })).text).toBe(
      'hello\n<hook event="PreToolUse">\nIt echoes.\n</hook>',
    );
  });
});

describe("PostToolUse", () => {
  it("gets the result, and adds to it", async () => {
    const made = world(["PostToolUse", { block: "Say it louder.", context: "It was quiet." }]);
    expect(await run(made, { rules: ALLOW })).toMatchObject({
      text: 'hello\n<hook event="PostToolUse">\nSay it louder.\n\nIt was quiet.\n</hook>',
      isError: false,
    });
    expect(made.inputs[0]).toMatchObject({
      hook_event_name: "PostToolUse",
      tool_name: "echo",
      tool_input: { text: "hello" },
      tool_response: { content: [{ type: "text", text: "hello" }], isError: false },
    });
  });

  it("is not asked about a call that was denied or failed", async () => {
    const made = world(["PostToolUse", undefined]);
    await run(made);
    await run(made, { rules: ALLOW, args: { text: "fail" } });
    expect(made.inputs).toEqual([]);
  });
});

describe("UserPromptSubmit and SessionStart", () => {
  it("add behind the prompt; SessionStart once", async () => {
    const made = world(
      ["UserPromptSubmit", { context: "It is late." }],
      ["SessionStart", { context: "The branch is main." }],
    );
    expect(await made.hooks.prompt("Go.", "startup", never)).toBe(
      [
        "Go.",
        '<hook event="SessionStart">\nThe branch is main.\n</hook>',
        '<hook event="UserPromptSubmit">\nIt is late.\n</hook>',
      ].join("\n\n"),
    );
    expect(await made.hooks.prompt("On.", "startup", never)).toBe(
      'On.\n\n<hook event="UserPromptSubmit">\nIt is late.\n</hook>',
    );
    expect(made.inputs).toMatchObject([
      { hook_event_name: "SessionStart", source: "startup" },
      { hook_event_name: "UserPromptSubmit", prompt: "Go." },
      { hook_event_name: "UserPromptSubmit", prompt: "On." },
    ]);
  });

  it("a prompt that one blocks is not sent", async () => {
    const { hooks } = world(["UserPromptSubmit", { block: "It has a key in it." }]);
    const error = await hooks.prompt("x", "startup", never).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PromptBlockedError);
    expect(error).toMatchObject({ message: "The prompt was not sent: It has a key in it." });
  });

  it("what SessionStart said is kept for the first prompt that is let through", async () => {
    const { hooks } = world(
      ["SessionStart", { context: "The branch is main." }],
      ["UserPromptSubmit", ({ prompt }) => (prompt === "bad" ? { block: "No." } : undefined)],
    );
    await expect(hooks.prompt("bad", "startup", never)).rejects.toThrow("No.");
    expect(await hooks.prompt("good", "startup", never)).toContain("The branch is main.");
  });

  it("a start cannot be blocked", async () => {
    const { hooks, warnings } = world(["SessionStart", { block: "No." }]);
    expect(await hooks.prompt("Go.", "resume", never)).toBe("Go.");
    expect(warnings).toEqual(["Hook 1: a session cannot be kept from starting: No."]);
  });

  it("a signal ends the waiting", async () => {
    const controller = new AbortController();
    const { hooks } = world([
      "UserPromptSubmit",
      () => {
        controller.abort(new Error("stopped"));
        return { context: "too late" };
      },
    ]);
    await expect(hooks.prompt("x", "startup", controller.signal)).rejects.toThrow("stopped");
  });
});

describe("Stop", () => {
  it("that blocks gives the agent more to do, at most five times in a row", async () => {
    const { hooks, inputs, warnings } = world(["Stop", { block: "Run the tests." }]);
    await hooks.prompt("Go.", "startup", never);
    for (let time = 0; time < MAX_STOPS_IN_A_ROW; time++) {
      expect(await hooks.stop(never)).toBe('<hook event="Stop">\nRun the tests.\n</hook>');
    }
    expect(await hooks.stop(never)).toBeUndefined();
    expect(warnings).toEqual(["Hook 1 wanted it to go on 5 times in a row: it stops."]);
    expect(inputs.map((input) => input.stop_hook_active)).toEqual([
      false,
      ...Array.from({ length: MAX_STOPS_IN_A_ROW }, () => true),
    ]);
    // With the next prompt it counts from zero.
    await hooks.prompt("Again.", "startup", never);
    expect(await hooks.stop(never)).toBeDefined();
  });

  it("that says nothing lets it stop", async () => {
    expect(await world(["Stop", undefined]).hooks.stop(never)).toBeUndefined();
    expect(await world(["Stop", failing]).hooks.stop(never)).toBeUndefined();
  });
});

it("a line for the user is shown", async () => {
  const { hooks, warnings } = world(["PreCompact", { message: "Saved a copy.", block: "Wait." }]);
  expect(await hooks.compact("auto", never)).toBe(false);
  expect(warnings).toEqual([
    "Hook 1: Saved a copy.",
    "Hook 1 puts the compaction off, as long as there is room: Wait.",
  ]);
});
