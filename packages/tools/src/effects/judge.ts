import { posix } from "node:path";
import type { Workspace } from "../workspace/workspace.ts";
import { type BytePath, getName, findParent, toText } from "./byte-path.ts";
import { type Effect, KEPT_RIGHTS } from "./effect.ts";
import type { FileUser } from "./open-files.ts";

/** More is shown before it is kept. */
export const MAX_UNASKED_FILES = 500;
export const MAX_UNASKED_BYTES: number = 64 * 1024 * 1024;

/** Files that say what programs run, or what agents do; in any folder. */
const RUNS_LATER = new Set(
  (
    "package.json makefile gnumakefile justfile rakefile gruntfile.js gulpfile.js taskfile.yml .npmrc .yarnrc.yml " +
    ".pre-commit-config.yaml .gitattributes .gitmodules .gitlab-ci.yml .travis.yml jenkinsfile azure-pipelines.yml " +
    "build.gradle build.gradle.kts build.rs cargo.toml pyproject.toml setup.py setup.cfg tox.ini conftest.py " +
    "sitecustomize.py pom.xml cmakelists.txt dockerfile docker-compose.yml compose.yml agents.md claude.md gemini.md"
  ).split(" "),
);
const LATER_FOLDERS = /^\.(?:github|gitlab|circleci|vscode|buildkite|woodpecker)$/;

/** What a person should know of an effect before it is kept, as sentences. Without any it is harmless. */
export async function noteEffect(
  effect: Effect,
  workspace: Pick<Workspace, "resolve">,
  users: readonly FileUser[],
): Promise<string[]> {
  const { path, kind, type, mode = 0, target, before } = effect;
  const notes: string[] = [];
  if (kind === "special") return ["A pipe, a socket or a device is not kept."];
  const text = toText(path);
  if (text === undefined) notes.push("Its name is no text.");
  else if (await isProtected(text, workspace)) notes.push("It is read-only for tools.");
  if (runsLater(path)) notes.push("Other programs run or obey what it says.");
  if (target !== undefined && leadsOutside(path, target)) {
    notes.push("It is a link that leads out of the workspace.");
  }
  if (type === "file" && (mode & ~KEPT_RIGHTS) !== 0 && kind !== "delete") {
    notes.push("Its right to run as its owner (setuid) is not kept.");
  }
  if (before && before.type === "file" && before.links > 1 && kind !== "delete") {
    notes.push("It is a file with more names: the others keep the old content.");
  }
  for (const { id, name, pid } of users) {
    if (id === effect.id) notes.push(`It is open in ${name} (${pid}).`);
  }
  return notes;
}

function runsLater(path: BytePath): boolean {
  const isLater = (name: string): boolean => LATER_FOLDERS.test(name);
  return RUNS_LATER.has(getName(path).toLowerCase()) || path.toLowerCase().split("/").some(isLater);
}

async function isProtected(path: string, workspace: Pick<Workspace, "resolve">): Promise<boolean> {
  // What cannot be resolved as it is now is not known to be harmless.
  const place = await workspace.resolve(path, { keepLink: true }).catch(() => undefined);
  return place?.readOnly ?? true;
}

function leadsOutside(path: BytePath, target: BytePath): boolean {
  if (target.startsWith("/")) return true;
  const end = posix.join(findParent(path), target);
  return end === ".." || end.startsWith("../");
}

/** Whether there are no more effects than are kept without a look at them. */
export function isUsualSize(effects: readonly Effect[]): boolean {
  let [files, bytes] = [0, 0];
  for (const { size = 0, below = 0 } of effects) {
    files += 1 + below;
    bytes += size;
  }
  return files <= MAX_UNASKED_FILES && bytes <= MAX_UNASKED_BYTES;
}
