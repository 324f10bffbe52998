import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createSandbox } from "../sandbox/sandbox.ts";
import {
  type LayerRun,
  type LayerWorld,
  openLayerWorld,
  openLayerWorldIn,
} from "../testing/layer-world.ts";
import { toBytes } from "./byte-path.ts";
import { listKept, openLayers, undoKept } from "./layers.ts";

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function open(fill: (root: string) => void = () => {}, name = "ws"): Promise<LayerWorld> {
  const world = await openLayerWorld(name, fill);
  cleanUps.push(() => world.remove());
  return world;
}

/** Keeps all that a command did; then undoes it, which must bring back what was. */
async function keepAndUndo(
  world: LayerWorld,
  command: string,
  look: (run: LayerRun) => void = () => {},
): Promise<LayerRun> {
  const before = world.hash();
  const run = await world.run(command);
  expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: "" });
  expect(world.hash()).toBe(before);
  await run.layer.keep(run.effects, command);
  look(run);
  const [kept] = await listKept(world.home);
  if (!kept) throw new Error("Nothing was kept.");
  await undoKept(world.home, kept);
  expect(world.hash()).toBe(before);
  return run;
}

function listBytes(folder: string): string[] {
  return readdirSync(folder, { encoding: "buffer" })
    .map((name) => name.toString("latin1"))
    .toSorted();
}

/** The number of the system call setxattr, for perl. */
const SETXATTR = process.arch === "arm64" ? 5 : 188;
const setAttribute = (path: string, name: string, value: string): string =>
  `perl -e 'my ($p, $n, $v) = ("${path}", "${name}", "${value}"); syscall(${SETXATTR}, $p, $n, $v, length($v), 0) == 0 or die $!'`;

describe("names", { tags: ["bubblewrap"] }, () => {
  const NAMES = ["a\nb", "\xff\xfe", "-dash", "x".repeat(255), "\x1b[31mred", "'\"$(touch p)", " "];

  it("of any bytes are created, changed and deleted, and come back", async () => {
    const quoted = NAMES.map(
      (name) =>
        `$'${[...toBytes(name)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`,
    );
    const world = await open((root) => {
      mkdirSync(join(root, "old"));
      for (const name of NAMES) {
        writeFileSync(Buffer.concat([Buffer.from(`${root}/old/`), toBytes(name)]), "old");
      }
    });
    const [first = "", ...rest] = quoted;
    const command =
      `mkdir new; for n in ${quoted.join(" ")}; do echo new > new/"$n"; done; ` +
      `echo more >> old/${first}; for n in ${rest.join(" ")}; do rm -- old/"$n"; done`;
    const run = await keepAndUndo(world, command, () => {
      expect(listBytes(join(world.root, "new"))).toEqual(NAMES.toSorted());
      expect(listBytes(join(world.root, "old"))).toEqual([NAMES[0]]);
    });
    const found = run.effects.map(({ kind, path }) => `${kind} ${path}`);
    const expected = [
      "create new",
      ...NAMES.map((name) => `create new/${name}`),
      `modify old/${NAMES[0]}`,
      ...NAMES.slice(1).map((name) => `delete old/${name}`),
    ];
    expect(found.toSorted()).toEqual(expected.toSorted());
  });
});

describe("rights", { tags: ["bubblewrap"] }, () => {
  it("of a folder that is closed to all hide nothing that is in it", async () => {
    const world = await open();
    const command = "mkdir -p closed/in; echo x > closed/in/x; chmod 000 closed/in closed";
    const run = await keepAndUndo(world, command, () => {
      expect(statSync(join(world.root, "closed")).mode & 0o777).toBe(0);
      chmodSync(join(world.root, "closed"), 0o700);
      chmodSync(join(world.root, "closed/in"), 0o700);
      expect(readFileSync(join(world.root, "closed/in/x"), "utf8")).toBe("x\n");
    });
    expect(run.shown).toEqual(["create closed", "create closed/in", "create closed/in/x"]);
    await run.layer.remove();
    expect(existsSync(run.layer.folder)).toBe(false);
  });

  it("to run as another user are not kept", async () => {
    const world = await open();
    const run = await keepAndUndo(world, "cp /bin/true s; chmod 6755 s", () => {
      expect(statSync(join(world.root, "s")).mode & 0o7777).toBe(0o755);
    });
    expect(run.effects[0]?.mode).toBe(0o6755);
  });
});

