import { validateToolArguments } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { MAX_NOTE_TOKENS, NotePad, notesTool } from "./tool.ts";

const signal = new AbortController().signal;
const host = {
  call: (): Promise<never> => Promise.reject(new Error("Calls nothing.")),
};

/** What a call gives, with its arguments checked as a run checks them. */
async function call(pad: NotePad, given: Record<string, unknown>): Promise<string> {
  const tool = notesTool(pad);
  const checked = await validateToolArguments(tool, given);
  if (!checked.ok) throw new Error(checked.error);
  const result = await tool.execute(checked.value, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  if (typeof result === "string") return result;
  const [block] = result.content;
  return block?.type === "text" ? block.text : "";
}

describe("the notes of an agent", () => {
  it("are rewritten with a text, and read without", async () => {
    const pad = new NotePad();
    expect(await call(pad, {})).toBe("There are no notes.");
    expect(await call(pad, { text: "\nGoal: a fox.\n" })).toMatch(/^Noted: about \d+ of 4,000/);
    expect(await call(pad, {})).toBe("Goal: a fox.");
    await call(pad, { text: "Goal: a bear." });
    expect(pad.text).toBe("Goal: a bear.");
    await call(pad, { text: "" });
    expect(pad.text).toBe("");
  });

  it("have an end, and stay as they were beyond it", async () => {
    const pad = new NotePad("Goal: a fox.");
    await call(pad, { text: "fox ".repeat(MAX_NOTE_TOKENS) });
    await expect(call(pad, { text: "fox ".repeat(MAX_NOTE_TOKENS + 1) })).rejects.toThrow(
      /at most 4,000 tokens; these are about 4,001/,
    );
    expect(pad.text).toHaveLength("fox ".length * MAX_NOTE_TOKENS - 1);
  });

  it("are reported to listeners before the call ends, until they are not any more", async () => {
    const pad = new NotePad();
    const heard: string[] = [];
    const forget = pad.onChange(async (text) => {
      await Promise.resolve();
      heard.push(text);
    });
    await call(pad, { text: "one" });
    expect(heard).toEqual(["one"]);
    pad.restore("two");
    forget();
    await call(pad, { text: "three" });
    expect(heard).toEqual(["one"]);
  });

  it("are not changed where they could not be written down", async () => {
    const pad = new NotePad("before");
    pad.onChange(() => Promise.reject(new Error("The disk is full.")));
    await expect(call(pad, { text: "after" })).rejects.toThrow("The disk is full.");
    expect(pad.text).toBe("before");
  });

  it("touch nothing outside of the agent", async () => {
    const tool = notesTool();
    expect(await tool.access({})).toMatchObject({ kind: "none", summary: "Reads its notes." });
    expect(await tool.access({ text: "" })).toMatchObject({ summary: "Rewrites its notes." });
  });
});
