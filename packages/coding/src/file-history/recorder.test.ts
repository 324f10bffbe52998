import { execFileSync } from "node:child_process";
import {
  appendFile,
  chmod,
  mkdir,
  readdir,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@gyre/ai";
import {
  gitTool,
  type GuardedTool,
  noSandbox,
  PathError,
  SeenFiles,
  type Workspace,
} from "@gyre/tools";
import { afterEach, describe, expect, it } from "vitest";
import {
  type HistoryWorld,
  historyWorld,
  type HistoryWorldOptions,
} from "../testing/history-world.ts";
import type { HistoryLine } from "./lines/line.ts";
import { MAX_SURE_MS } from "./recorder.ts";

const open: HistoryWorld[] = [];

async function world(options: HistoryWorldOptions = {}): Promise<HistoryWorld> {
  const made = await historyWorld(options);
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** What was recorded in short: `+` made, `-` removed, `~` changed. */
function formatChanges(lines: readonly HistoryLine[]): string[] {
  return lines.flatMap(({ changes }) =>
    changes.map(({ path, before, after }) => `${!before ? "+" : !after ? "-" : "~"} ${path}`),
  );
}

describe("what is recorded", () => {
  it("has what a shell command made, changed and removed", async () => {
    const w = await world();
    await w.put("kept.txt", "kept");
    await w.put("changed.txt", "old");
    await w.put("gone.txt", "gone");
    const entry = await w.run(() =>
      w.shell(async () => {
        await w.put("changed.txt", "new");
        await w.put("deep/made.txt", "made");
        await rm(w.path("gone.txt"));
      }),
    );
    const lines = await w.recorder.lines();
    expect(formatChanges(lines).sort()).toEqual(["+ deep/made.txt", "- gone.txt", "~ changed.txt"]);
    expect(lines[0]).toMatchObject({ by: "agent", entry });
  });

  it("has a file that is ignored where a call names it, and not where a command writes it", async () => {
    const w = await world();
    await w.put(".gitignore", "*.log\n");
    await w.put("named.log", "old");
    await w.run(async () => {
      await w.edit(["named.log"], () => w.put("named.log", "new"));
      await w.shell(() => w.put("other.log", "new"));
    });
    expect(formatChanges(await w.recorder.lines())).toEqual(["~ named.log"]);
  });

  it("has a folder that was renamed long after its files were written", async () => {
    let ahead = 0;
    const w = await world({ now: () => Date.now() + ahead });
    for (const name of ["a/one", "a/b/two", "c/three"]) await w.put(name, name);
    await w.run(() => w.shell(async () => {}));
    ahead = 10_000;
    await w.run(() => w.shell(async () => {}));
    const before = await w.files();
    const entry = await w.run(() =>
      w.shell(async () => {
        await rename(w.path("a"), w.path("d"));
        await rename(w.path("c"), w.path("a"));
      }),
    );
    await w.recorder.apply(await w.recorder.plan({ before: entry }), { withConflicts: false });
    expect(await w.files()).toEqual(before);
  });

  it("has a change of the mode alone, and not one of the time alone", async () => {
    const w = await world();
    await w.put("a.sh", "true", 0o644);
    await w.put("b.sh", "true", 0o644);
    await w.run(() =>
      w.shell(async () => {
        await chmod(w.path("a.sh"), 0o755);
        await w.put("b.sh", "true");
      }),
    );
    expect(formatChanges(await w.recorder.lines())).toEqual(["~ a.sh"]);
  });

  it("has a change that follows the last look at once and keeps the length", async () => {
    const w = await world();
    await w.put("a.txt", "0");
    for (let count = 1; count <= 20; count++) {
      await w.run(() => w.shell(() => w.put("a.txt", String(count % 10))));
    }
    expect(formatChanges(await w.recorder.lines())).toHaveLength(20);
  });

  it("leaves out what the user did between runs, and while the model thought", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    await w.run(() => w.shell(() => w.put("b.txt", "by the agent")));
    await w.put("a.txt", "by the user");
    await w.put("c.txt", "by the user");
    await w.run(() => w.shell(() => w.put("b.txt", "again")));
    await w.run(() => w.edit(["c.txt"], () => w.put("c.txt", "by the agent")));
    const lines = await w.recorder.lines();
    expect(formatChanges(lines)).toEqual(["+ b.txt", "~ b.txt", "~ c.txt"]);
  });

  it("does nothing at all for calls that only read", async () => {
    const w = await world();
    await w.read(() => w.put("a.txt", "not looked for"));
    expect(await w.recorder.lines()).toEqual([]);
    await expect(readdir(w.folder)).rejects.toThrow("ENOENT");
  });

  it("does nothing without a session", async () => {
    const w = await world({ session: () => undefined });
    await w.run(() => w.shell(() => w.put("a.txt", "text")));
    expect(await w.recorder.lines()).toEqual([]);
  });

  it("counts a message that came in between as a prompt of its own", async () => {
    const w = await world();
    let second = 0;
    const first = await w.run(async () => {
      await w.shell(() => w.put("a.txt", "one"));
      const message = { role: "user", content: "No, two.", timestamp: 0 } as const;
      second = (await w.session.append({ type: "message", message })).id;
      await w.shell(() => w.put("a.txt", "two"));
    });
    expect((await w.recorder.lines()).map(({ entry }) => entry)).toEqual([first, second]);
  });

  it("has what a call did that failed", async () => {
    const w = await world();
    await w.run(async () => {
      const failed = w.shell(async () => {
        await w.put("a.txt", "half");
        throw new Error("broken");
      });
      await expect(failed).rejects.toThrow("broken");
    });
    expect(formatChanges(await w.recorder.lines())).toEqual(["+ a.txt"]);
  });

  it("has what calls did that ran at the same time, once", async () => {
    const w = await world();
    // Whole at once: a look after another call may come between a file and its content.
    const place = async (name: string): Promise<void> => {
      const aside = join(w.root, "..", name);
      await writeFile(aside, name);
      await rename(aside, w.path(name));
    };
    await w.run(() =>
      Promise.all([
        w.shell(() => place("a.txt")),
        w.shell(() => place("b.txt")),
        w.edit(["c.txt"], () => place("c.txt")),
      ]),
    );
    expect(formatChanges(await w.recorder.lines()).sort()).toEqual([
      "+ a.txt",
      "+ b.txt",
      "+ c.txt",
    ]);
  });

  it("has what a call was writing when the look after another one came to it", async () => {
    let noteHalf: () => void = () => {};
    let noteRead: (() => void) | undefined;
    const isHalf = new Promise<void>((resolve) => (noteHalf = resolve));
    const isRead = new Promise<void>((resolve) => (noteRead = resolve));
    const w = await world({
      workspace: (own) =>
        new Proxy(own, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name);
            if (typeof value !== "function") return value;
            if (name !== "read") return value.bind(target);
            return async (path: string, ...rest: unknown[]): Promise<unknown> => {
              const found: unknown = await Reflect.apply(value, target, [path, ...rest]);
              if (path !== "./b.txt" || !noteRead) return found;
              // The call that writes it comes to its end while it is looked at.
              await writeFile(w.path("b.txt"), "whole");
              noteRead();
              noteRead = undefined;
              return found;
            };
          },
        }),
    });
    await w.run(() =>
      Promise.all([
        w.shell(async () => {
          await isHalf;
          await w.put("a.txt", "a");
        }),
        w.shell(async () => {
          await w.put("b.txt", "half");
          noteHalf();
          await isRead;
        }),
      ]),
    );
    const lines = await w.recorder.lines();
    expect(formatChanges(lines)).toEqual(["+ a.txt", "+ b.txt"]);
    expect(lines.flatMap(({ leftOut }) => leftOut)).toEqual([]);
  });
});

