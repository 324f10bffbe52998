import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type LayerWorld, openLayerWorld } from "../testing/layer-world.ts";
import { listKept, undoKept } from "./layers.ts";

let world: LayerWorld | undefined;

afterEach(async () => {
  await world?.remove();
  world = undefined;
});

async function open(fill: (root: string) => void = () => {}, name = "ws"): Promise<LayerWorld> {
  world = await openLayerWorld(name, fill);
  return world;
}

/** Keeps all that a command did, and gives the tree; then undoes it, which must bring back what was. */
async function keepAndUndo(
  given: LayerWorld,
  command: string,
  look: () => void = () => {},
): Promise<string[]> {
  const before = given.hash();
  const { layer, effects, shown, code, stderr } = await given.run(command);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(given.hash()).toBe(before);
  await layer.keep(effects, command);
  look();
  const [kept] = await listKept(given.home);
  expect(kept?.title).toBe(command);
  if (kept) await undoKept(given.home, kept);
  expect(given.hash()).toBe(before);
  return shown;
}

function makeFiles(folder: string, count: number): void {
  mkdirSync(folder, { recursive: true });
  for (let index = 0; index < count; index++)
    writeFileSync(join(folder, `f${index}`), `${index}\n`);
}

describe("what a command does in a layer", { tags: ["bubblewrap"] }, () => {
  it("is not in the workspace until it is kept, and discarded without a trace", async () => {
    const { root, run, hash } = await open((at) => writeFileSync(join(at, "a"), "one\n"));
    const before = hash();
    const { layer, shown, stdout } = await run("echo two >> a; echo new > b; cat a b");
    expect(stdout).toBe("one\ntwo\nnew\n");
    expect(shown).toEqual(["create b", "modify a"]);
    await layer.remove();
    expect(hash()).toBe(before);
    expect(existsSync(layer.folder)).toBe(false);
    expect(existsSync(join(root, "b"))).toBe(false);
  });

  it("is what a touch made, and nothing for a touch of what is there", async () => {
    const given = await open((root) => writeFileSync(join(root, "old"), ""));
    const shown = await keepAndUndo(given, "touch new old", () => {
      expect(readFileSync(join(given.root, "new"), "utf8")).toBe("");
    });
    expect(shown).toEqual(["create new"]);
  });

  it("is a build of 500 files", async () => {
    const given = await open((root) => makeFiles(join(root, "src"), 50));
    const command =
      "mkdir -p out/deep; for i in $(seq 499); do echo $i > out/deep/$i.js; done; echo x >> src/f0";
    const shown = await keepAndUndo(given, command, () => {
      expect(readFileSync(join(given.root, "out/deep/499.js"), "utf8")).toBe("499\n");
    });
    expect(shown).toHaveLength(502);
  });

  it("is the removal of 5,000 files as one folder, which comes back exactly", async () => {
    const given = await open((root) => {
      makeFiles(join(root, "big"), 5_000);
      makeFiles(join(root, "small"), 2);
      chmodSync(join(root, "big", "f7"), 0o751);
    });
    const { effects, layer } = await given.run("rm -rf big");
    expect(effects).toMatchObject([{ kind: "delete", type: "folder", path: "big", below: 5_000 }]);
    await layer.remove();
    await keepAndUndo(given, "rm -rf big", () => {
      expect(existsSync(join(given.root, "big"))).toBe(false);
    });
  });

  it("is a commit, a branch and a gc, which git finds sound when they are kept", async () => {
    const git = (root: string, ...args: string[]): string =>
      execFileSync("git", ["--no-optional-locks", ...args], {
        cwd: root,
        encoding: "utf8",
        stdio: "pipe",
      });
    const given = await open((root) => {
      git(root, "init", "-q", "-b", "main");
      git(root, "config", "user.email", "a@example.com");
      git(root, "config", "user.name", "A");
      writeFileSync(join(root, "a"), "one\n");
      git(root, "add", ".");
      git(root, "commit", "-qm", "first");
    });
    const command =
      "echo two >> a && git commit -qam second && git checkout -q -b side && git gc -q";
    const { layer, effects, code } = await given.run(command);
    expect(code).toBe(0);
    await layer.keep(effects, command);
    git(given.root, "fsck", "--strict");
    expect(git(given.root, "status", "--porcelain", "--branch")).toBe("## side\n");
    expect(git(given.root, "log", "--format=%s")).toBe("second\nfirst\n");
    const [kept] = await listKept(given.home);
    if (kept) await undoKept(given.home, kept);
    git(given.root, "fsck", "--strict");
    expect(git(given.root, "log", "--format=%s")).toBe("first\n");
  });

  it("is a folder with another name", async () => {
    const given = await open((root) => makeFiles(join(root, "old/deep"), 3));
    const shown = await keepAndUndo(given, "mv old new", () => {
      expect(readFileSync(join(given.root, "new/deep/f2"), "utf8")).toBe("2\n");
      expect(existsSync(join(given.root, "old"))).toBe(false);
    });
    expect(shown).toEqual([
      ...["create new", "create new/deep"],
      ...[0, 1, 2].map((name) => `create new/deep/f${name}`),
      "delete old",
    ]);
  });

  it("is a file in the place of a folder, a folder in that of a link, a link in that of a file", async () => {
    const given = await open((root) => {
      makeFiles(join(root, "folder"), 2);
      writeFileSync(join(root, "file"), "file\n");
      symlinkSync("folder", join(root, "link"));
    });
    const command =
      "rm -r folder link file; echo x > folder; mkdir link; echo y > link/y; ln -s folder file";
    const shown = await keepAndUndo(given, command, () => {
      expect(readFileSync(join(given.root, "folder"), "utf8")).toBe("x\n");
      expect(readFileSync(join(given.root, "link/y"), "utf8")).toBe("y\n");
      expect(readlinkSync(join(given.root, "file"))).toBe("folder");
    });
    expect(shown).toEqual(["create link/y", "replace file", "replace folder", "replace link"]);
  });

  it("is a folder that was deleted and made again", async () => {
    const given = await open((root) => makeFiles(join(root, "folder"), 3));
    const shown = await keepAndUndo(
      given,
      "rm -r folder; mkdir folder; echo 1 > folder/f1; echo n > folder/n",
      () => {
        expect(existsSync(join(given.root, "folder/f0"))).toBe(false);
        expect(readFileSync(join(given.root, "folder/n"), "utf8")).toBe("n\n");
      },
    );
    expect(shown).toEqual(["create folder/n", "delete folder/f0", "delete folder/f2"]);
  });

  it("is a change of rights alone, of a file, a folder and the workspace itself", async () => {
    const given = await open((root) => {
      writeFileSync(join(root, "a"), "", { mode: 0o644 });
      mkdirSync(join(root, "d"), { mode: 0o755 });
    });
    const shown = await keepAndUndo(given, "chmod 755 a; chmod 700 d; chmod 711 .", () => {
      expect(statSync(join(given.root, "a")).mode & 0o777).toBe(0o755);
      expect(statSync(join(given.root, "d")).mode & 0o777).toBe(0o700);
      expect(statSync(given.root).mode & 0o777).toBe(0o711);
    });
    expect(shown).toEqual(["mode ", "mode a", "mode d"]);
  });

  it("is kept once: of two layers that change the same file, the second is refused", async () => {
    const { root, run, hash } = await open((at) => writeFileSync(join(at, "a"), "0\n"));
    const first = await run("echo 1 > a");
    const second = await run("echo 2 > a; echo other > b");
    await first.layer.keep(first.effects, "first");
    const before = hash();
    await expect(second.layer.keep(second.effects, "second")).rejects.toThrow(
      'Nothing was kept: "a" was changed meanwhile; "b" is in a folder whose names changed meanwhile.',
    );
    expect(hash()).toBe(before);
    expect(readFileSync(join(root, "a"), "utf8")).toBe("1\n");
  });

  it("is undone only if what was kept is as it was left", async () => {
    const { root, run, home } = await open((at) => writeFileSync(join(at, "a"), "0\n"));
    const { layer, effects } = await run("echo 1 > a; echo new > b");
    await layer.keep(effects, "it");
    writeFileSync(join(root, "b"), "edited\n");
    const [kept] = await listKept(home);
    if (!kept) throw new Error("nothing was kept");
    await expect(undoKept(home, kept)).rejects.toThrow(
      'Nothing was undone: "b" was changed since.',
    );
    expect(readFileSync(join(root, "a"), "utf8")).toBe("1\n");
    expect(lstatSync(join(root, "b")).isFile()).toBe(true);
    rmSync(join(root, "b"));
  });
});
