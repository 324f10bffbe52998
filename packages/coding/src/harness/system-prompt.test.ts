import { describe, expect, it } from "vitest";
import { movedPrompt, systemPrompt } from "./system-prompt.ts";

const prompt = (more: object = {}): string =>
  systemPrompt({ folder: "/a/tea shop", settings: {}, ...more });

describe("the system prompt", () => {
  it("has the habits that users expect", () => {
    for (const habit of [
      "Commit only when asked.",
      "Name places as path:line.",
      "Note what must outlast old turns.",
      "A call that was denied stays denied",
    ]) {
      expect(prompt()).toContain(habit);
    }
  });

  it("names the pages about the program, where there are some", () => {
    expect(prompt({ docs: "/usr/lib/gyre/docs/README.md" })).toContain(
      "About gyre: read /usr/lib/gyre/docs/README.md.",
    );
    expect(prompt()).not.toContain("About gyre");
    // A prompt of the user's own is for another agent.
    expect(prompt({ docs: "/d/README.md", settings: { systemPrompt: "You brew." } })).not.toContain(
      "About gyre",
    );
  });

  it.each([
    ["of now", prompt()],
    ["of the user", prompt({ settings: { systemPrompt: "You brew." } })],
    [
      "of sessions before",
      `You are gyre, a coding agent. You work in /old on ${process.platform} with the tools that you have. Look.`,
    ],
  ])("names the folder that a session has moved to: one %s", (_, text) => {
    const moved = movedPrompt(text, "/b");
    expect(moved).toMatch(new RegExp(`You work in /b on ${process.platform}`));
    expect(moved).not.toMatch(/tea shop|\/old/);
  });
});
