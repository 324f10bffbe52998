import { chmod, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type HistoryWorld, historyWorld } from "../../testing/history-world.ts";
import type { RewindReport } from "./apply.ts";
import type { FilePlace } from "../lines/line.ts";

const open: HistoryWorld[] = [];

async function world(): Promise<HistoryWorld> {
  const made = await historyWorld();
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function rewind(
  w: HistoryWorld,
  from: FilePlace,
  withConflicts = false,
): Promise<RewindReport> {
  return w.recorder.apply(await w.recorder.plan(from), { withConflicts });
}

describe("a rewind", () => {
  it("gives back each file as it was before a prompt", async () => {
    const w = await world();
    await w.put("a.txt", "a", 0o644);
    await w.put("run.sh", "true", 0o755);
    await w.put("gone.bin", new Uint8Array([0, 1, 2, 255]));
    await symlink("a.txt", w.path("link"));
    const before = await w.files();
    const entry = await w.run(async () => {
      await w.edit(["a.txt"], () => w.put("a.txt", "b"));
      await w.shell(async () => {
        await chmod(w.path("run.sh"), 0o444);
        await rm(w.path("gone.bin"));
        await rm(w.path("link"));
        await symlink("elsewhere", w.path("link"));
        await rename(w.path("a.txt"), w.path("moved.txt"));
        await w.put("made.txt", "made");
      });
    });
    const report = await rewind(w, { before: entry });
    expect(report).toMatchObject({ left: [], failed: [] });
    expect(await w.files()).toEqual(before);
  });

  it("goes to a prompt in the middle, and says beforehand what it will do", async () => {
    const w = await world();
    await w.put("a.txt", "one\ntwo\nthree\n");
    await w.run(() => w.shell(() => w.put("a.txt", "one\n2\nthree\n")));
    const middle = await w.files();
    const entry = await w.run(() =>
      w.shell(async () => {
        await w.put("a.txt", "one\n2\n");
        await w.put("b.txt", "new\n");
      }),
    );
    const plan = await w.recorder.plan({ before: entry });
    expect(plan.steps).toMatchObject([
      { path: "a.txt", action: "restore", lines: { added: 1, removed: 0 } },
      { path: "b.txt", action: "remove", lines: { added: 0, removed: 1 } },
    ]);
    await w.recorder.apply(plan, { withConflicts: false });
    expect(await w.files()).toEqual(middle);
  });

  it("can be taken back by another one", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    const entry = await w.run(() =>
      w.shell(async () => {
        await w.put("a.txt", "new");
        await w.put("b.txt", "made");
      }),
    );
    const later = await w.files();
    await rewind(w, { before: entry });
    const lines = await w.recorder.lines();
    expect(lines.at(-1)).toMatchObject({ by: "rewind", leaf: w.session.leaf });
    await rewind(w, { line: lines.length - 1 });
    expect(await w.files()).toEqual(later);
  });

  it("works on what another process has recorded", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    const before = await w.files();
    const entry = await w.run(() => w.shell(() => w.put("a.txt", "new")));
    const other = w.reopened();
    await other.apply(await other.plan({ before: entry }), { withConflicts: false });
    expect(await w.files()).toEqual(before);
  });

  it("turns a folder back into the file that it was, and a link into a folder", async () => {
    const w = await world();
    await w.put("thing", "a file");
    await w.put("src/a.txt", "a");
    const before = await w.files();
    const entry = await w.run(() =>
      w.shell(async () => {
        await rm(w.path("thing"));
        await w.put("thing/inside.txt", "inside");
        await rename(w.path("src"), w.path("lib"));
        await symlink("lib", w.path("src"));
      }),
    );
    expect(await rewind(w, { before: entry })).toMatchObject({ left: [], failed: [] });
    expect(await w.files()).toEqual(before);
  });

  it("gives what was made no trace of a folder that was there", async () => {
    const w = await world();
    await w.put("thing/inside.txt", "inside");
    const before = await w.files();
    const entry = await w.run(() =>
      w.shell(async () => {
        await rm(w.path("thing"), { recursive: true });
        await w.put("thing", "a file");
      }),
    );
    await rewind(w, { before: entry });
    expect(await w.files()).toEqual(before);
  });
});

