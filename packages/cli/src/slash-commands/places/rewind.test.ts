import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { call, type ScriptStep } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { workedHarness } from "../../testing/worked-harness.ts";
import { FakeView } from "../../testing/slash-commands.ts";

const world = workedHarness();
const worked: typeof world.worked = (...args) => world.worked(...args);
const read = (name: string): Promise<string> => world.read(name);

/** Runs the command, and answers its questions with the choices of these labels. */
async function play(of: Harness, ...answers: string[]): Promise<FakeView> {
  const view = new FakeView({ harness: of, env: world.env, cwd: world.work });
  view.answers = answers;
  await view.run("rewind");
  return view;
}

function listLabels(question: FakeView["questions"][number] | undefined): string[] {
  return (question?.choices ?? []).map(({ label }) => label);
}

const MADE_AND_CHANGED: ScriptStep[] = [
  call("write", { path: "a.txt", content: "one\n" }),
  "Made.",
  call("shell", { command: "echo two >> a.txt; echo new > b.txt" }),
  "Changed.",
];

describe("/rewind", () => {
  it("takes conversation and files back to before a prompt, and gives the prompt to edit", async () => {
    const of = await worked(["Make it", "Change it"], MADE_AND_CHANGED);
    const played = await play(of, "Change it", "conversation and files");
    expect(listLabels(played.questions[0])).toEqual(["Change it", "Make it"]);
    expect(played.questions[1]).toMatchObject({
      title: "Back to before “Change it”",
      about: ["~ a.txt  +0 -1", "- b.txt is removed  +0 -1"],
    });
    expect(listLabels(played.questions[1])).toEqual([
      "conversation and files",
      "files only",
      "conversation only",
      "cancel",
    ]);
    expect(await read("a.txt")).toBe("one\n");
    await expect(read("b.txt")).rejects.toThrow("ENOENT");
    const [request] = played.opened;
    expect(request).toMatchObject({ edit: "Change it", entry: expect.any(Number) });
    const entry = request && "entry" in request ? request.entry : null;
    const { messages } = (await of.session?.context(entry)) ?? { messages: [] };
    expect(messages.filter(({ role }) => role === "user")).toHaveLength(1);
    expect(played.output).toEqual([
      "The conversation goes on from here. 2 files taken back; /rewind undoes that.",
    ]);
  });

  it("takes files back alone, and that can be taken back", async () => {
    const of = await worked(["Make it", "Change it"], MADE_AND_CHANGED);
    const first = await play(of, "Change it", "files only");
    expect(first.opened).toEqual([]);
    expect(await read("a.txt")).toBe("one\n");
    const second = await play(of, "(the rewind)", "files only");
    expect(listLabels(second.questions[0])).toEqual(["(the rewind)", "Change it", "Make it"]);
    expect(await read("a.txt")).toBe("one\ntwo\n");
    expect(await read("b.txt")).toBe("new\n");
  });

  it("takes the conversation back alone", async () => {
    const of = await worked(["Make it", "Change it"], MADE_AND_CHANGED);
    const played = await play(of, "Make it", "conversation only");
    expect(played.opened).toMatchObject([{ edit: "Make it" }]);
    expect(await read("b.txt")).toBe("new\n");
  });

  it("does nothing where it is left at any question", async () => {
    const of = await worked(["Make it", "Change it"], MADE_AND_CHANGED);
    await writeFile(join(world.work, "a.txt"), "by the user\n");
    await play(of);
    await play(of, "Change it");
    await play(of, "Change it", "cancel");
    const played = await play(of, "Change it", "conversation and files", "cancel");
    expect(played).toMatchObject({ output: [], opened: [] });
    expect(await read("a.txt")).toBe("by the user\n");
    expect(await read("b.txt")).toBe("new\n");
  });

  it("names what was changed outside of the session, and leaves it alone by default", async () => {
    const of = await worked(["Make it", "Change it"], MADE_AND_CHANGED);
    await writeFile(join(world.work, "a.txt"), "by the user\n");
    const played = await play(of, "Change it", "files only", "leave them as they are");
    expect(played.questions[1]?.about?.[1]).toBe(
      "! a.txt stays: it was changed outside of this session since",
    );
    expect(played.questions[2]?.title).toBe("1 file may hold changes from outside of this session");
    expect(played.output[0]).toContain("Left as they are: `a.txt`.");
    expect(await read("a.txt")).toBe("by the user\n");
    await play(of, "Change it", "files only", "take them back too");
    expect(await read("a.txt")).toBe("one\n");
  });

  it("names what was not kept", async () => {
    const of = await worked(
      ["Fill it"],
      [call("shell", { command: "head -c 2000000 /dev/zero > large" }), "Done."],
    );
    const played = await play(of, "Fill it");
    expect(played.questions[1]).toMatchObject({
      about: ["? large was not kept: it has 1.9 MB; 1 MB is kept"],
    });
    expect(listLabels(played.questions[1])).toEqual(["conversation only", "cancel"]);
  });

  it("offers the conversation alone where files are not recorded", async () => {
    const of = await worked(["Hi"], ["Hello."], { fileHistory: false });
    const played = await play(of, "Hi");
    expect(played.questions[1]).toMatchObject({
      about: ["Files are not recorded here."],
    });
    expect(listLabels(played.questions[1])).toEqual(["conversation only", "cancel"]);
  });

  it("says so where nothing was said", async () => {
    const of = await worked([], []);
    await expect(play(of)).rejects.toThrow("nothing to go back to");
  });
});