describe("what is not sure", () => {
  it("is marked where a background job ran", async () => {
    const w = await world();
    await w.put("a.txt", "old");
    await w.run(() =>
      w.shell(async () => {
        w.jobs.areRunning = true;
      }),
    );
    await w.put("a.txt", "new");
    await w.run(async () => {});
    const [line] = await w.recorder.lines();
    expect(line?.changes[0]).toMatchObject({
      path: "a.txt",
      unsure: expect.stringContaining("job"),
    });
  });

  it("is marked where a call took long", async () => {
    let ahead = 0;
    const w = await world({ now: () => Date.now() + ahead });
    await w.run(() =>
      w.shell(async () => {
        await w.put("a.txt", "new");
        ahead = MAX_SURE_MS + 1;
      }),
    );
    const [line] = await w.recorder.lines();
    expect(line?.changes[0]?.unsure).toContain("for long");
  });
});

describe("a command that begins before the first look has ended", () => {
  /** A world whose files are read, for the first look, only after `release`. */
  async function slowWorld(): Promise<{ w: HistoryWorld; release: () => void }> {
    let release = (): void => {};
    const released = new Promise<void>((settle) => {
      release = settle;
    });
    const w = await world({
      maxFirstWaitMs: 0,
      workspace: (own) =>
        new Proxy(own, {
          get(target, key) {
            const value: unknown = Reflect.get(target, key);
            if (typeof value !== "function") return value;
            if (key !== "read") return value.bind(target);
            return async (...args: Parameters<Workspace["read"]>) => {
              await released;
              return target.read(...args);
            };
          },
        }),
    });
    return { w, release };
  }

  it("does not wait for it, and what it changes first is listed, never brought back wrong", async () => {
    const { w, release } = await slowWorld();
    for (const name of ["changed", "removed", "kept"]) await w.put(name, "old");
    const entry = await w.run(async () => {
      await w.shell(async () => {
        await w.put("changed", "new");
        await rm(w.path("removed"));
        await w.put("made", "new");
      });
      release();
    });
    const plan = await w.recorder.plan({ before: entry });
    await w.recorder.apply(plan, { withConflicts: false });
    const leftOut = plan.leftOut.map(({ path }) => path);
    // What the first look came to before the command did it is brought back.
    const after = await w.files();
    expect(after["kept"]).toBe("644 old");
    expect(after["changed"] === "644 old" || leftOut.includes("changed")).toBe(true);
    expect(after["made"] === undefined || leftOut.includes("made")).toBe(true);
    const isListed = leftOut.includes("removed") || leftOut.includes("removed files");
    expect(after["removed"] === "644 old" || isListed).toBe(true);
    expect(leftOut).not.toEqual([]);
  });

  it("is followed by one that can be taken back", async () => {
    const { w, release } = await slowWorld();
    await w.put("a.txt", "old");
    await w.run(async () => {
      await w.shell(async () => {});
      release();
      await w.recorder.lines();
    });
    const entry = await w.run(() => w.shell(() => w.put("a.txt", "new")));
    const plan = await w.recorder.plan({ before: entry });
    await w.recorder.apply(plan, { withConflicts: false });
    expect(await w.files()).toEqual({ "a.txt": "644 old" });
  });
});

