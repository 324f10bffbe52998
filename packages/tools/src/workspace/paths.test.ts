import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWorkspace, PathError, type Workspace, type WorkspaceOptions } from "./workspace.ts";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";

/** Hostile paths against a reference. */
const PATHS = countCases(10_000, 100_000, "GYRE_PATHS");
const SEED = pickSeed();
const PATHS_PER_TREE = 5_000;
const READ_EVERY = 32;
const CHANGE_EVERY = 250;
const KERNEL_EVERY = 32;
/** A million paths take minutes. */
const TIMEOUT_MS = 120_000 + PATHS * 2;
const holds: NonNullable<WorkspaceOptions["hold"]>[] =
  process.platform === "linux" ? ["descriptor", "identity"] : ["identity"];

// A world in memory

type Thing =
  | { kind: "folder"; entries: Map<string, Thing> }
  | { kind: "file"; content: string }
  | { kind: "link"; target: string };
type Folder = Extract<Thing, { kind: "folder" }>;

/** Where a path leads according to the reference. */
type Answer =
  | { fault: string }
  | { names: string[]; thing: Thing | undefined; saysFolder: boolean };

/**
 * The reference: the rules once more, plainly, by recursion on the text of the path and
 * on a tree in memory. It shares nothing with the code under test.
 */
function reference(tree: Folder, root: string, path: string, keepLink: boolean): Answer {
  if (path === "" || path.includes("\0") || Buffer.byteLength(path) > 4095)
    return { fault: "invalid" };
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(path))
    return { fault: "invalid" };
  if (path === "~" || path.startsWith("~/")) return { fault: "outside" };
  let links = 0;

  function from(names: string[], rest: string): Answer {
    if (rest.startsWith("/")) {
      const inside = stripRoot(root, rest);
      return inside === undefined ? { fault: "outside" } : from([], inside);
    }
    const here = at(tree, names);
    const cut = rest.indexOf("/");
    const name = cut < 0 ? rest : rest.slice(0, cut);
    const after = cut < 0 ? undefined : rest.slice(cut).replace(/^\/+/, "");
    if (here && here.kind !== "folder") return { fault: "not_a_folder" };
    if (name === "" || name === ".") {
      if (after === undefined || after === "") return { names, thing: here, saysFolder: true };
      return from(names, after);
    }
    if (name === "..") {
      if (!here) return { fault: "missing" };
      if (names.length === 0) return { fault: "outside" };
      const parent = names.slice(0, -1);
      if (after === undefined) return { names: parent, thing: at(tree, parent), saysFolder: false };
      return from(parent, after);
    }
    if (Buffer.byteLength(name) > 255 || names.length >= 256) return { fault: "invalid" };
    const thing = here?.entries.get(name);
    const next = [...names, name];
    if (thing?.kind === "link" && !(keepLink && after === undefined)) {
      links += 1;
      if (links > 40) return { fault: "invalid" };
      return from(names, after === undefined ? thing.target : `${thing.target}/${after}`);
    }
    if (after !== undefined) return from(next, after);
    return { names: next, thing, saysFolder: false };
  }

  return from([], path);
}

/** What an absolute path says beneath the root; undefined where it does not go there. */
function stripRoot(root: string, path: string): string | undefined {
  let rest = path;
  for (const name of root.split("/").slice(1)) {
    rest = rest.replace(/^(?:\/+\.(?=\/|$))*\/+/, "");
    if (rest !== name && !rest.startsWith(`${name}/`)) return undefined;
    rest = rest.slice(name.length);
  }
  return rest === "" ? "." : rest.replace(/^\/+/, "");
}

function at(tree: Folder, names: readonly string[]): Thing | undefined {
  let thing: Thing | undefined = tree;
  for (const name of names) thing = thing?.kind === "folder" ? thing.entries.get(name) : undefined;
  return thing;
}

// Random worlds and paths

