import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { call, type ScriptStep } from "@gyre/ai/testing";
import type { OpenRequest } from "@gyre/coding/internal/conversation/command";
import { readPrompts } from "@gyre/coding/internal/file-history/prompts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { openSession, type Session } from "@gyre/sessions";
import { describe, expect, it } from "vitest";
import { openStore } from "../../core/setup.ts";
import { FakeView } from "../../testing/slash-commands.ts";
import { workedHarness } from "../../testing/worked-harness.ts";

const world = workedHarness();
const worked: typeof world.worked = (...args) => world.worked(...args);
const read = (name: string): Promise<string> => world.read(name);

const STEPS: ScriptStep[] = [
  call("write", { path: "a.txt", content: "one\n" }),
  "Made.",
  call("shell", { command: "echo two >> a.txt; echo new > b.txt" }),
  "Changed.",
];

function openedSession({ session }: Harness): Session {
  if (!session) throw new Error("There is no session.");
  return session;
}

function view(harness: Harness, place: OpenRequest | undefined, ...answers: string[]): FakeView {
  const made = new FakeView({ harness, env: world.env, cwd: world.work });
  made.place = place;
  made.answers = answers;
  return made;
}

/** Goes to a place by /tree, as the program does, with these answers. */
async function go(
  harness: Harness,
  place: OpenRequest | undefined,
  ...answers: string[]
): Promise<FakeView> {
  const shown = view(harness, place, ...answers);
  await shown.run("tree");
  const [open] = shown.opened;
  if (open && "entry" in open) await openedSession(harness).branch(open.entry);
  return shown;
}

/** The places before and after each prompt, the first first. */
async function places(harness: Harness) {
  const session = openedSession(harness);
  const found = [];
  let end = session.leaf;
  for await (const { entry, parent } of readPrompts(session)) {
    found.unshift({ before: { entry: parent, before: entry, edit: "x" }, after: { entry: end } });
    end = parent;
  }
  return found;
}

describe("/tree", () => {
  it("goes back, forward and onto another branch, with the files of that place", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    const [first, second] = await places(harness);
    const back = await go(harness, second?.before, "conversation and files");
    expect(back.questions).toMatchObject([
      {
        title: "Files are not as they were at this place",
        about: ["~ a.txt  +0 -1", "- b.txt is removed  +0 -1"],
      },
    ]);
    expect(back.opened).toEqual([second?.before]);
    expect(back.output).toEqual([
      "The conversation goes on from here. 2 files brought to this place; /rewind undoes that.",
    ]);
    expect(await read("a.txt")).toBe("one\n");
    await harness.close();

    // Another branch, from the first answer on.
    const session = await openSession(openedSession(harness).path ?? "");
    const other = await worked(
      ["Other"],
      [call("write", { path: "c.txt", content: "three" }), "Well."],
      {
        session,
      },
    );
    const [, third] = await places(other);
    const sibling = await go(other, second?.after, "conversation and files");
    expect(sibling.questions[0]?.about).toEqual([
      "~ a.txt  +1 -0",
      "+ b.txt comes back  +1 -0",
      "- c.txt is removed  +0 -1",
    ]);
    expect([await read("a.txt"), await read("b.txt")]).toEqual(["one\ntwo\n", "new\n"]);
    await go(other, third?.after, "conversation and files");
    expect([await read("a.txt"), await read("c.txt")]).toEqual(["one\n", "three"]);
    await go(other, first?.before, "conversation and files");
    await expect(read("a.txt")).rejects.toThrow("ENOENT");
    // The last way is the first of the list.
    const undo = view(other, undefined, "(the rewind)", "files only");
    await undo.run("rewind");
    expect(undo.questions[0]?.choices.map(({ label }) => label).slice(0, 2)).toEqual([
      "(the rewind)",
      "(the way to another place)",
    ]);
    expect([await read("a.txt"), await read("c.txt")]).toEqual(["one\n", "three"]);
    await other.close();
    await session.close();
  });

  it("leaves the files as they are where that is chosen, and asks nothing where they are the same", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    const [, second] = await places(harness);
    await go(harness, second?.before, "conversation only");
    expect(await read("b.txt")).toBe("new\n");
    const again = await go(harness, second?.after);
    expect(again.questions).toEqual([]);
    expect(again.opened).toEqual([second?.after]);
  });

  it("does nothing where it is left at any question", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    const [, second] = await places(harness);
    await writeFile(join(world.work, "a.txt"), "by the user\n");
    expect((await go(harness, undefined)).opened).toEqual([]);
    expect((await go(harness, second?.before)).opened).toEqual([]);
    const cancel = await go(harness, second?.before, "conversation and files", "cancel");
    expect(cancel.opened).toEqual([]);
    expect([await read("a.txt"), await read("b.txt")]).toEqual(["by the user\n", "new\n"]);
  });

  it("leaves a file of the user's alone, and brings the others", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    const [, second] = await places(harness);
    await writeFile(join(world.work, "a.txt"), "by the user\n");
    const answers = ["conversation and files", "leave them as they are"];
    const played = await go(harness, second?.before, ...answers);
    expect(played.output[0]).toContain("Left as they are: `a.txt`.");
    expect(await read("a.txt")).toBe("by the user\n");
    await expect(read("b.txt")).rejects.toThrow("ENOENT");
  });
});

describe("/fork", () => {
  it("brings the files to the place, and the copy can take that back and go on from there", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    const forked = view(harness, undefined, "Change it", "conversation and files");
    await forked.run("fork");
    expect(forked.questions[1]?.choices.map(({ label }) => label)).toEqual([
      "conversation and files",
      "conversation only",
      "cancel",
    ]);
    expect(await read("a.txt")).toBe("one\n");
    const [open] = forked.opened;
    await harness.close();
    const store = await openStore({ env: world.env });
    const session = await store.open(open && "session" in open ? open.session : "");
    const copy = await worked([], [], { session });
    const [first] = await places(copy);
    const back = await go(copy, first?.before, "conversation and files");
    expect(back.questions[0]?.about).toEqual(["- a.txt is removed  +0 -1"]);
    await go(copy, first?.after, "conversation and files");
    expect(await read("a.txt")).toBe("one\n");
    // The oldest of the ways is the one that the copy began with.
    const list = view(copy, undefined);
    await list.run("rewind");
    const choices = list.questions[0]?.choices ?? [];
    const oldest = choices.filter(({ label }) => label.startsWith("(the ")).length - 1;
    expect(oldest).toBe(2);
    const undo = view(copy, undefined);
    undo.answers = [{ at: oldest }, "files only"];
    await undo.run("rewind");
    expect([await read("a.txt"), await read("b.txt")]).toEqual(["one\ntwo\n", "new\n"]);
    await copy.close();
    await session.close();
  });

  it("leaves the files where the conversation alone is copied", async () => {
    const harness = await worked(["Make it", "Change it"], STEPS);
    await view(harness, undefined, "Change it", "conversation only").run("fork");
    expect(await read("b.txt")).toBe("new\n");
    const left = view(harness, undefined, "Change it", "cancel");
    await left.run("fork");
    expect(left.opened).toEqual([]);
  });
});