describe("what is left out", () => {
  it("is listed where it is too large, before or after", async () => {
    const w = await world();
    await w.put("large.bin", new Uint8Array(1024 * 1024 + 1));
    await w.put("small.bin", new Uint8Array(1024 * 1024));
    await w.run(() =>
      w.shell(async () => {
        await appendFile(w.path("large.bin"), "more");
        await appendFile(w.path("small.bin"), "more");
      }),
    );
    const [line] = await w.recorder.lines();
    expect(line?.changes).toEqual([]);
    expect(line?.leftOut).toEqual([
      { path: "large.bin", why: expect.stringContaining("1.0 MB") },
      { path: "small.bin", why: expect.stringContaining("1.0 MB") },
    ]);
  });

  it("is not said to be made by a call that replaces a large file", async () => {
    const w = await world();
    await w.put("large.bin", new Uint8Array(1024 * 1024 + 1));
    await w.run(() => w.edit(["large.bin"], () => w.put("large.bin", "small")));
    const [line] = await w.recorder.lines();
    expect(line).toMatchObject({ changes: [], leftOut: [{ path: "large.bin" }] });
  });

  it("is complete where what it did is compared with others, however long the first look takes", async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const w = await world({
      maxFirstWaitMs: 0,
      waitsForLooks: true,
      workspace: (own) =>
        new Proxy(own, {
          get(target, key) {
            const value: unknown = Reflect.get(target, key);
            if (typeof value !== "function") return value;
            if (key !== "read") return value.bind(target);
            return async (...args: Parameters<Workspace["read"]>) => {
              await released;
              return target.read(...args);
            };
          },
        }),
    });
    await w.put("tea.txt", "green");
    let hasRun = false;
    const done = w.run(() =>
      w.shell(async () => {
        hasRun = true;
        // Of the same size.
        await writeFile(w.path("tea.txt"), "white");
      }),
    );
    // The command waits for the look, which waits for us.
    await new Promise((resolve) => setImmediate(resolve));
    expect(hasRun).toBe(false);
    release();
    await done;
    const lines = await w.recorder.lines();
    expect(lines.flatMap(({ leftOut }) => leftOut)).toEqual([]);
    expect(lines.flatMap(({ changes }) => changes.map(({ path }) => path))).toEqual(["tea.txt"]);
  });

  it("is listed where it cannot be read", async () => {
    const w = await world({ workspace: (own) => denying(own, "./secret.txt") });
    await w.put("secret.txt", "text");
    await w.run(() => w.shell(() => appendFile(w.path("secret.txt"), "more")));
    const [line] = await w.recorder.lines();
    expect(line?.leftOut).toEqual([{ path: "secret.txt", why: "it cannot be read" }]);
  });

  it("is not taken for new where an ignore file lets it be seen", async () => {
    // The clock moves only when it is read: the look before the edit is still recent enough
    // when the command comes, on a busy machine as well.
    let time = Date.now();
    const w = await world({ now: () => time++ });
    await w.put(".gitignore", "build\n");
    await w.put("build/out.js", "old");
    await w.run(async () => {
      await w.edit([".gitignore"], () => w.put(".gitignore", "\n"));
      await w.shell(() => w.put("build/out.js", "new"));
    });
    const lines = await w.recorder.lines();
    expect(formatChanges(lines)).toEqual(["~ .gitignore"]);
    expect(lines[1]?.leftOut).toMatchObject([{ path: "build/out.js" }]);
  });

  it("is not taken for removed where an ignore file hides it", async () => {
    const w = await world();
    await w.put("build/out.js", "old");
    await w.run(() => w.shell(() => w.put(".gitignore", "build\n")));
    await w.run(() => w.shell(() => w.put("build/out.js", "new")));
    expect(formatChanges(await w.recorder.lines())).toEqual(["+ .gitignore", "~ build/out.js"]);
  });

  it("is what lies beyond the number of files that are looked at", async () => {
    const w = await world({ maxFiles: 2 });
    for (const name of ["a", "b", "c"]) await w.put(name, name);
    await w.run(() =>
      w.shell(async () => {
        await w.put("b", "changed");
        await rm(w.path("a"));
      }),
    );
    const [line] = await w.recorder.lines();
    expect(line && formatChanges([line]).sort()).toEqual(["- a", "~ b"]);
  });

  it("is what lies in a folder outside that a link leads to", async () => {
    const w = await world();
    const outside = join(w.root, "..", "outside");
    await mkdir(outside);
    await writeFile(join(outside, "secret.txt"), "secret");
    await w.run(() =>
      w.shell(async () => {
        await symlink(outside, w.path("out"));
        await writeFile(join(outside, "secret.txt"), "changed");
      }),
    );
    const [line] = await w.recorder.lines();
    expect(line?.changes).toMatchObject([{ path: "out", after: { kind: "link" } }]);
  });

  it("is all of it where the disk is full, and no call fails", async () => {
    const noSpace = new Error("ENOSPC: no space left on device, write");
    const errno = -constants.errno.ENOSPC;
    const full = (): Promise<void> => Promise.reject(Object.assign(noSpace, { errno }));
    const w = await world({ writer: { write: full, append: full } });
    await w.put("a.txt", "old");
    await w.run(() => w.shell(() => w.put("a.txt", "new")));
    const [line] = await w.recorder.lines();
    expect(line?.changes).toEqual([]);
    expect(line?.leftOut).toEqual([
      { path: "a.txt", why: "it could not be kept: ENOSPC: no space left on device" },
    ]);
    expect(w.warnings).toEqual([expect.stringContaining("ENOSPC")]);
  });
});