class Dice {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    // The high bits are the good ones.
    return Math.floor((this.#state / 2 ** 32) * limit);
  }
  chance(percent: number): boolean {
    return this.below(100) < percent;
  }
  of<T>(list: readonly [T, ...T[]]): T {
    return list[this.below(list.length)] ?? list[0];
  }
}

const NAMES = [
  "a",
  "b",
  "c",
  "d",
  "A",
  "\u00e9",
  "e\u0301",
  "...",
  "dot.",
  "space ",
  "line\nbreak",
  "back\\slash",
  "%2e%2e",
  "~",
  "\u202ecod",
  "n".repeat(255),
] as const;
const MAX_DEPTH = 4;

function randomTree(dice: Dice, root: string): Folder {
  let files = 0;
  function folder(depth: number): Folder {
    const entries = new Map<string, Thing>();
    const count = 2 + dice.below(6);
    for (let index = 0; index < count; index++) {
      const name = dice.of(NAMES);
      const roll = dice.below(10);
      if (roll < 3 && depth < MAX_DEPTH) entries.set(name, folder(depth + 1));
      else if (roll < 6) entries.set(name, { kind: "file", content: `file ${files++}` });
      else entries.set(name, { kind: "link", target: randomTarget(dice, root) });
    }
    return { kind: "folder", entries };
  }
  return folder(0);
}

function randomTarget(dice: Dice, root: string): string {
  const roll = dice.below(20);
  if (roll < 9) return randomRelative(dice, 3);
  if (roll < 11) return `../${randomRelative(dice, 2)}`;
  if (roll < 13) return `${root}/${randomRelative(dice, 2)}`;
  return dice.of([
    "..",
    ".",
    "../..",
    root,
    `${root}/`,
    `${root}-evil/secret`,
    `${root}/../outside/secret`,
    "../outside",
    "../../outside/secret",
    "/",
    "/dev/null",
    "/proc/self/root",
    `/proc/self/root${root}/a`,
    "/proc/self/fd/0",
    "/proc/self/cwd",
    "/etc/passwd",
  ]);
}

function randomRelative(dice: Dice, length: number): string {
  const parts: string[] = [];
  const count = 1 + dice.below(length);
  for (let index = 0; index < count; index++) {
    const roll = dice.below(20);
    parts.push(roll < 3 ? ".." : roll < 4 ? "." : roll < 5 ? "" : dice.of(NAMES));
  }
  // An empty first part would make it absolute.
  return parts.join("/").replace(/^\/+/, "") || ".";
}

/** Mostly a way that is there, with a detour now and then. */
function guidedRelative(dice: Dice, tree: Folder): string {
  const parts: string[] = [];
  let here: Thing = tree;
  while (here.kind === "folder" && !dice.chance(10)) {
    const entries: [string, Thing][] = [...here.entries];
    const entry = entries[dice.below(entries.length)];
    if (!entry) break;
    const [name, thing] = entry;
    parts.push(name);
    here = thing;
    if (thing.kind === "folder" && dice.chance(10)) parts.push("..", name);
    if (dice.chance(10)) parts.push(dice.of(["", ".", "..", "b"]));
  }
  if (here.kind === "link" && dice.chance(60)) parts.push(randomRelative(dice, 2));
  return parts.join("/") || ".";
}

function randomPath(dice: Dice, tree: Folder, root: string): string {
  const relative = dice.chance(60) ? guidedRelative(dice, tree) : randomRelative(dice, 7);
  const roll = dice.below(100);
  if (roll < 70) return relative;
  if (roll < 76) return `${relative}/`;
  if (roll < 84) return `${root}/${relative}`;
  if (roll < 86) return `/.${root.replaceAll("/", "//")}/./${relative}`;
  if (roll < 90) return `${root}${dice.of(["-evil/secret", "/..", "/../outside/secret", ""])}`;
  if (roll < 92) return `${relative}\0`;
  if (roll < 93) return `${relative}/${"n".repeat(254 + dice.below(4))}`;
  if (roll < 94) return `${"a/../".repeat(dice.chance(10) ? 816 : 16)}${relative}`;
  if (roll < 95) return `${relative}/${"x/".repeat(250 + dice.below(12))}y`;
  return dice.of([
    "",
    "/",
    "//",
    "~",
    "~/a",
    "~root/a",
    "./~",
    "..",
    "../ws/a",
    "\ud800",
    "a\udfff/b",
    "C:\\a",
    "file:///etc/passwd",
    "/etc/passwd",
    "/proc/self/cwd",
    "/proc/self/fd/1",
    `/proc/self/root${root}/a`,
    `${root}/../ws/a`,
  ]);
}

// The real one beside it

function build(folder: Folder, path: string): void {
  mkdirSync(path, { recursive: true });
  for (const [name, thing] of folder.entries) {
    const here = `${path}/${name}`;
    if (thing.kind === "folder") build(thing, here);
    else if (thing.kind === "file") writeFileSync(here, thing.content);
    else symlinkSync(thing.target, here);
  }
}

function snapshot(path: string): Folder {
  const entries = new Map<string, Thing>();
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const here = `${path}/${entry.name}`;
    if (entry.isDirectory()) entries.set(entry.name, snapshot(here));
    else if (entry.isSymbolicLink())
      entries.set(entry.name, { kind: "link", target: readlinkSync(here) });
    else entries.set(entry.name, { kind: "file", content: readFileSync(here, "utf8") });
  }
  return { kind: "folder", entries };
}

/** In one order, so that two can be compared. */
function flat(thing: Thing, path = ""): string[] {
  if (thing.kind === "file") return [`${path} = ${thing.content}`];
  if (thing.kind === "link") return [`${path} -> ${thing.target}`];
  return [
    `${path}/`,
    ...[...thing.entries].flatMap(([name, inner]) => flat(inner, `${path}/${name}`)),
  ].sort();
}

async function outcome(work: Promise<string>): Promise<string> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof PathError) return `fault ${error.fault}`;
    throw error;
  }
}