describe("links", { tags: ["bubblewrap"] }, () => {
  it("to outside are kept as links, and nothing is written through them", async () => {
    const world = await open((root) => symlinkSync("../outside", join(root, "way")));
    const outside = join(world.folder, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "file"), "mine\n");
    const run = await world.run("echo x > way/file; echo x > way/new; ln -s ../outside other");
    expect(run.shown).toEqual(["create other"]);
    await run.layer.keep(run.effects, "");
    expect(readdirSync(outside)).toEqual(["file"]);
    expect(readFileSync(join(outside, "file"), "utf8")).toBe("mine\n");
    expect(lstatSync(join(world.root, "other")).isSymbolicLink()).toBe(true);
  });

  it("in the place of a folder, put there before it is kept, lead nothing out", async () => {
    const world = await open((root) => {
      mkdirSync(join(root, "in/deep"), { recursive: true });
      writeFileSync(join(root, "in/deep/old"), "old\n");
    });
    const outside = join(world.folder, "outside");
    mkdirSync(join(outside, "deep"), { recursive: true });
    writeFileSync(join(outside, "deep/old"), "mine\n");
    const run = await world.run("echo x > in/deep/new; echo y > in/deep/old");
    renameSync(join(world.root, "in"), join(world.folder, "aside"));
    symlinkSync(outside, join(world.root, "in"));
    await expect(run.layer.keep(run.effects, "")).rejects.toThrow(/^Nothing was kept: /);
    expect(readdirSync(join(outside, "deep"))).toEqual(["old"]);
    expect(readFileSync(join(outside, "deep/old"), "utf8")).toBe("mine\n");
  });
});

describe("what overlayfs notes on files", { tags: ["bubblewrap"] }, () => {
  it("can be neither forged by a command, nor does it come along", async () => {
    const world = await open((root) => {
      mkdirSync(join(root, "d"));
      writeFileSync(join(root, "d/keep"), "keep\n");
    });
    const command = `echo x > d/x; ${setAttribute("d", "user.overlay.opaque", "y")} || true; ls d`;
    const run = await world.run(command);
    expect(run.shown).toEqual(["create d/x"]);
    await run.layer.keep(run.effects, command);
    expect(readdirSync(join(world.root, "d")).toSorted()).toEqual(["keep", "x"]);
  });

  it("and was in the workspace before does not count as a deletion", async () => {
    const world = await open((root) => {
      mkdirSync(join(root, "d"));
      writeFileSync(join(root, "d/keep"), "keep\n");
      execFileSync("/bin/sh", ["-c", setAttribute(join(root, "d"), "user.overlay.opaque", "y")]);
    });
    const run = await world.run("echo x > d/x; ls d");
    expect(run.stdout).toBe("keep\nx\n");
    expect(run.shown).toEqual(["create d/x"]);
  });
});

describe("what a command leaves running", { tags: ["bubblewrap"] }, () => {
  it("has ended with it, and writes nothing later", async () => {
    const world = await open();
    const run = await world.run("(sleep 30; echo late > late) & setsid sleep 30 & echo now > now");
    expect(run.shown).toEqual(["create now"]);
  });
});

