import { lstatSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isWithin, realPlace } from "../../sandbox/places.ts";
import { findRunningKeys, type Setting, splitNames } from "../config.ts";
import { locateRepository } from "../locate.ts";

const GIT_TIMEOUT_MS = 10_000;
const MAX_CONFIG_BYTES = 1024 * 1024;
/** A config without any of these names no file that git runs or reads settings from. */
const NAMES_FILES =
  /hookspath|attributesfile|fsmonitor|include|\[\s*(?:alias|filter|diff|merge|credential|gpg|hook|trailer|difftool|mergetool)|command|program|editor|pager|askpass|proxy/i;
/** Settings that are the path of a file or folder, from the top of the working tree. */
const PATHS = new Set(["core.hookspath", "core.attributesfile"]);
const INCLUDE = /^include(?:if\..*)?\.path$/s;
/** Between the words of a command. */
const BETWEEN_WORDS = /[\s"'`;|&()<>=!]+/;

type Environment = Readonly<Record<string, string | undefined>>;

/** What the settings of the repository around a workspace named when they were last read. */
const known = new Map<string, { texts: string; files: readonly string[] }>();

/**
 * Files and folders in a workspace that the user's settings of git name: hooks, further settings,
 * programs. What is written into them, git runs outside of the sandbox. Some may be missing.
 */
export async function findNamedFiles(root: string, environment: Environment): Promise<string[]> {
  const place = locateRepository(realPlace(root));
  if (place === undefined) return [];
  const home = environment["HOME"];
  const xdg =
    environment["XDG_CONFIG_HOME"] ?? (home === undefined ? undefined : join(home, ".config"));
  const texts = [
    join(place.commonFolder, "config"),
    join(place.folder, "config.worktree"),
    ...(home === undefined ? [] : [join(home, ".gitconfig")]),
    ...(xdg === undefined ? [] : [join(xdg, "git", "config")]),
  ].map(readConfigText);
  if (!texts.some((text) => NAMES_FILES.test(text))) return [];
  const joined = texts.join("\0");
  const before = known.get(root);
  if (before?.texts === joined) return [...before.files];
  const listed = await listWithOrigins(place.tree, environment);
  const inside = listed
    .flatMap(({ origin, setting }) => namedBy(setting, origin, place.tree, home))
    .flatMap((path) => [path, realPlace(path)])
    .filter((path) => isWithin(path, realPlace(root)) && !isWithin(path, place.commonFolder))
    // All of the workspace read-only would leave nothing to do.
    .filter((path) => path !== realPlace(root));
  const files = [...new Set(inside)];
  known.set(root, { texts: joined, files });
  return files;
}

function namedBy(
  setting: Setting,
  origin: string,
  tree: string,
  home: string | undefined,
): string[] {
  const [key, value] = setting;
  const expanded =
    home !== undefined && value.startsWith("~/") ? join(home, value.slice(2)) : value;
  if (INCLUDE.test(key)) return [resolve(dirname(resolve(tree, origin)), expanded)];
  if (PATHS.has(key)) return value === "" ? [] : [resolve(tree, expanded)];
  if (findRunningKeys([setting]).length === 0) return [];
  return value
    .split(BETWEEN_WORDS)
    .filter((word) => word !== "")
    .map((word) => resolve(tree, word))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false);
}

interface Listed {
  /** The file that has it. */
  origin: string;
  setting: Setting;
}

/** To list settings runs nothing that they say. */
async function listWithOrigins(cwd: string, environment: Environment): Promise<Listed[]> {
  const { execFile } = await import("node:child_process");
  const env = {
    PATH: environment["PATH"],
    HOME: environment["HOME"],
    XDG_CONFIG_HOME: environment["XDG_CONFIG_HOME"],
  };
  const args = ["config", "--null", "--list", "--show-origin", "--includes"];
  const options = { cwd, env, timeout: GIT_TIMEOUT_MS, maxBuffer: 8 * MAX_CONFIG_BYTES };
  const output = await new Promise<string>((done) => {
    // Without git there is none to run anything.
    execFile("git", args, options, (error, stdout) => done(error ? "" : stdout));
  });
  const parts = splitNames(output);
  const listed: Listed[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const entry = parts[at + 1] ?? "";
    const end = entry.indexOf("\n");
    const setting: Setting =
      end < 0 ? [entry, "true"] : [entry.slice(0, end), entry.slice(end + 1)];
    listed.push({ origin: (parts[at] ?? "").replace(/^file:/, ""), setting });
  }
  return listed;
}

function readConfigText(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    // A pipe would keep us until a program writes into it, a device for ever.
    if (!stats?.isFile() || stats.size > MAX_CONFIG_BYTES) return "";
    return readFileSync(path, "utf8");
  } catch {
    // Closed to us: then also to the user's git.
    return "";
  }
}
