import { projectModels } from "./models.ts";
import { type ProjectFile, readProjectFile } from "./project-file.ts";
import { settingsIn } from "./file.ts";
import {
  allowedOfProject,
  isPluginError,
  runsSomething,
  type SettingsOptions,
  trustedFiles,
  userSettings,
} from "./load.ts";
import { oneLine } from "./problem.ts";
import { shownValue } from "./shown.ts";
import { SETTING_NAMES } from "./table.ts";
import type { Settings } from "./settings.ts";
import {
  computeFingerprint,
  readTrustFile,
  type TrustedFile,
  type TrustedFolders,
  trustFile,
  findTrust,
  writeTrustFile,
} from "./trust.ts";
import type { Environment } from "../core/environment.ts";

const MARGIN = 2;
/** Of what a project's plugins consist of. */
const MAX_SHOWN_FILES = 20;

/** A file of a project that is used once it is trusted: read, shown, and nothing of it run. */
export interface TrustOffer {
  readonly path: string;
  /** What the trust file calls it. */
  readonly key: string;
  /** What is trusted, for people: the folder, or the file. */
  readonly name: string;
  /** What ends the trust when it changes. */
  readonly until: string;
  /** All that is trusted with it, as it was when it was read. */
  readonly files: readonly TrustedFile[];
  /** What it sets or starts: whole lines, safe to show. */
  readonly shown: string;
  /** What is wrong with it or left out of it, a line each. */
  readonly notes: readonly string[];
  /** What it can do, a few words each, the gravest first. */
  readonly powers: readonly string[];
  /** Why it cannot be trusted as it is: a sentence. */
  readonly refusal?: string;
}

/** What the settings file of a project would set. */
export async function settingsOffer(
  project: ProjectFile,
  options: SettingsOptions,
): Promise<TrustOffer> {
  const { cwd, home } = options;
  const { folder, path } = project;
  const about = { path, key: folder, name: folder };
  const read = readProjectFile(project, cwd);
  if ("problem" in read) {
    const refusal = oneLine(`${path} cannot be trusted: it ${read.problem}.`);
    return { ...about, until: "", files: [], shown: "", notes: [], powers: [], refusal };
  }
  const { settings, problems } = await settingsIn(read.content, path, home);
  // What a project may set depends on it.
  const { settings: users } = await userSettings(options);
  const { settings: used, refused } = await allowedOfProject(settings, users);
  const notes = [...problems.map(({ text }) => text), ...refused].map(oneLine);
  const sets = `${oneLine(path)} sets:\n${listed(used)}`;
  const offer = { ...about, notes, powers: listPowers(used) };
  if (problems.some(({ level }) => level === "error")) {
    const refusal = oneLine(`${path} is not trusted. Fix it first.`);
    return { ...offer, until: "", files: [], shown: sets, refusal };
  }
  const keys = keysSent(settings, users).map((line) => `${oneLine(line)}\n`);
  const shown = [sets, ...keys].join("");
  try {
    const files = await trustedFiles(project, read.content, settings);
    const runs = runsSomething(settings) ? whatRuns(files) : "";
    const until = files.length > 1 ? "one of the files" : "the file";
    return { ...offer, until, files, shown: shown + runs };
  } catch (error) {
    if (!isPluginError(error)) throw error;
    return { ...offer, until: "", files: [], shown, refusal: oneLine(`${error.message}.`) };
  }
}

/**
 * Has it used from now on, as long as it stays as it was read; gives the sentence that says
 * so. Throws `TrustFileError`.
 */
export function storeTrust(offer: TrustOffer, env: Environment, home: string): string {
  const { files, key, name, until } = offer;
  const store = trustFile(env, home);
  const folders = readTrustFile(store);
  const before = findTrust(folders, key, files);
  writeTrustFile(store, new Map([...folders, [key, computeFingerprint(files)]]));
  const still = before === "trusted" ? "still" : "now";
  return `${oneLine(name)} is ${still} trusted, until ${until} changes.`;
}

/** Before the name of what is left out: it is not asked about again as long as it stays as it was. */
const LEFT_OUT = "left out: ";

/** Has it left out without a question from now on, as long as it stays as it was read. Throws `TrustFileError`. */
export function storeLeftOut({ files, key }: TrustOffer, env: Environment, home: string): void {
  const store = trustFile(env, home);
  const print = computeFingerprint(files);
  writeTrustFile(store, new Map([...readTrustFile(store), [LEFT_OUT + key, print]]));
}

/** Whether the user wants no question about it, as it is now. */
export function isLeftOut(folders: TrustedFolders, { files, key }: TrustOffer): boolean {
  return folders.get(LEFT_OUT + key) === computeFingerprint(files);
}

/** What settings can do beside setting something. */
function listPowers(settings: Settings): string[] {
  const { allow = [], hooks, mcp, mode, models, plugins = [] } = settings;
  const powers: [boolean, string][] = [
    [hooks !== undefined, "runs programs (hooks)"],
    [plugins.length > 0, "runs code (plugins)"],
    [mcp !== undefined, "starts servers (MCP)"],
    [models?.["services"] !== undefined, "sends what is said to services of its own"],
    [allow.length > 0 || mode !== undefined, "decides what is done without asking"],
  ];
  const held = powers.filter(([isHeld]) => isHeld).map(([, power]) => power);
  return held.length > 0 ? held : ["changes settings"];
}

function listed(settings: Settings): string {
  const lines = SETTING_NAMES.filter((name) => settings[name] !== undefined).map(
    (name) => `${" ".repeat(MARGIN)}${name}: ${shownValue(settings[name], MARGIN)}\n`,
  );
  return lines.length > 0 ? lines.join("") : `${" ".repeat(MARGIN)}nothing\n`;
}

/** What is read and run with the file. */
function whatRuns(files: readonly TrustedFile[]): string {
  const about = "Its plugins, hooks and servers run with all your rights, outside of the sandbox.";
  return `${about}${listFiles(files)}`;
}

/** The files that are trusted with a settings file, which is the first: the end of a paragraph. */
export function listFiles([_settings, ...files]: readonly TrustedFile[]): string {
  const shown = files.slice(0, MAX_SHOWN_FILES).map(({ name }) => `${oneLine(name)}\n`);
  const more = files.length - shown.length;
  const lines = [...shown, ...(more > 0 ? [`and ${more} more\n`] : [])];
  const list = lines.map((line) => " ".repeat(MARGIN) + line).join("");
  const about = "The agent cannot change these files, which are trusted as they are now:";
  return list === "" ? "\n" : ` ${about}\n${list}`;
}

/** Which keys a service of the project would get: a name may be chosen for its variable. */
function keysSent({ models }: Settings, users: Settings): string[] {
  if (!models) return [];
  const { keyVariables } = projectModels(models, users.models);
  return Object.entries(keyVariables).map(
    ([id, variable]) =>
      `The service "${id}" is sent the key in ${variable}, or the one that was stored with gyre login ${id}.`,
  );
}