describe("what the user changes", { tags: ["bubblewrap"] }, () => {
  const fill = (root: string): void => {
    for (const name of ["a", "b"]) writeFileSync(join(root, name), `${name}\n`);
    mkdirSync(join(root, "d"));
    writeFileSync(join(root, "d/in"), "in\n");
  };

  it.each<[string, string, (root: string) => void, string]>([
    [
      "a file, after",
      "echo x > a",
      (root) => writeFileSync(join(root, "a"), "user\n"),
      '"a" was changed meanwhile',
    ],
    [
      "a file, with the time of change that it had",
      "echo x > a",
      (root) => {
        const { atime, mtime } = statSync(join(root, "a"));
        writeFileSync(join(root, "a"), "A\n");
        utimesSync(join(root, "a"), atime, mtime);
      },
      '"a" was changed meanwhile',
    ],
    ["a file away", "echo x > a", (root) => rmSync(join(root, "a")), '"a" was deleted meanwhile'],
    [
      "a file of the same name into being",
      "echo x > new",
      (root) => writeFileSync(join(root, "new"), "user\n"),
      '"new" was made meanwhile',
    ],
    [
      "something in a folder that was deleted",
      "rm -r d",
      (root) => writeFileSync(join(root, "d/in"), "user\n"),
      '"d" has something in it that was changed meanwhile',
    ],
    [
      "something new into a folder that was deleted",
      "rm -r d",
      (root) => writeFileSync(join(root, "d/more"), "user\n"),
      '"d" was changed meanwhile',
    ],
    [
      "a file into a folder",
      "echo x > a",
      (root) => {
        rmSync(join(root, "a"));
        mkdirSync(join(root, "a"));
      },
      '"a" is something else now',
    ],
  ])("%s is not lost", async (_, command, edit, why) => {
    const world = await open(fill);
    const run = await world.run(command);
    edit(world.root);
    const before = world.hash();
    await expect(run.layer.keep(run.effects, command)).rejects.toThrow(`Nothing was kept: ${why}`);
    expect(world.hash()).toBe(before);
  });

  it("while the command runs is a conflict, too", async () => {
    const world = await open(fill);
    const running = world.run(": > begun; until grep -q user b; do sleep 0.02; done; echo x > b");
    const layers = world.home.folder;
    await expect
      .poll(() => readdirSync(layers).some((name) => existsSync(join(layers, name, "up/begun"))))
      .toBe(true);
    writeFileSync(join(world.root, "b"), "user\n");
    const run = await running;
    await expect(run.layer.keep(run.effects, "")).rejects.toThrow('"b" was changed meanwhile');
    expect(readFileSync(join(world.root, "b"), "utf8")).toBe("user\n");
  });

  it("elsewhere is none of it: the effects are kept", async () => {
    const world = await open(fill);
    const run = await world.run("echo x > a");
    writeFileSync(join(world.root, "b"), "user\n");
    await run.layer.keep(run.effects, "");
    expect(readFileSync(join(world.root, "a"), "utf8")).toBe("x\n");
    expect(readFileSync(join(world.root, "b"), "utf8")).toBe("user\n");
  });
});

