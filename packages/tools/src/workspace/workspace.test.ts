import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { protection } from "./protected.ts";
import { FolderWorkspace } from "./files.ts";
import { type FolderSpot, ReplacedError } from "./folder.ts";
import { holdByDescriptor } from "./linux.ts";
import { holdByIdentity } from "./portable.ts";
import { type Base, isPlainOnWindows } from "./resolve.ts";
import { openWorkspace, PathError, type Workspace, type WorkspaceOptions } from "./workspace.ts";

const SECRET = "outside and secret";
const isRoot = process.getuid?.() === 0;
const holds: NonNullable<WorkspaceOptions["hold"]>[] =
  process.platform === "linux" ? ["descriptor", "identity"] : ["identity"];

let base: string;
let root: string;

/** A workspace on an opened folder, to which none are added. */
function alone(base: Pick<Base, "root" | "isProtected">): FolderWorkspace {
  const rootNames = [root.split("/").filter(Boolean)] as const;
  const none = (): never => {
    throw new Error("There are no others.");
  };
  return new FolderWorkspace(
    root,
    { bases: [{ ...base, rootNames }], isWindows: false },
    { folder: none, outside: none, isSecret: none },
  );
}

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-workspace-")));
  root = join(base, "ws");
  mkdirSync(root);
  mkdirSync(join(base, "outside"));
  mkdirSync(join(base, "ws-evil"));
  writeFileSync(join(base, "outside", "secret"), SECRET);
  writeFileSync(join(base, "ws-evil", "secret"), SECRET);
});

afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

function put(path: string, content: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), content);
}

/** The process's open descriptors of what is below a folder; other tests of the process have others. */
function listOpenBelow(folder: string): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target === folder || target.startsWith(`${folder}/`) ? [target] : [];
    } catch {
      // Closed meanwhile, as the one that listed them is.
      return [];
    }
  });
}

async function catchFault(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof PathError) return error.fault;
    throw error;
  }
  return "none";
}

async function catchMessage(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Error) return error.message;
    throw error;
  }
  return "";
}