async function resolved(workspace: Workspace, path: string, keepLink: boolean): Promise<string> {
  const { path: where, exists } = await workspace.resolve(path, { keepLink });
  return `${exists ? "at" : "not at"} ${where}`;
}

function expectedResolve(answer: Answer): string {
  if ("fault" in answer) return `fault ${answer.fault}`;
  return `${answer.thing ? "at" : "not at"} ${answer.names.join("/")}`;
}

function expectedRead(answer: Answer): string {
  if ("fault" in answer) return `fault ${answer.fault}`;
  if (!answer.thing) return "fault missing";
  return answer.thing.kind === "file" ? answer.thing.content : "fault not_a_file";
}

/** Writes in the model. */
function expectedWrite(tree: Folder, answer: Answer, content: string): string {
  if ("fault" in answer) return `fault ${answer.fault}`;
  const { names, thing, saysFolder } = answer;
  const name = names.at(-1);
  if (name === undefined || saysFolder || thing?.kind === "folder") return "fault not_a_file";
  let folder = tree;
  for (const part of names.slice(0, -1)) {
    const next = folder.entries.get(part) ?? { kind: "folder", entries: new Map() };
    if (next.kind !== "folder") throw new Error("The reference has a file as a folder.");
    folder.entries.set(part, next);
    folder = next;
  }
  folder.entries.set(name, { kind: "file", content });
  return names.join("/");
}

/** Removes in the model. */
function expectedRemove(tree: Folder, answer: Answer): string {
  if ("fault" in answer) return `fault ${answer.fault}`;
  if (!answer.thing) return "fault missing";
  const parent = at(tree, answer.names.slice(0, -1));
  if (answer.thing.kind === "folder" || parent?.kind !== "folder") return "fault not_a_file";
  parent.entries.delete(answer.names.at(-1) ?? "");
  return "removed";
}

describe.each(holds)("paths in a workspace held by %s", (hold) => {
  let base: string;
  let root: string;

  beforeAll(() => {
    base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-paths-")));
    root = join(base, "ws");
    for (const folder of ["outside", "ws-evil"]) {
      mkdirSync(join(base, folder));
      writeFileSync(join(base, folder, "secret"), "outside");
    }
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));

  it(
    `lead where the reference says, ${PATHS} times`,
    { tags: "long", timeout: TIMEOUT_MS },
    async () => {
      const dice = new Dice(SEED);
      const inside = { found: 0, missing: 0, refused: 0 };
      for (let done = 0; done < PATHS; done += PATHS_PER_TREE) {
        const tree = randomTree(dice, root);
        rmSync(root, { recursive: true, force: true });
        build(tree, root);
        const workspace = await openWorkspace(root, { hold });
        for (let index = 0; index < PATHS_PER_TREE; index++) {
          const path = randomPath(dice, tree, root);
          const keepLink = dice.chance(20);
          const answer = reference(tree, root, path, keepLink);
          const label = `seed ${SEED}, path ${done + index}: ${JSON.stringify(path)}`;
          const got = await outcome(resolved(workspace, path, keepLink));
          if (got !== expectedResolve(answer)) expect(got, label).toBe(expectedResolve(answer));
          if ("fault" in answer) inside.refused += 1;
          else inside[answer.thing ? "found" : "missing"] += 1;

          if (index % READ_EVERY === 0) {
            const read = workspace.read(path).then(({ bytes }) => Buffer.from(bytes).toString());
            const expected = expectedRead(reference(tree, root, path, false));
            expect(await outcome(read), label).toBe(expected);
          }
          if (index % KERNEL_EVERY === 0 && !keepLink && !("fault" in answer) && answer.thing)
            expect(
              realpathSync.native(path.startsWith("/") ? path : `${root}/${path}`),
              label,
            ).toBe(join(root, ...answer.names));
          if (index % CHANGE_EVERY === 0) {
            const written = workspace.write(path, label).then((info) => info.path);
            const expected = expectedWrite(tree, reference(tree, root, path, false), label);
            expect(await outcome(written), label).toBe(expected);
            const other = randomPath(dice, tree, root);
            const removed = workspace.remove(other).then(() => "removed");
            expect(await outcome(removed), `${label}, then ${JSON.stringify(other)}`).toBe(
              expectedRemove(tree, reference(tree, root, other, true)),
            );
          }
        }
        await workspace.close();
        expect(flat(snapshot(root)), `seed ${SEED}`).toEqual(flat(tree));
      }
      for (const folder of ["outside", "ws-evil"])
        expect(flat(snapshot(join(base, folder)))).toEqual(["/", "/secret = outside"]);
      // It would prove little if all of them were refused.
      for (const count of Object.values(inside)) expect(count).toBeGreaterThan(PATHS / 50);
      if (process.env["GYRE_PATHS"]) console.log({ hold, seed: SEED, paths: PATHS, ...inside });
    },
  );
});
