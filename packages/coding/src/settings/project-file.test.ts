import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { findProjectFile, readProjectFile } from "./project-file.ts";
import { removeWorlds, settingsWorld } from "../testing/settings-world.ts";

afterEach(removeWorlds);

describe("the project's file", () => {
  it("is found from below, and the nearest counts", () => {
    const { home, project, projectFile, write } = settingsWorld({ project: {} });
    const inner = join(project, "packages", "inner");
    mkdirSync(join(inner, "src"), { recursive: true });
    expect(findProjectFile(join(inner, "src"), home)).toEqual({
      folder: project,
      path: projectFile,
    });
    write(join(inner, ".gyre", "config.json"), {});
    expect(findProjectFile(join(inner, "src"), home)?.folder).toBe(inner);
  });

  it("is not looked for above the root of the repository, which may be a worktree", () => {
    const { home, project, write } = settingsWorld();
    write(join(home, "work", ".gyre", "config.json"), {});
    expect(findProjectFile(project, home)).toBeUndefined();
    rmSync(join(project, ".git"), { recursive: true });
    expect(findProjectFile(project, home)?.folder).toBe(join(home, "work"));
    write(join(project, ".git"), "gitdir: elsewhere\n");
    expect(findProjectFile(project, home)).toBeUndefined();
  });

  it("is never in the home folder, even if that is a repository", () => {
    const { home, project, write } = settingsWorld();
    rmSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(home, ".git"));
    write(join(home, ".gyre", "config.json"), {});
    expect(findProjectFile(project, home)).toBeUndefined();
    expect(findProjectFile(home, home)).toBeUndefined();
  });

  it("outside of home and repositories it is in the folder itself or nowhere", () => {
    const { home, project, projectFile } = settingsWorld({ project: {} });
    rmSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(project, "src"));
    const elsewhere = join(home, "no-home");
    expect(findProjectFile(project, elsewhere)?.path).toBe(projectFile);
    expect(findProjectFile(join(project, "src"), elsewhere)).toBeUndefined();
  });

  it("is named by the real path of its folder", () => {
    const { home, project } = settingsWorld({ project: {} });
    symlinkSync(project, join(home, "link"));
    expect(findProjectFile(join(home, "link"), home)?.folder).toBe(project);
  });
});

describe("a project's file is not read", () => {
  function reading(prepare: (world: ReturnType<typeof settingsWorld>) => void): unknown {
    const world = settingsWorld({ project: { model: "theirs" } });
    prepare(world);
    const found = findProjectFile(world.project, world.home);
    if (!found) throw new Error("It is there.");
    return readProjectFile(found, world.project);
  }

  it("if it is a link out of the project, as file or as folder", () => {
    const file = reading(({ home, projectFile, write }) => {
      write(join(home, "outside.json"), {});
      rmSync(projectFile);
      symlinkSync(join(home, "outside.json"), projectFile);
    });
    expect(file).toEqual({ problem: "is a link that leads out of the project" });
    const folder = reading(({ home, project }) => {
      renameSync(join(project, ".gyre"), join(home, "outside"));
      symlinkSync(join(home, "outside"), join(project, ".gyre"));
    });
    expect(folder).toEqual({ problem: "is a link that leads out of the project" });
  });

  it("if it leads nowhere", () => {
    const read = reading(({ projectFile }) => {
      rmSync(projectFile);
      symlinkSync("missing.json", projectFile);
    });
    expect(read).toEqual({ problem: "is a link that leads nowhere" });
  });

  it.skipIf(process.platform === "win32")("if it is a pipe, without waiting for it", () => {
    const read = reading(({ projectFile }) => {
      rmSync(projectFile);
      execFileSync("mkfifo", [projectFile]);
    });
    expect(read).toEqual({ problem: "is not a file" });
  });

  // Only root can give files away.
  it.runIf(process.getuid?.() === 0)("if it is above and of another owner", () => {
    const [mine, others] = [12_345, 54_321];
    const { home, project, projectFile } = settingsWorld({ project: {} });
    const inner = join(project, "inner");
    mkdirSync(inner);
    chownSync(inner, mine, mine);
    const found = findProjectFile(inner, home);
    if (!found) throw new Error("It is there.");
    const read = (owner: number): unknown => {
      chownSync(projectFile, owner, owner);
      return readProjectFile(found, inner);
    };
    expect(read(others)).toEqual({ problem: `has another owner than ${inner}` });
    expect([read(mine), read(0)]).toEqual([
      { content: Buffer.from("{}") },
      { content: Buffer.from("{}") },
    ]);
  });

  it("if it is large", () => {
    const read = reading(({ projectFile, write }) => write(projectFile, " ".repeat(1_048_577)));
    expect(read).toEqual({ problem: "has more than 1048576 bytes" });
  });

  it("but a link inside of the project is followed", () => {
    const read = reading(({ project, projectFile }) => {
      renameSync(projectFile, join(project, "shared.json"));
      symlinkSync("../shared.json", projectFile);
    });
    expect(read).toEqual({ content: Buffer.from('{"model":"theirs"}') });
  });
});