describe.each(holds)("a workspace held by %s", (hold) => {
  let workspace: Workspace;
  const text = async (path: string): Promise<string> =>
    Buffer.from((await workspace.read(path)).bytes).toString();

  beforeEach(async () => {
    workspace = await openWorkspace(root, { hold });
  });
  afterEach(() => workspace.close());

  describe("paths", () => {
    it("takes dots, doubled slashes and absolute paths that stay inside", async () => {
      put("a/b.txt", "here");
      for (const path of [
        "a/b.txt",
        "./a//b.txt",
        "a/./../a/b.txt",
        "a/../a/b.txt",
        join(root, "a/b.txt"),
        `${root}//a/./b.txt`,
      ])
        expect(await text(path)).toBe("here");
      expect(await workspace.resolve(".")).toMatchObject({ path: "", absolute: root });
      expect(await workspace.resolve(`${root}/`)).toMatchObject({ path: "", exists: true });
    });

    it("refuses what leads out, even if it would come back", async () => {
      mkdirSync(join(root, "a"));
      for (const path of [
        "..",
        "../outside/secret",
        "a/../../outside/secret",
        "../ws/a",
        "/",
        "/etc/passwd",
        `${root}-evil/secret`,
        `${root}/../ws/a`,
        `${base}/outside/../ws/a`,
        base,
        "~",
        "~/.ssh/id_rsa",
      ]) {
        expect(await catchFault(workspace.resolve(path)), path).toBe("outside");
        expect(await catchFault(workspace.read(path)), path).toBe("outside");
        expect(await catchFault(workspace.write(path, "x")), path).toBe("outside");
        expect(await catchFault(workspace.remove(path)), path).toBe("outside");
      }
    });

    it("refuses what is no path", async () => {
      const long = "n".repeat(256);
      for (const path of ["", "a\0b", long, `é${"n".repeat(254)}`, "a/".repeat(2048), "\ud800"])
        expect(await catchFault(workspace.resolve(path)), path.slice(0, 9)).toBe("invalid");
      expect(await catchFault(workspace.write("a/".repeat(257) + "b", "x"))).toBe("invalid");
      expect(await catchFault(workspace.write("n".repeat(255), "x"))).toBe("none");
    });

    it("takes names for what they are: bytes", async () => {
      const names = [
        "line\nbreak",
        "bell\u0007",
        "dot.",
        "space ",
        "...",
        "\u00e9",
        "e\u0301",
        "Case",
        "case",
        "back\\slash",
        "%2e%2e",
        "-rf",
        "zero\u200bwidth",
        "\u202egnp.exe",
      ];
      for (const name of names) await workspace.write(name, name);
      for (const name of names) expect(await text(name)).toBe(name);
      expect((await workspace.list(".")).map((entry) => entry.name)).toEqual([...names].sort());
      expect(await catchFault(workspace.stat("CASE"))).toBe("missing");
      await workspace.write("./~/file", "home");
      expect(readFileSync(join(root, "~", "file"), "utf8")).toBe("home");
    });

    it("follows links inside, and none out", async () => {
      put("a/b.txt", "here");
      symlinkSync("a", join(root, "relative"));
      symlinkSync(join(root, "a"), join(root, "absolute"));
      symlinkSync("../a/../a/./b.txt", join(root, "a", "winding"));
      symlinkSync("relative/winding", join(root, "twice"));
      for (const path of ["relative/b.txt", "absolute/b.txt", "a/winding", "twice"])
        expect((await workspace.resolve(path)).path).toBe("a/b.txt");
      expect((await workspace.resolve("twice", { keepLink: true })).path).toBe("twice");
      expect((await workspace.resolve("relative/winding", { keepLink: true })).path).toBe(
        "a/winding",
      );
      const out: Record<string, string> = {
        up: "..",
        far: "../../../../../../etc",
        back: "../ws/a",
        absolute2: join(base, "outside"),
        sibling: `${root}-evil`,
        rootlink: "/proc/self/root",
        cwd: "/proc/self/cwd",
        fd: "/proc/self/fd/0",
        dev: "/dev",
        slash: "/",
        dangling: "../nothing",
        roundabout: "/etc/../etc",
      };
      for (const [name, target] of Object.entries(out)) {
        symlinkSync(target, join(root, name));
        expect(await catchFault(workspace.resolve(name)), name).toBe("outside");
        expect(await catchFault(workspace.read(`${name}/secret`)), name).toBe("outside");
        expect(await catchFault(workspace.list(name)), name).toBe("outside");
        expect(await catchFault(workspace.write(name, "x")), name).toBe("outside");
        expect(await catchFault(workspace.write(`${name}/new`, "x")), name).toBe("outside");
      }
      expect(readdirSync(join(base, "outside"))).toEqual(["secret"]);
    });

    it("stops at loops and after 40 links", async () => {
      symlinkSync("loop", join(root, "loop"));
      symlinkSync("pong", join(root, "ping"));
      symlinkSync("ping", join(root, "pong"));
      put("link0", "end");
      for (let index = 1; index <= 41; index++)
        symlinkSync(`link${index - 1}`, join(root, `link${index}`));
      for (const path of ["loop", "ping/x", "link41"])
        expect(await catchFault(workspace.stat(path)), path).toBe("invalid");
      expect(await text("link40")).toBe("end");
    });

    it.runIf(process.platform === "linux")("refuses a link that is not text", async () => {
      symlinkSync(Buffer.from([0x61, 0xff]), join(root, "link"));
      expect(await catchFault(workspace.resolve("link"))).toBe("invalid");
      await workspace.remove("link");
    });

    it("distinguishes folders from files", async () => {
      put("file", "x");
      mkdirSync(join(root, "folder"));
      symlinkSync("file", join(root, "link"));
      for (const path of ["file/", "file/.", "file/..", "file/x", "link/", "link/x"])
        expect(await catchFault(workspace.stat(path)), path).toBe("not_a_folder");
      expect(await catchFault(workspace.list("file"))).toBe("not_a_folder");
      for (const path of ["folder", "folder/", "."]) {
        expect(await catchFault(workspace.read(path)), path).toBe("not_a_file");
        expect(await catchFault(workspace.write(path, "x")), path).toBe("not_a_file");
        expect(await catchFault(workspace.remove(path)), path).toBe("not_a_file");
      }
      expect(await catchFault(workspace.write("new/", "x"))).toBe("not_a_file");
      expect(existsSync(join(root, "new"))).toBe(false);
      expect(await catchFault(workspace.resolve("new/../file"))).toBe("missing");
    });

    it.runIf(process.platform !== "win32")("refuses pipes and sockets, at once", async () => {
      execFileSync("mkfifo", [join(root, "pipe")]);
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(join(root, "socket"), resolve));
      for (const path of ["pipe", "socket"]) {
        expect((await workspace.stat(path)).kind).toBe("other");
        expect(await catchFault(workspace.open(path)), path).toBe("not_a_file");
        expect(await catchFault(workspace.write(path, "x")), path).toBe("not_a_file");
      }
      await new Promise((resolve) => server.close(resolve));
    });

    it("names what is near where nothing is", async () => {
      put("src/index.ts", "x");
      expect(await catchMessage(workspace.read("src/indx.ts"))).toContain(
        `Did you mean "src/index.ts"?`,
      );
      const message = await catchMessage(workspace.read("scr/index.ts"));
      expect(message).toContain(`the folder "scr" is not there. Did you mean "src"?`);
      expect(await workspace.resolve("src/new/file")).toEqual({
        path: "src/new/file",
        absolute: join(root, "src/new/file"),
        exists: false,
        readOnly: false,
      });
    });

    it.skipIf(isRoot)("says so where the system does not allow it", async () => {
      put("locked", "x");
      put("folder/file", "x");
      chmodSync(join(root, "locked"), 0);
      chmodSync(join(root, "folder"), 0);
      for (const path of ["locked", "folder/file"])
        expect(await catchFault(workspace.read(path)), path).toBe("denied");
      expect(await catchFault(workspace.write("locked", "y"))).toBe("denied");
      chmodSync(join(root, "folder"), 0o755);
    });

    it("shows paths in messages without their control characters", async () => {
      expect(await catchMessage(workspace.read("a\u001b[2Jb"))).toContain(`"a\\u001b[2Jb"`);
    });
  });

  describe("reading", () => {
    it("gives the bytes and which file they are of", async () => {
      put("a", "content");
      const { bytes, info } = await workspace.read("a");
      expect(Buffer.from(bytes).toString()).toBe("content");
      const stats = statSync(join(root, "a"), { bigint: true });
      expect(info).toEqual({
        path: "a",
        kind: "file",
        mode: 0o644,
        size: 7,
        dev: stats.dev,
        ino: stats.ino,
        mtimeNs: stats.mtimeNs,
      });
      expect(await workspace.stat("a")).toEqual(info);
    });

    it("stops at the limit", async () => {
      put("a", "12345");
      expect((await workspace.read("a", 5)).bytes).toHaveLength(5);
      expect(await catchFault(workspace.read("a", 4))).toBe("too_large");
    });

    it("gives no mixture of a file that does not hold still", async () => {
      put("a", "content");
      const folder = hold === "descriptor" ? holdByDescriptor(root) : holdByIdentity(root);
      if (!folder) throw new Error("There is no /proc here.");
      let looks = 0;
      const restless = alone({
        root: {
          ...folder,
          look: (name) => {
            const spot = folder.look(name);
            if (spot?.kind !== "file") return spot;
            const open = async (): Promise<FileHandle> => {
              const handle = await spot.open();
              const stat = handle.stat.bind(handle);
              vi.spyOn(handle, "stat").mockImplementation(async () => {
                writeFileSync(join(root, "a"), "x".repeat(looks++));
                return stat({ bigint: true });
              });
              return handle;
            };
            return { ...spot, open };
          },
        },
        isProtected: () => false,
      });
      expect(await catchFault(restless.read("a"))).toBe("changed");
      expect(looks).toBe(4);
      await restless.close();
    });

    it("gives a handle that is the caller's", async () => {
      put("a", "content");
      const { handle, info } = await workspace.open("a");
      await workspace.close();
      expect(info.size).toBe(7);
      expect(await handle.readFile("utf8")).toBe("content");
      await handle.close();
      expect(await catchMessage(workspace.read("a"))).toBe("The workspace is closed.");
    });

    it("lists what is there, links as links", async () => {
      put("b", "x");
      mkdirSync(join(root, "a"));
      symlinkSync(join(base, "outside"), join(root, "c"));
      expect(await workspace.list(".")).toEqual([
        { name: "a", kind: "folder" },
        { name: "b", kind: "file" },
        { name: "c", kind: "link" },
      ]);
    });
  });

  describe("writing", () => {
    it("makes a file and the folders on the way", async () => {
      const info = await workspace.write("a/b/c.txt", "new");
      expect(readFileSync(join(root, "a/b/c.txt"), "utf8")).toBe("new");
      expect(info).toEqual(await workspace.stat("a/b/c.txt"));
      expect(readdirSync(join(root, "a/b"))).toEqual(["c.txt"]);
    });

    it("gives a new file the mode that was asked for, as the umask leaves it", async () => {
      const plain = join(root, "plain");
      writeFileSync(plain, "", { mode: 0o777 });
      await workspace.write("program", "#!", { mode: 0o777 });
      await workspace.write("private", "", { mode: 0o600 });
      expect(statSync(join(root, "program")).mode).toBe(statSync(plain).mode);
      expect(statSync(join(root, "private")).mode & 0o777).toBe(0o600);
    });

    it("keeps the mode, and the owner where it may", async () => {
      put("a", "old");
      chmodSync(join(root, "a"), 0o751);
      if (isRoot) chownSync(join(root, "a"), 1234, 4321);
      const before = statSync(join(root, "a"));
      await workspace.write("a", "new");
      const after = statSync(join(root, "a"));
      expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid]);
    });

    it("follows a link and leaves it", async () => {
      put("real/file", "old");
      symlinkSync("real/file", join(root, "link"));
      symlinkSync("real/new", join(root, "dangling"));
      expect((await workspace.write("link", "new")).path).toBe("real/file");
      expect((await workspace.write("dangling", "made")).path).toBe("real/new");
      expect(readFileSync(join(root, "real/file"), "utf8")).toBe("new");
      expect(readFileSync(join(root, "real/new"), "utf8")).toBe("made");
      expect(readlinkSync(join(root, "link"))).toBe("real/file");
      expect(readlinkSync(join(root, "dangling"))).toBe("real/new");
    });

    it("leaves the other name of a hard link as it was", async () => {
      linkSync(join(base, "outside", "secret"), join(root, "hard"));
      expect(await text("hard")).toBe(SECRET);
      await workspace.write("hard", "mine");
      expect(readFileSync(join(base, "outside", "secret"), "utf8")).toBe(SECRET);
      expect(readFileSync(join(root, "hard"), "utf8")).toBe("mine");
    });

    it("refuses a file that is not the expected one any more", async () => {
      put("a", "old");
      const info = await workspace.stat("a");
      put("a", "changed by another");
      expect(await catchFault(workspace.write("a", "mine", { expected: info }))).toBe("changed");
      expect(await catchFault(workspace.write("a", "mine", { expected: null }))).toBe("changed");
      expect(await catchFault(workspace.write("b/c", "mine", { expected: info }))).toBe("changed");
      expect(readdirSync(root)).toEqual(["a"]);
      const now = await workspace.stat("a");
      const written = await workspace.write("a", "mine", { expected: now });
      await workspace.write("a", "mine again", { expected: written });
      await workspace.write("b", "new", { expected: null });
      expect(await text("a")).toBe("mine again");
      expect(readdirSync(root)).toEqual(["a", "b"]);
    });

    it("lets one of many who expect the same win", async () => {
      put("a", "old");
      const expected = await workspace.stat("a");
      const faults = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          catchFault(workspace.write("a", `writer ${index}`, { expected })),
        ),
      );
      expect(faults.filter((fault) => fault === "none")).toHaveLength(1);
      const made = await Promise.all(
        Array.from({ length: 8 }, () =>
          catchFault(workspace.write("new", "x", { expected: null })),
        ),
      );
      expect(made.filter((fault) => fault === "none")).toHaveLength(1);
      expect(readdirSync(root)).toEqual(["a", "new"]);
    });

    it("never mixes writes that run together", async () => {
      const contents = Array.from({ length: 8 }, (_, index) => `${index}`.repeat(100_000));
      await Promise.all(contents.map((content) => workspace.write("a/b", content)));
      expect(contents).toContain(await text("a/b"));
      expect(readdirSync(join(root, "a"))).toEqual(["b"]);
    });

    it("removes a file, or a link itself", async () => {
      put("a", "x");
      symlinkSync("a", join(root, "link"));
      symlinkSync(join(base, "outside"), join(root, "out"));
      await workspace.remove("link");
      await workspace.remove("out");
      expect(readdirSync(root)).toEqual(["a"]);
      await workspace.remove("a");
      expect(readdirSync(root)).toEqual([]);
      expect(await catchFault(workspace.remove("a"))).toBe("missing");
      expect(readFileSync(join(base, "outside", "secret"), "utf8")).toBe(SECRET);
    });

    it("waits for what is under way before it closes", async () => {
      const written = workspace.write("a", "x".repeat(1_000_000));
      await workspace.close();
      expect((await written).size).toBe(1_000_000);
      expect(readdirSync(root)).toEqual(["a"]);
    });
  });

  describe("protected places", () => {
    it.each([
      ".git",
      ".git/config",
      ".GIT/Config",
      ".git/hooks/pre-commit",
      ".git/info/attributes",
      ".git/info/exclude",
      ".git/HEAD",
      ".git/index",
      ".git/refs/heads/main",
      ".git/config.worktree",
      ".git/rebase-merge/git-rebase-todo",
      ".git/rebase-apply/next",
      ".git/sequencer/todo",
      "sub/.git/rebase-merge/git-rebase-todo",
      "sub/.Git/HEAD",
      ".git/modules/a/HEAD",
      ".git/modules/a/b/config",
      ".git/modules/a/hooks/post-checkout",
      "sub/.git",
      "sub/.git/config",
      "bare.git/hooks/update",
      ".gyre",
      ".gyre/sessions/one.jsonl",
      ".gyre/line\nbreak",
      ".mcp.json",
      ".claude/settings.json",
      ".Codex/config.toml",
      ".cursor/mcp.json",
      ".vscode/tasks.json",
      ".vscode/settings.json",
      ".idea/workspace.xml",
      ".envrc",
      ".agents/skills/a/SKILL.md",
      "sub/.pi/settings.json",
      ".opencode/plugin/a.ts",
      "opencode.json",
      "opencode.jsonc",
      ".zed/tasks.json",
      ".devcontainer/devcontainer.json",
      ".devcontainer.json",
      ".husky/pre-commit",
      ".cargo/config.toml",
      ".cargo/config",
      ".aider.conf.yml",
      ".GitHub/Workflows/ci.yml",
      ".qwen/settings.json",
      ".roo/mcp.json",
      ".kiro/settings/mcp.json",
      ".windsurf/rules/a.md",
      ".amp/settings.json",
      ".nvim.lua",
      ".nvimrc",
      ".exrc",
      ".g\u200cit/config",
      ".git./config",
      "git~1/config",
      ".git::$INDEX_ALLOCATION/config",
    ])("refuses to change %j", async (path) => {
      expect(await workspace.resolve(path)).toMatchObject({ readOnly: true, exists: false });
      expect(await catchFault(workspace.write(path, "x"))).toBe("read_only");
      expect(readdirSync(root)).toEqual([]);
      put(path, "old");
      expect(await text(path)).toBe("old");
      expect(await catchFault(workspace.write(path, "x"))).toBe("read_only");
      expect(await catchFault(workspace.remove(path))).toBe("read_only");
      expect(await text(path)).toBe("old");
    });

    it.each([
      ".gitignore",
      ".github/CODEOWNERS",
      ".cargo/audit.toml",
      ".vscode/extensions.json",
      "config",
      "hooks/useThing.ts",
      ".bashrc",
      "site.git/src/config/index.ts",
    ])("lets %j be changed", async (path) => {
      await workspace.write(path, "x");
      expect(await workspace.resolve(path)).toMatchObject({ readOnly: false, exists: true });
    });

    it("sees through links, both ways", async () => {
      put(".git/config", "old");
      mkdirSync(join(root, "my-hooks"));
      symlinkSync("../my-hooks", join(root, ".git/hooks"));
      symlinkSync(".git", join(root, "innocent"));
      symlinkSync(".git/config", join(root, "file"));
      symlinkSync(".git/hooks2", join(root, "dangling"));
      for (const path of ["innocent/config", "file", ".git/hooks/pre-push"]) {
        expect(await workspace.resolve(path), path).toMatchObject({ readOnly: true });
        expect(await catchFault(workspace.write(path, "x")), path).toBe("read_only");
      }
      expect(await catchFault(workspace.remove("innocent/config"))).toBe("read_only");
      expect(await catchFault(workspace.remove(".git/hooks"))).toBe("read_only");
      expect(await catchFault(workspace.remove("file"))).toBe("none");
      expect(readFileSync(join(root, ".git/config"), "utf8")).toBe("old");
    });

    it("hides places from every way to them", async () => {
      put("config/keys.json", SECRET);
      symlinkSync("config", join(root, "link"));
      symlinkSync("link/keys.json", join(root, "harmless"));
      symlinkSync(join(root, "config"), join(base, "moved"));
      const hidden = [join(base, "moved"), join(base, "outside"), join(root, "later")];
      const own = await openWorkspace(root, { hold, hidden });
      const paths = ["config/keys.json", "link/keys.json", "harmless", "CONFIG/keys.json", "later"];
      for (const path of [...paths, join(root, "config", "keys.json")]) {
        for (const use of [own.read(path), own.stat(path), own.resolve(path), own.write(path, "")])
          expect(await catchFault(use), path).toBe("denied");
      }
      expect(await catchFault(own.list("config"))).toBe("denied");
      expect(await catchFault(own.remove("config/keys.json"))).toBe("denied");
      expect((await own.list(".")).map(({ name }) => name)).toContain("config");
      await own.write("configuration", "x");
      await own.close();
      // A workspace inside of such a place has nothing to show.
      const inside = await openWorkspace(join(root, "config"), { hold, hidden });
      expect(await catchFault(inside.read("keys.json"))).toBe("denied");
      await inside.close();
    });

    it("protects a home folder's own files, and further patterns", async () => {
      const home = join(root, "Users", "me");
      mkdirSync(home, { recursive: true });
      const own = await openWorkspace(root, { hold, home, readOnly: ["Secrets", "**/*.lock"] });
      for (const path of [
        "Users/me/.bashrc",
        "users/ME/.SSH/authorized_keys",
        "Users/me/.config/x/y",
        "secrets/a/b",
        "secrets/line\nbreak",
        "deep/yarn.lock",
        "deep/line\nbreak.lock",
      ])
        expect(await catchFault(own.write(path, "x")), path).toBe("read_only");
      await own.write("Users/me/notes", "x");
      await own.write("Users/you/.bashrc", "x");
      await own.close();
    });
  });

  describe("the folder itself", () => {
    it("may be given by a link, and is known by both names", async () => {
      put("a", "here");
      symlinkSync(root, join(base, "alias"));
      const own = await openWorkspace(join(base, "alias"), { hold });
      expect(own.root).toBe(root);
      rmSync(join(base, "alias"));
      symlinkSync(join(base, "outside"), join(base, "alias"));
      for (const path of ["a", join(base, "alias", "a"), join(root, "a")])
        expect((await own.resolve(path)).absolute).toBe(join(root, "a"));
      expect(await catchFault(own.read(join(base, "alias", "secret")))).toBe("missing");
      await own.close();
    });

    it("is a folder, or is not opened", async () => {
      put("a", "x");
      await expect(openWorkspace(join(root, "a"), { hold })).rejects.toThrow("is not a folder");
      await expect(openWorkspace(join(root, "b"), { hold })).rejects.toThrow("ENOENT");
    });

    it("is the one that was opened, or none", async () => {
      put("a", "mine");
      renameSync(root, join(base, "moved"));
      symlinkSync(join(base, "outside"), root);
      if (hold === "descriptor") {
        expect(await text("a")).toBe("mine");
        await workspace.write("b", "mine");
        expect(readdirSync(join(base, "moved"))).toEqual(["a", "b"]);
      } else {
        expect(await catchFault(workspace.read("secret"))).toBe("changed");
        expect(await catchFault(workspace.write("b", "mine"))).toBe("changed");
      }
      expect(readdirSync(join(base, "outside"))).toEqual(["secret"]);
    });
  });

  describe("when writing fails", () => {
    const open = (): FolderSpot => {
      const spot = hold === "descriptor" ? holdByDescriptor(root) : holdByIdentity(root);
      if (!spot) throw new Error("There is no /proc here.");
      return spot;
    };
    const over = (folder: FolderSpot): FolderWorkspace =>
      alone({ root: folder, isProtected: protection([], undefined) });
    const full = (): Error =>
      Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });

    function failingAt(method: "writeFile" | "sync" | "chmod" | "stat"): FolderSpot {
      const folder = open();
      const create = async (name: string, mode: number): Promise<FileHandle> => {
        const handle = await folder.create(name, mode);
        expect(lstatSync(join(root, name)).isFile()).toBe(true);
        if (method === "writeFile") await handle.write("half of");
        vi.spyOn(handle, method).mockRejectedValue(full());
        return handle;
      };
      return { ...folder, create };
    }

    it.each(["writeFile", "sync", "chmod", "stat"] as const)(
      "leaves the old file and nothing else if %s does",
      async (method) => {
        put("a", "old");
        const own = over(failingAt(method));
        expect(await catchMessage(own.write("a", "new"))).toBe(
          `"a" could not be used: ENOSPC: no space left on device.`,
        );
        expect(await catchMessage(own.write("b", "new"))).toContain("ENOSPC");
        expect(readFileSync(join(root, "a"), "utf8")).toBe("old");
        expect(readdirSync(root)).toEqual(["a"]);
        await own.close();
      },
    );

    it("leaves the old file and nothing else if the rename does", async () => {
      put("a", "old");
      const folder = open();
      const own = over({
        ...folder,
        rename: () => {
          throw full();
        },
      });
      expect(await catchMessage(own.write("a", "new"))).toContain("ENOSPC");
      expect(readFileSync(join(root, "a"), "utf8")).toBe("old");
      expect(readdirSync(root)).toEqual(["a"]);
      await own.close();
    });

    it("replaces by a rename where the file system has no links", async () => {
      const folder = open();
      const own = over({
        ...folder,
        link: () => {
          throw Object.assign(new Error("EPERM"), { code: "EPERM" });
        },
      });
      await own.write("a", "new", { expected: null });
      expect(readFileSync(join(root, "a"), "utf8")).toBe("new");
      expect(readdirSync(root)).toEqual(["a"]);
      await own.close();
    });

    it("never shows a file that is not finished", async () => {
      put("a", "old");
      const folder = open();
      const modes: number[] = [];
      const own = over({
        ...folder,
        create: async (name, mode) => {
          const handle = await folder.create(name, mode);
          const writeFile = handle.writeFile.bind(handle);
          vi.spyOn(handle, "writeFile").mockImplementation(async (data) => {
            modes.push(statSync(join(root, name)).mode & 0o777);
            await writeFile(data);
          });
          return handle;
        },
      });
      await own.write("a", "new");
      await own.write("b", "new");
      expect(modes).toEqual([0o600, 0o600]);
      expect(statSync(join(root, "b")).mode & 0o777).toBe(statSync(join(root, "a")).mode & 0o777);
      await own.close();
    });
  });
});

