import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openWorkspace, type Workspace } from "../../workspace/workspace.ts";
import { rulesFor } from "../rules-for.ts";
import { type Danger, explainDanger } from "./explain.ts";

let root: string;
let workspace: Workspace;
beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-grave-")));
  workspace = await openWorkspace(root);
});
afterAll(async () => {
  await workspace.close();
  rmSync(root, { recursive: true });
});

const explain = (command: string, isUndoable = false): Promise<Danger | undefined> =>
  explainDanger([command], { cwd: ".", workspace, isConfined: true, root, since: 0, isUndoable });

const MACHINE = "all files of this machine";
const HOME = "your home folder";
const WORKSPACE = "all files of the workspace";
const COMMITS = "commits on the server";
const USER = "the rights of another user";

it.for([
  ["sudo ls", USER],
  ["npm test && sudo make install", USER],
  ["bash -c 'sudo id'", USER],
  ["rm -rf /", MACHINE],
  ["rm -rf /*", MACHINE],
  ["rm -r --force --no-preserve-root /", MACHINE],
  ["cd src; rm -rf / tmp", MACHINE],
  ["rm -rf ~", HOME],
  ["rm -rf ~/*", HOME],
  ["rm -rf $HOME", HOME],
  ['rm -rf "$HOME"/', HOME],
  ["rm -rf .", WORKSPACE],
  ["rm -rf ./*", WORKSPACE],
  ["rm -rf *", WORKSPACE],
  ['rm -rf "$PWD"', WORKSPACE],
  ["rm -rf ..", "all of "],
  ["X=~; rm -rf $X", HOME],
  ["git push --force", COMMITS],
  ["git push -f origin main", COMMITS],
  ["git push origin +main", COMMITS],
  ["git push --force-with-lease", COMMITS],
  ["npm install && git push --force", COMMITS],
  ["git clean -fdx", "also ignored ones as .env"],
  ["git clean -fd", "files that git does not have"],
  ["git reset --hard", "all changes that are not committed"],
  ["git -C . reset --hard HEAD~1", "all changes that are not committed"],
  ["dd if=x.img of=/dev/sda", '"/dev/sda"'],
  ["mkfs.ext4 /dev/sdb1", '"/dev/sdb1"'],
  ["chmod -R 777 /", MACHINE],
  ["chown -R me ~", HOME],
])("says what is destroyed, and never offers a rule: %s", async ([command = "", loss = ""]) => {
  const danger = await explain(command);
  expect(danger).toMatchObject({ kind: "destructive" });
  expect(danger?.why).toContain(loss);
  const access = { kind: "run", targets: [command], summary: "" } as const;
  for (const isConfined of [true, false]) {
    expect(await rulesFor({ tool: "shell", access, danger, isConfined })).toBeUndefined();
  }
});

it.for([
  "ls /",
  "rm -rf dist",
  "git push",
  "git clean -n",
  "git reset",
  "chmod -R u+w .",
  "dd if=a of=/dev/null",
  "echo 'sudo rm -rf /'",
])("is not said of others: %s", async (command) => {
  expect((await explain(command))?.why ?? "").not.toMatch(
    /It (?:deletes|replaces|throws|overwrites|formats|changes the rights)|rights of another user/,
  );
});

it("in a layer only what is more than files is said", async () => {
  expect(await explain("git reset --hard", true)).toBeUndefined();
  expect((await explain("sudo git reset --hard", true))?.why).toContain(USER);
});