describe("in a repository of git", () => {
  function git(w: HistoryWorld, ...args: string[]): void {
    const who = ["-c", "user.name=T", "-c", "user.email=t@localhost"];
    execFileSync("git", [...who, ...args], { cwd: w.root, stdio: "ignore" });
  }

  async function committed(w: HistoryWorld): Promise<void> {
    await w.put("a.txt", "committed\n");
    await w.put("forced.log", "committed\n");
    await w.put(".gitignore", "*.log\n");
    git(w, "init", "-q");
    git(w, "add", "-f", ".");
    git(w, "commit", "-q", "-m", "first");
  }

  it("has what was committed, and what is tracked though it is ignored", async () => {
    const w = await world();
    await committed(w);
    await w.run(() =>
      w.shell(async () => {
        await w.put("a.txt", "changed\n");
        await w.put("forced.log", "changed\n");
      }),
    );
    const plan = await w.recorder.plan({ after: null });
    expect(plan.steps.map(({ path, lines }) => [path, lines])).toEqual([
      ["a.txt", { added: 1, removed: 1 }],
      ["forced.log", { added: 1, removed: 1 }],
    ]);
  });

  it("copies nothing that git has", async () => {
    const w = await world();
    await committed(w);
    await w.put("new.txt", "text");
    await w.run(async () => {});
    const [own = ""] = await readdir(join(w.folder, ".copies"));
    expect(await readdir(join(w.folder, ".copies", own))).toHaveLength(1);
  });

  it("copies all where git may convert what it has", async () => {
    const w = await world();
    await w.put(".gitattributes", "*.txt filter=rot13\n");
    await committed(w);
    await w.run(async () => {});
    const [own = ""] = await readdir(join(w.folder, ".copies"));
    expect(await readdir(join(w.folder, ".copies", own))).toHaveLength(4);
  });

  it("takes back what a checkout did", async () => {
    const w = await world();
    await committed(w);
    git(w, "checkout", "-q", "-b", "other");
    await w.put("a.txt", "other\n");
    await rename(w.path("forced.log"), w.path("b.txt"));
    git(w, "add", "-A");
    git(w, "commit", "-q", "-m", "second");
    git(w, "checkout", "-q", "-");
    const before = withoutGit(await w.files());
    const entry = await w.run(() => w.shell(async () => git(w, "checkout", "-q", "other")));
    expect(withoutGit(await w.files())).not.toEqual(before);
    const plan = await w.recorder.plan({ before: entry });
    await w.recorder.apply(plan, { withConflicts: false });
    expect(withoutGit(await w.files())).toEqual(before);
  });

  it.each([
    ["reset --hard", { action: "reset", mode: "hard" }],
    ["clean", { action: "clean" }],
    ["a checkout of paths", { action: "checkout", paths: ["."] }],
  ])("takes back what %s by the git tool did, byte for byte", async (_what, args) => {
    const w = await world();
    await committed(w);
    await w.put("run.sh", "#!/bin/sh\n", 0o755);
    await w.put("gone.txt", "soon gone\n");
    git(w, "add", ".");
    git(w, "commit", "-q", "-m", "second");
    await w.put(".gitattributes", "*.txt text eol=lf\n");
    await w.put("a.txt", "x\r\ny\nz\r\n");
    await w.put("forced.log", "tracked, ignored, changed\n");
    await w.put("staged.txt", "staged\n");
    git(w, "add", "staged.txt");
    await w.put("staged.txt", "staged, then changed\n");
    await w.put("new/deep/file.bin", Uint8Array.from([0, 255, 13, 10, 10]), 0o755);
    await w.put('odd "name"\n\t*', "odd\n");
    await chmod(w.path("run.sh"), 0o644);
    await rm(w.path("gone.txt"));
    await symlink("a.txt", w.path("link"));
    const before = withoutGit(await w.files());
    const entry = await w.run(() => w.use(gitToolIn(w), args));
    expect(withoutGit(await w.files())).not.toEqual(before);
    const plan = await w.recorder.plan({ before: entry });
    await w.recorder.apply(plan, { withConflicts: false });
    expect(withoutGit(await w.files())).toEqual(before);
  });
});

function gitToolIn({ workspace, folder }: HistoryWorld): GuardedTool {
  const outside = dirname(folder);
  return gitTool({
    workspace,
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: outside,
    environment: { PATH: process.env["PATH"] ?? "", HOME: outside },
    clock: systemClock,
  });
}

/** The workspace, with a file that its user may not read. */
function denying(workspace: Workspace, denied: string): Workspace {
  return {
    root: workspace.root,
    folders: workspace.folders,
    readable: workspace.readable,
    addFolder: (path) => workspace.addFolder(path),
    allowReading: (path) => workspace.allowReading(path),
    isHidden: (path) => workspace.isHidden(path),
    resolve: (path, options) => workspace.resolve(path, options),
    stat: (path) => workspace.stat(path),
    open: (path) => workspace.open(path),
    list: (path) => workspace.list(path),
    write: (path, data, options) => workspace.write(path, data, options),
    remove: (path) => workspace.remove(path),
    close: () => workspace.close(),
    read: (path, maxBytes) =>
      path === denied
        ? Promise.reject(new PathError("denied", path, "The system does not allow this."))
        : workspace.read(path, maxBytes),
  };
}

function withoutGit(files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).filter(([path]) => !path.startsWith(".git/")));
}