describe("changes from outside", () => {
  it("is left alone, named, and replaced only where that is confirmed", async () => {
    const w = await world();
    await w.put("a.txt", "old", 0o644);
    const entry = await w.run(() => w.shell(() => w.put("a.txt", "by the agent")));
    await w.put("a.txt", "by the user");
    const report = await rewind(w, { before: entry });
    expect(report.left).toEqual([
      { path: "a.txt", why: "it was changed outside of this session since" },
    ]);
    expect(await readFile(w.path("a.txt"), "utf8")).toBe("by the user");
    await rewind(w, { before: entry }, true);
    expect(await readFile(w.path("a.txt"), "utf8")).toBe("old");
    await rewind(w, { line: (await w.recorder.lines()).length - 1 });
    expect(await readFile(w.path("a.txt"), "utf8")).toBe("by the user");
  });

  it("is a conflict also where the agent went on with it", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    const entry = await w.run(() => w.shell(() => w.put("a.txt", "by the agent")));
    await w.put("a.txt", "by the user");
    await w.run(() => w.shell(() => w.put("a.txt", "by both")));
    const { left } = await rewind(w, { before: entry });
    expect(left).toEqual([
      { path: "a.txt", why: "it was changed outside of this session in between" },
    ]);
  });

  it("is never removed, not even if that is confirmed", async () => {
    const w = await world();
    const entry = await w.run(() => w.shell(() => w.put("made.txt", "by the agent")));
    await w.put("made.txt", "by the user");
    const { left } = await rewind(w, { before: entry }, true);
    expect(left).toHaveLength(1);
    expect(await readFile(w.path("made.txt"), "utf8")).toBe("by the user");
  });

  it("is not undone where it removed a file", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    const entry = await w.run(() => w.shell(() => w.put("a.txt", "new")));
    await rm(w.path("a.txt"));
    const { left } = await rewind(w, { before: entry });
    expect(left).toEqual([{ path: "a.txt", why: "it was removed outside of this session since" }]);
    expect(await w.files()).toEqual({});
  });

  it("may be a job's, and is left alone then", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    w.jobs.areRunning = true;
    const entry = await w.run(() => w.shell(async () => {}));
    await w.put("a.txt", "new");
    await w.run(async () => {});
    const { left } = await rewind(w, { before: entry });
    expect(left).toMatchObject([{ path: "a.txt", why: expect.stringContaining("job") }]);
  });

  it("between the preview and the rewind stops that file and no other", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    await w.put("b.txt", "old", 0o644);
    const entry = await w.run(() =>
      w.shell(async () => {
        await w.put("a.txt", "new");
        await w.put("b.txt", "new");
      }),
    );
    const plan = await w.recorder.plan({ before: entry });
    await w.put("a.txt", "by the user");
    const report = await w.recorder.apply(plan, { withConflicts: true });
    expect(report.failed).toEqual([{ path: "a.txt", why: "it has changed since the preview" }]);
    expect(report.done.map(({ path }) => path)).toEqual(["b.txt"]);
    expect(await readFile(w.path("a.txt"), "utf8")).toBe("by the user");
  });

  it("cannot lead a rewind out of the folder by a link", async () => {
    const w = await world();
    await w.put("sub/a.txt", "old");
    const entry = await w.run(() => w.shell(() => w.put("sub/a.txt", "new")));
    const outside = join(w.root, "..", "outside");
    await mkdir(outside);
    await writeFile(join(outside, "a.txt"), "new");
    await rm(w.path("sub"), { recursive: true });
    await symlink(outside, w.path("sub"));
    const { left } = await rewind(w, { before: entry }, true);
    expect(left).toEqual([{ path: "sub/a.txt", why: "a link on the way leads elsewhere" }]);
    expect(await readFile(join(outside, "a.txt"), "utf8")).toBe("new");
  });

  it("in a folder that stands where a file was is kept", async () => {
    const w = await world();
    await w.put("thing", "a file");
    const entry = await w.run(() => w.shell(() => rm(w.path("thing"))));
    await w.put("thing/mine.txt", "by the user");
    const { failed } = await rewind(w, { before: entry });
    expect(failed).toMatchObject([{ path: "thing" }]);
    expect(await readFile(w.path("thing/mine.txt"), "utf8")).toBe("by the user");
  });
});

it("a file of which what was kept is gone is named and left alone", async () => {
  const w = await world();
  await w.put("a.txt", "old");
  const entry = await w.run(() => w.shell(() => w.put("a.txt", "new")));
  await rm(join(w.folder, w.session.header.id, "contents"), { recursive: true });
  const { left } = await rewind(w, { before: entry }, true);
  expect(left).toEqual([{ path: "a.txt", why: "what was kept of it is gone or damaged" }]);
  expect(await readFile(w.path("a.txt"), "utf8")).toBe("new");
});
