import { describe, expect, it } from "vitest";
import { HOOK_EVENTS, namesOfTool, parseHooks } from "./hooks.ts";
import { SETTINGS } from "./table.ts";

describe("hooks in a file", () => {
  it("are read in our shape and in the one that others have", () => {
    const { hooks, problems } = parseHooks({
      PreToolUse: [
        { matcher: "shell|edit", command: "check", timeout: 5 },
        { matcher: "Bash", hooks: [{ type: "command", command: "a" }, { command: ["b", "c"] }] },
      ],
      Stop: [{ command: "enough" }],
    });
    expect(problems).toEqual([]);
    expect(hooks.map(({ event, command, timeoutSeconds }) => [event, command, timeoutSeconds]))
      // In the order of the file.
      .toEqual([
        ["PreToolUse", "check", 5],
        ["PreToolUse", "a", 60],
        ["PreToolUse", ["b", "c"], 60],
        ["Stop", "enough", 60],
      ]);
  });

  it.each([
    [undefined, "anything", true],
    ["", "anything", true],
    ["*", "anything", true],
    ["shell|edit", "shell", true],
    ["shell|edit", "edit", true],
    ["shell|edit", "shells", false],
    ["Bash", "shell", true],
    ["Read", "read", true],
    ["Edit|Write", "write", true],
    ["Edit|Write", "apply_patch", true],
    ["Glob", "find", true],
    ["Grep", "grep", true],
    ["WebFetch", "fetch", true],
    ["bash", "shell", false],
    ["mcp__.*", "mcp__tracker__list", true],
    ["mcp__tracker__.*", "mcp__other__list", false],
  ])("with the matcher %j are for %j: %j", (matcher, tool, expected) => {
    const { hooks } = parseHooks({ PreToolUse: [{ command: "x", ...(matcher && { matcher }) }] });
    expect(hooks[0]?.matches(namesOfTool(tool))).toBe(expected);
  });

  it.each([
    [{ PreToolUse: {} }, "PreToolUse must be a list of hooks"],
    [{ Stop: ["x"] }, 'Stop[0] must be an object with "command" or "hooks"'],
    [{ Stop: [{ command: "ok" }, {}] }, 'Stop[1] must have a "command"'],
    [{ Stop: [{ command: [] }] }, 'Stop[0] must have a "command"'],
    [{ Stop: [{ command: "a\0b" }] }, 'Stop[0] must have a "command"'],
    [{ Stop: [{ command: "x", timeout: 0 }] }, 'Stop[0] must have seconds as "timeout"'],
    [{ Stop: [{ command: "x", matcher: "(" }] }, 'has a "matcher" that is no regular expression'],
    [{ Stop: [{ hooks: "x" }] }, 'Stop[0] must have a list as "hooks"'],
    [{ Stop: [{ hooks: [{ type: "prompt", prompt: "?" }] }] }, 'is of type "prompt"'],
  ])("that are wrong are reported: %j", (hooks, words) => {
    expect(parseHooks(hooks).problems).toEqual([expect.stringContaining(words)]);
  });

  it("of events that only others have are passed over", () => {
    const { hooks, problems, unknown } = parseHooks({ Notification: [{ anything: 1 }] });
    expect({ hooks, problems, unknown }).toEqual({
      hooks: [],
      problems: [],
      unknown: ["Notification"],
    });
  });

  it("add up, those of the user's file first", () => {
    const { add } = SETTINGS.hooks;
    expect(add?.({ Stop: [1], PreCompact: [2] }, { Stop: [3], SessionStart: [4] })).toEqual({
      Stop: [1, 3],
      PreCompact: [2],
      SessionStart: [4],
    });
  });

  it("are in the JSON Schema, each event", () => {
    const { properties } = SETTINGS.hooks.kind.schema;
    expect(Object.keys(Object(properties))).toEqual(HOOK_EVENTS);
  });
});