describe("a file that a program has open", { tags: ["bubblewrap"] }, () => {
  async function hold(path: string, how: string): Promise<ChildProcess> {
    const child = spawn("bash", ["-c", `exec 7${how}"$0"; echo open; read`, path], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    cleanUps.push(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    return child;
  }

  it("to write, a database say, is not replaced", async () => {
    const world = await open((root) => writeFileSync(join(root, "data.db"), "rows\n"));
    const run = await world.run("echo more >> data.db");
    const child = await hold(join(world.root, "data.db"), "<>");
    await expect(run.layer.keep(run.effects, "")).rejects.toThrow(
      `Nothing was kept: "data.db" is open in bash (${child.pid}).`,
    );
    child.kill("SIGKILL");
    await once(child, "exit");
    await run.layer.keep(run.effects, "");
    expect(readFileSync(join(world.root, "data.db"), "utf8")).toBe("rows\nmore\n");
  });

  it("in a folder that was deleted keeps the folder", async () => {
    const world = await open((root) => {
      mkdirSync(join(root, "d"));
      writeFileSync(join(root, "d/data.db"), "rows\n");
    });
    await hold(join(world.root, "d/data.db"), ">>");
    const run = await world.run("rm -r d");
    await expect(run.layer.keep(run.effects, "")).rejects.toThrow("is open in bash");
    expect(readFileSync(join(world.root, "d/data.db"), "utf8")).toBe("rows\n");
  });
});

describe("a workspace", { tags: ["bubblewrap"] }, () => {
  it("may have a name with all that overlayfs reads as its own", async () => {
    const world = await open((root) => writeFileSync(join(root, "a"), "a\n"), "w s,x:y\\z'\"$HOME");
    const run = await keepAndUndo(world, "echo b >> a; echo n > n; pwd");
    expect(run.stdout).toBe(`${world.root}\n`);
    expect(run.shown).toEqual(["create n", "modify a"]);
  });

  it("that is the home folder has its layers beside it, never inside", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-home-")));
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
    const root = join(folder, "home");
    const stateFolder = join(root, ".local/state/gyre/tools");
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    const sandbox = await createSandbox({ kind: "bubblewrap" });
    const home = await openLayers({ root, stateFolder, sandbox });
    expect(home).toMatchObject({ folder: expect.stringContaining(join(folder, ".gyre-layers")) });
  });

  it("shows a command none of the handles that this process inherited, and not its own layer", async () => {
    const world = await open((root) => writeFileSync(join(root, "a"), ""));
    const handle = openSync(world.folder, "r");
    cleanUps.push(() => closeSync(handle));
    const { stdout } = await world.run(
      `ls -l /proc/self/fd | grep -c gyre; ls ${world.home.folder} 2>/dev/null | wc -l`,
    );
    // The workspace itself is what it runs in, not what it has open.
    expect(stdout).toBe("0\n0\n");
  });
});

/** Other owners and mounts are for root to make; the tests of CI run as root. */
describe.runIf(process.getuid?.() === 0)("as root", { tags: ["bubblewrap"] }, () => {
  function mountSmall(size: string): string {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-small-")));
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]);
    cleanUps.push(() => {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    });
    return folder;
  }

  it("files of another user cannot be changed in a layer, and the command gets to know", async () => {
    const world = await open((root) => {
      writeFileSync(join(root, "theirs"), "theirs\n");
      execFileSync("chown", ["4321:4321", join(root, "theirs")]);
    });
    const run = await world.run("echo x >> theirs");
    expect(run.code).not.toBe(0);
    expect(run.stderr).toMatch(/Value too large|Permission denied/);
    expect(run.shown).toEqual([]);
  });

  it("a mount inside of the workspace makes a layer impossible", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-nested-")));
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }));
    const root = join(folder, "ws");
    mkdirSync(join(root, "in"), { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(root, "in")]);
    cleanUps.push(() => execFileSync("umount", ["-l", join(root, "in")]));
    const sandbox = await createSandbox({ kind: "bubblewrap" });
    const stateFolder = join(folder, "state");
    expect(await openLayers({ root, stateFolder, sandbox })).toEqual({
      why: `Something is mounted in the workspace, at "${join(root, "in")}".`,
    });
  });

  it("a disk that is full fails the command, or undoes what was kept so far", async () => {
    const folder = mountSmall("6m");
    mkdirSync(join(folder, "ws"));
    writeFileSync(join(folder, "ws/a"), "a\n");
    writeFileSync(join(folder, "ws/gone"), "gone\n");
    const world = await openLayerWorldIn(folder);
    const before = world.hash();
    const full = await world.run("head -c 9000000 /dev/zero > big");
    expect(full.stderr).toContain("No space left on device");
    await full.layer.remove();
    const run = await world.run(
      "rm gone; echo b > a; echo first > 1; head -c 3500000 /dev/zero > big",
    );
    expect(run.code).toBe(0);
    await expect(run.layer.keep(run.effects, "")).rejects.toThrow("ENOSPC");
    expect(world.hash()).toBe(before);
    await run.layer.remove();
    expect(existsSync(run.layer.folder)).toBe(false);
  });
});