describe.runIf(process.platform === "linux")("a folder held by descriptor", () => {
  it("is the one that was checked, whatever takes its name", async () => {
    put("d/f", "inside");
    const top = holdByDescriptor(root);
    const folder = top?.look("d");
    if (!top || folder?.kind !== "folder") throw new Error("There is no folder.");
    const file = folder.look("f");
    if (file?.kind !== "file") throw new Error("There is no file.");
    renameSync(join(root, "d"), join(root, "away"));
    symlinkSync(join(base, "outside"), join(root, "d"));
    rmSync(join(root, "away/f"));
    symlinkSync(join(base, "outside/secret"), join(root, "away/f"));
    const handle = await file.open();
    expect(await handle.readFile("utf8")).toBe("inside");
    await handle.close();
    const made = await folder.create("new", 0o600);
    await made.close();
    expect(readdirSync(join(root, "away"))).toEqual(["f", "new"]);
    await expect(folder.create("f", 0o600)).rejects.toThrow("EEXIST");
    for (const spot of [file, folder, top]) spot.close();
  });

  it("leaves no descriptor open", async () => {
    put("a/b/c", "x");
    symlinkSync("a/b", join(root, "link"));
    const workspace = await openWorkspace(root);
    for (const path of ["a/b/c", "link/c", "link/../b/c", "a/x/y", "a/b/c/d", "../x", "a/b"]) {
      await catchFault(workspace.read(path));
      await catchFault(workspace.resolve(path));
      await catchFault(workspace.list(path));
      await catchFault(workspace.write(path, "x", { expected: null }));
    }
    expect(listOpenBelow(root)).not.toEqual([]);
    await workspace.close();
    expect(listOpenBelow(root)).toEqual([]);
  });
});

