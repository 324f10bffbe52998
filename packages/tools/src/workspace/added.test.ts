import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findStart } from "./added.ts";
import { rulesAbove } from "./ignore-files.ts";
import { walk, walkFolders } from "./walk.ts";
import { FolderError, openWorkspace, type Workspace } from "./workspace.ts";

let base: string;
let workspace: Workspace;

const at = (path: string): string => join(base, path);

beforeEach(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-added-")));
  for (const name of ["home/.ssh", "home/app/src", "lib/src", "far/lib"]) {
    mkdirSync(at(name), { recursive: true });
  }
  writeFileSync(at("home/app/a"), "own");
  writeFileSync(at("lib/a"), "added");
  workspace = await openWorkspace(at("home/app"), { home: at("home"), environment: {} });
});

afterEach(async () => {
  await workspace.close();
  rmSync(base, { recursive: true });
});

describe("a folder that was added", () => {
  it("is read and changed by paths from the workspace and by absolute ones", async () => {
    expect(workspace.addFolder(at("lib"))).toBe(at("lib"));
    expect(workspace.folders).toEqual([at("lib")]);
    for (const path of ["../../lib/a", at("lib/a"), "src/../../../lib/a"]) {
      expect(Buffer.from((await workspace.read(path)).bytes).toString(), path).toBe("added");
      expect(await workspace.resolve(path), path).toEqual({
        path: "../../lib/a",
        absolute: at("lib/a"),
        exists: true,
        readOnly: false,
      });
    }
    const { path } = await workspace.write(at("lib/new/b"), "b");
    expect(path).toBe("../../lib/new/b");
    expect((await workspace.list("../../lib")).map(({ name }) => name)).toEqual([
      "a",
      "new",
      "src",
    ]);
    await workspace.remove(path);
    expect((await workspace.resolve(path)).exists).toBe(false);
  });

  it("leaves all else outside, by `..` and by links as well", async () => {
    symlinkSync(at("far"), at("lib/out"));
    symlinkSync(at("lib/a"), at("home/app/in"));
    workspace.addFolder("../../lib");
    expect((await workspace.resolve("in")).path).toBe("../../lib/a");
    for (const path of [
      "../../far",
      "../../lib/..",
      "../../lib/../far/lib",
      "../../lib/out",
      "..",
    ]) {
      await expect(workspace.resolve(path), path).rejects.toThrow("leads out of the workspace");
    }
  });

  it("has the protected places of a workspace, and keys of the user stay hidden", async () => {
    mkdirSync(at("lib/.git/hooks"), { recursive: true });
    mkdirSync(at("lib/.vscode"));
    workspace.addFolder(at("lib"));
    for (const path of [
      ".git/hooks/pre-commit",
      ".git/config",
      ".vscode/tasks.json",
      ".mcp.json",
    ]) {
      await expect(workspace.write(at(`lib/${path}`), "x"), path).rejects.toThrow("read-only");
    }
    const keys = await openWorkspace(at("far"), {
      home: at("lib"),
      environment: {},
      hidden: [at("home/app/src")],
      folders: [at("home/app")],
    });
    await expect(keys.list(at("home/app/src"))).rejects.toThrow("is not for tools");
    expect(keys.isHidden("../home/app/src")).toBe(true);
    expect(keys.isHidden("../home/app")).toBe(false);
    await keys.close();
  });

  it("may be named by a link, which is followed once", async () => {
    symlinkSync(at("lib"), at("link"));
    expect(workspace.addFolder(at("link"))).toBe(at("lib"));
    rmSync(at("link"));
    symlinkSync(at("far"), at("link"));
    expect((await workspace.resolve(at("link/a"))).absolute).toBe(at("lib/a"));
    expect((await workspace.resolve(at("lib/a"))).path).toBe("../../lib/a");
  });

  it("is no other one where it is in the workspace or in one that was added", () => {
    workspace.addFolder(at("lib"));
    for (const path of [".", "src", at("home/app/src"), at("lib"), at("lib/src")]) {
      expect(workspace.addFolder(path), path).toBeUndefined();
    }
    expect(workspace.folders).toEqual([at("lib")]);
  });

  it("takes the place of those that are in it", async () => {
    workspace.addFolder(at("far/lib"));
    workspace.addFolder(at("far"));
    expect(workspace.folders).toEqual([at("far")]);
    writeFileSync(at("far/lib/x"), "x");
    expect((await workspace.resolve(at("far/lib/x"))).path).toBe("../../far/lib/x");
  });

  it.each([
    ["lib/none", "there is no such folder."],
    ["lib/a", "it is not a folder."],
    ["home/app/none", "there is no such folder."],
    ["home/app/a", "it is not a folder."],
    ["/", "it is all of this machine."],
    ["home", "your home folder is in it"],
    [".", "your home folder is in it"],
    ["home/.ssh", "keys, tokens and sessions are kept there."],
  ])("is refused: %s", (path, why) => {
    const given = path === "/" ? path : at(path);
    expect(() => workspace.addFolder(given)).toThrow(FolderError);
    expect(() => workspace.addFolder(given)).toThrow(
      `${given.replace(/\/\.$/, "")} cannot be added: ${why}`,
    );
    expect(workspace.folders).toEqual([]);
  });

  it("is refused where the workspace is in it", async () => {
    const inner = await openWorkspace(at("far/lib"), { home: at("home"), environment: {} });
    expect(() => inner.addFolder(at("far"))).toThrow(`Start in ${at("far")} to work in all of it.`);
    await inner.close();
    const wrong = openWorkspace(at("far/lib"), { home: at("home"), folders: [at("none")] });
    await expect(wrong).rejects.toThrow("there is no such folder");
  });

  it("has ignore files of its own, and is part of a walk through all folders", async () => {
    writeFileSync(at("home/app/.gitignore"), "lib\n");
    writeFileSync(at("lib/.gitignore"), "src\n");
    workspace.addFolder(at("lib"));
    const { signal } = new AbortController();
    const folders: string[] = [];
    for await (const batch of walkFolders(workspace, { signal })) {
      folders.push(...batch.map(({ path }) => path));
    }
    expect(folders).toEqual(["", "src", "../../lib"]);
    const files: string[] = [];
    for await (const batch of walk(workspace, "../../lib", { signal })) {
      files.push(...batch.map(({ path }) => path));
    }
    expect(files).toEqual(["../../lib/.gitignore", "../../lib/a"]);
    expect(findStart(workspace, "../../lib/src")).toBe("../../lib");
    expect(await rulesAbove(workspace, "../../lib")).toEqual([]);
  });
});
