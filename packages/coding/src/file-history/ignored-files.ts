import { existsSync, lstatSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import type { ToolInvocation } from "@gyre/agent";
import { isGuarded } from "@gyre/tools";
import type { LeftOut } from "./lines/line.ts";

/** Entries of folders that are looked at before a command that deletes. */
const MAX_ENTRIES = 5_000;
/** Files that are copied before one. */
const MAX_IGNORED_FILES = 500;

/** Words of commands and code that delete files which git ignores. */
const DELETES =
  /\bgit\b[^;&|\n]*\b(?:clean|stash)\b|\b(?:rm|unlink|rimraf|trash|shred|truncate|mv)\b|-delete\b|\b(?:rmtree|rmSync|unlinkSync|os\.remove)\b/;

/** Folders that package managers and builds make again: too large to be kept. */
const MADE_AGAIN = new Set(
  (
    "node_modules bower_components .venv venv target dist build out coverage .next .nuxt .output .cache .turbo .parcel-cache " +
    ".gradle .tox .nox __pycache__ .pytest_cache .mypy_cache .ruff_cache .svelte-kit .angular .yarn .pnpm-store"
  ).split(" "),
);

/** What a command may delete that the history does not look at otherwise. */
export interface EndangeredFiles {
  /** Files to be kept before it runs, from the workspace. */
  paths: string[];
  /** What is there and is not kept. */
  unkept: (LeftOut & { absolute: string })[];
}

/** The command of a call, if it may delete files. */
export async function findDeletingCommand({
  tool,
  args,
}: ToolInvocation): Promise<string | undefined> {
  if (!isGuarded(tool)) return undefined;
  try {
    const { kind, targets } = await tool.access(args);
    const command = targets.join("\n");
    return kind === "run" && DELETES.test(command) ? command : undefined;
  } catch {
    // It is about to fail for the same reason, and deletes nothing.
    return undefined;
  }
}

/** Ignored files that a command may delete. `isKnown`: the history looks at it anyway. */
export function findEndangered(
  command: string,
  { root, cwd, isKnown }: { root: string; cwd: string; isKnown: (path: string) => boolean },
): EndangeredFiles {
  const found: EndangeredFiles = { paths: [], unkept: listOutside(command, root, cwd) };
  const waiting = [""];
  let left = MAX_ENTRIES;
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const entry of listEntries(join(root, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const absolute = join(root, path);
      if (--left < 0 || found.paths.length >= MAX_IGNORED_FILES) {
        found.unkept.push({
          path,
          absolute,
          why: "git ignores it, and there are too many of these",
        });
        return found;
      }
      if (entry.name === ".git" || isKnown(path)) continue;
      if (!entry.isDirectory()) found.paths.push(path);
      else if (MADE_AGAIN.has(entry.name))
        found.unkept.push({
          path: `${path}/`,
          absolute,
          why: "it is ignored, and made again by programs",
        });
      else waiting.push(path);
    }
  }
  return found;
}

/** Of what was not kept, what is gone. */
export function listGone({ unkept }: EndangeredFiles): LeftOut[] {
  return unkept.flatMap(({ absolute, path, why }) => (existsSync(absolute) ? [] : [{ path, why }]));
}

function listEntries(folder: string): ReturnType<typeof readDirents> {
  try {
    return readDirents(folder);
  } catch {
    // Gone meanwhile, or closed to us: the command cannot list it either.
    return [];
  }
}

function readDirents(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}

/** Places outside of the workspace that are named in a command, and are there. */
function listOutside(command: string, root: string, cwd: string): EndangeredFiles["unkept"] {
  const words = command.split(/[\s;&|<>()"'`]+/).filter((word) => /^(?:\/|~\/|\.\.)/.test(word));
  return [...new Set(words)].flatMap((word) => {
    const path = word.replace(/^~(?=\/)/, homedir());
    const absolute = isAbsolute(path) ? join(path) : join(root, cwd, path);
    const isInside = !relative(root, absolute).startsWith(`..${sep}`) && absolute !== "/";
    if (isInside || lstatSync(absolute, { throwIfNoEntry: false }) === undefined) return [];
    return [{ path: word, absolute, why: "it is outside of the workspace" }];
  });
}