describe("a folder held by identity", () => {
  it("sees that another one has taken its name", async () => {
    put("d/f", "inside");
    const folder = holdByIdentity(root).look("d");
    if (folder?.kind !== "folder") throw new Error("There is no folder.");
    const file = folder.look("f");
    if (file?.kind !== "file") throw new Error("There is no file.");
    writeFileSync(join(base, "outside/f"), SECRET);
    renameSync(join(root, "d"), join(root, "away"));
    symlinkSync(join(base, "outside"), join(root, "d"));
    expect(() => folder.verify()).toThrow(ReplacedError);
    expect(() => folder.unlink("f")).toThrow(ReplacedError);
    await expect(file.open()).rejects.toThrow(ReplacedError);
    await expect(folder.create("new", 0o600)).rejects.toThrow(ReplacedError);
    await expect(folder.list()).rejects.toThrow(ReplacedError);
    expect(readdirSync(join(base, "outside"))).toEqual(["f", "secret"]);
  });
});

describe("names on Windows", () => {
  it("are refused where they mean something else there", () => {
    for (const name of [
      "a:stream",
      "NUL",
      "con.txt",
      "COM1",
      "lpt9.log",
      "a.",
      "a ",
      "a?",
      "aux .c",
    ])
      expect(isPlainOnWindows(name), name).toBe(false);
    for (const name of ["a", "console.ts", "command", "nullable.ts", ".git", "a b"])
      expect(isPlainOnWindows(name), name).toBe(true);
  });
});
