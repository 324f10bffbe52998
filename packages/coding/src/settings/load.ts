import { join, relative, resolve, sep } from "node:path";
import { applyToolChanges } from "../core/tool-lists.ts";
import { CodingAgentError } from "../core/errors.ts";
import {
  findClaudeFiles,
  findProjectFile,
  type ProjectFile,
  readProjectFile,
  realPath,
} from "./project-file.ts";
import { configFolder, type Draft, type FileSettings, readSmallFile, settingsIn } from "./file.ts";
import { settingsError, type SettingsProblem, settingsWarning } from "./problem.ts";
import {
  type Kind,
  type ProjectRule,
  SETTING_NAMES,
  type SettingName,
  findSetting,
  SETTINGS,
} from "./table.ts";
import type { Settings } from "./settings.ts";
import { parseModelName } from "../text/model-name.ts";
import { shellWord } from "../text/shell-word.ts";
import type { Environment } from "../core/environment.ts";
import type { TrustedFile } from "./trust.ts";

/** The sources of settings, the first to be replaced first. */
export type SettingsSource =
  | "policy file"
  | "user file"
  | "Claude Code file"
  | "project file"
  | "environment"
  | "command line"
  | "program";

/** What an administrator allows at most, whatever sets more: see `Policy`. */
export interface SettingsPolicy {
  /** The file that says so. */
  readonly path: string;
  /** Rules that are added to those of all sources. */
  readonly added: Pick<Settings, "ask" | "deny">;
  /** Why settings of projects are not used, as a sentence; nothing where they may be. */
  readonly refusesProjects: string | undefined;
  /** The settings as far as they are allowed, with a sentence for each that is not. */
  lower(settings: Settings): { settings: Settings; refused: readonly string[] };
}

export interface SettingsOptions {
  /** Given on purpose, also where there is none. */
  policy: SettingsPolicy | undefined;
  env: Environment;
  /** The folder to work in, absolute. */
  cwd: string;
  /** What paths in variables are from. Default: `cwd`. */
  start?: string;
  /** The home folder of the user. */
  home: string;
  /** What was asked for just now, by the command line or by the program that has the agent. */
  given?: SettingsLayer;
  /** A file in place of the user's own, absolute; `by` says where it is named. */
  userFile?: { readonly path: string; readonly by: string };
  /** False: neither files nor variables are read. Default: true. */
  readsFiles?: boolean;
  /** The project's settings are used without being trusted. Default: false. */
  trustOnce?: boolean;
  /** Warns of nothing that is left out for want of trust: the caller asks about that. */
  quietAboutTrust?: boolean;
  /** The same for files that other agents read as well: `.mcp.json` and the settings of Claude Code. */
  quietAboutShared?: boolean;
}

/** A file that was looked for. */
export interface SettingsFile {
  readonly of: "policy file" | "user file" | "Claude Code file" | "project file";
  readonly path: string;
  /**
   * `changed`: it was trusted when it had another content. `refused`: it could not be
   * read, or is no part of the project. `invalid`: nothing runs before it is fixed.
   */
  readonly state: "used" | "missing" | "not trusted" | "changed" | "refused" | "invalid";
}

/** What one source sets. */
export interface SettingsLayer {
  readonly source: SettingsSource;
  readonly settings: Settings;
}

export interface LoadedSettings {
  readonly settings: Settings;
  /** The source of each; of those that add up, the last. */
  readonly sources: Readonly<Partial<Record<SettingName, SettingsSource>>>;
  /** What each source sets, the first to be replaced first. */
  readonly layers: readonly SettingsLayer[];
  readonly files: readonly SettingsFile[];
}

/** The settings cannot be used. `problems` has all that is wrong, a line each. */
export class SettingsError extends CodingAgentError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super("bad_settings", problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * Reads all that is set, wherever it is. `warn` gets a line at a time about keys that are
 * not known, and of a project's settings that are not used. Rejects with `SettingsError` for
 * all that is wrong with files and variables.
 */
export async function loadSettings(
  options: SettingsOptions & { warn: (text: string) => void },
): Promise<LoadedSettings> {
  const { problems, ...loaded } = await inspectSettings(options);
  const errors: string[] = [];
  for (const { level, text } of problems) {
    if (level === "error") errors.push(text);
    else options.warn(text);
  }
  if (errors.length > 0) throw new SettingsError(errors);
  return loaded;
}

/**
 * As `loadSettings`, but gives what is wrong instead of rejecting with it.
 */
export async function inspectSettings(
  options: SettingsOptions,
): Promise<LoadedSettings & { readonly problems: readonly SettingsProblem[] }> {
  const { given, readsFiles = true } = options;
  const own = given ? [{ ...given, settings: withLevel(given.settings) }] : [];
  if (!readsFiles) {
    return underPolicy(
      await withOwnRules({ layers: own, files: [], problems: [] }, options),
      options,
    );
  }
  const user = await userSettings(options);
  const project = await projectSettings(options, user);
  const environment = await variableSettings(options);
  const claude =
    findClaudeFiles(options).length > 0
      ? await (await import("./claude-settings.ts")).readClaudeSettings(options)
      : { layers: [], files: [], problems: [] };
  const layers: SettingsLayer[] = [
    { source: "user file", settings: withLevel(user.settings) },
    ...claude.layers,
    { source: "project file", settings: withLevel(project?.settings ?? {}) },
    { source: "environment", settings: withLevel(environment.settings) },
    ...own,
  ];
  const found = {
    layers,
    files: [user.file, ...claude.files, ...(project ? [project.file] : [])],
    problems: [
      ...user.problems,
      ...claude.problems,
      ...(project?.problems ?? []),
      ...environment.problems,
    ],
  };
  return underPolicy(await withOwnRules(found, options), options);
}

/** Rules that are written as Claude Code has them become ours, wherever they are. */
async function withOwnRules(found: Found, options: SettingsOptions): Promise<Found> {
  const isForeign = ({ settings: { allow = [], ask = [], deny = [] } }: SettingsLayer): boolean =>
    [...allow, ...ask, ...deny].some((rule) => CLAUDE_RULE.test(rule));
  if (!found.layers.some(isForeign)) return found;
  const { translateLists } = await import("./claude/rules.ts");
  const place = { cwd: realPath(options.cwd), home: options.home };
  const problems = [...found.problems];
  const layers = found.layers.map(({ source, settings }) => {
    const { lists, failed } = translateLists(settings, place);
    problems.push(...failed.map((rule) => settingsError(`${source}: ${rule} has no equal here.`)));
    return { source, settings: lists };
  });
  return { ...found, layers, problems };
}

/** Tools of Claude Code have names that begin with a capital letter. */
const CLAUDE_RULE = /^\s*(?:[A-Z]|mcp__)/;

type Found = Pick<Inspected, "layers" | "files" | "problems">;
type Inspected = Awaited<ReturnType<typeof inspectSettings>>;

/** What was asked for just now and is not allowed is an error; anything else is lowered, with a warning. */
function underPolicy(
  { layers, files, problems }: Found,
  { policy, trustOnce = false }: SettingsOptions,
): Inspected {
  if (!policy) return { ...merged(layers), layers, files, problems };
  const refusals: SettingsProblem[] = [];
  const { refusesProjects, path } = policy;
  if (trustOnce && refusesProjects !== undefined) refusals.push(settingsError(refusesProjects));
  const lowered = layers.map(({ source, settings: given }): SettingsLayer => {
    const { settings, refused } = policy.lower(given);
    const isAsked = source === "command line" || source === "program";
    const from = isAsked ? "" : `${source}: `;
    refusals.push(
      ...refused.map((text) => (isAsked ? settingsError : settingsWarning)(`${from}${text}`)),
    );
    return { source, settings };
  });
  const all: SettingsLayer[] = [{ source: "policy file", settings: policy.added }, ...lowered];
  return {
    ...merged(all),
    layers: all,
    files: [{ of: "policy file", path, state: "used" }, ...files],
    problems: [...problems, ...refusals],
  };
}

/** A level of thinking that is named with the model is set, unless the same source sets another. */
function withLevel(settings: Settings): Settings {
  if (!settings.model?.includes(":")) return settings;
  const { model, thinking } = parseModelName(settings.model);
  return { ...(thinking && { thinking }), ...settings, model };
}

function merged(layers: readonly SettingsLayer[]): Pick<LoadedSettings, "settings" | "sources"> {
  const settings: Draft = {};
  const sources: Partial<Record<SettingName, SettingsSource>> = {};
  for (const { source, settings: given } of layers) {
    for (const key of SETTING_NAMES) {
      if (given[key] === undefined) continue;
      put(settings, key, given);
      sources[key] = source;
    }
  }
  if (settings.tools) settings.tools = applyToolChanges(settings.tools);
  return { settings, sources };
}

function put<K extends SettingName>(settings: Draft, key: K, given: Draft): void {
  const { add } = findSetting(key);
  const earlier = settings[key];
  const later = given[key];
  if (later === undefined) return;
  settings[key] = add && earlier !== undefined ? add(earlier, later) : later;
}

export interface ReadFile extends FileSettings {
  readonly file: SettingsFile;
}

/** Where the user's own file is. `by`: what names it, if it is not the usual one. */
export function findUserFile({
  cwd,
  env,
  home,
  start = cwd,
  userFile,
}: Pick<SettingsOptions, "cwd" | "env" | "home" | "start" | "userFile">): {
  path: string;
  by?: string;
} {
  if (userFile) return userFile;
  const variable = env["GYRE_CONFIG"];
  if (variable) return { path: resolve(start, variable), by: "GYRE_CONFIG" };
  return { path: join(configFolder(env, home), "config.json") };
}

/** What the user's own file sets. */
export async function userSettings(options: SettingsOptions): Promise<ReadFile> {
  const { home } = options;
  const { path, by } = findUserFile(options);
  const read = readSmallFile(path);
  const file = { of: "user file", path } as const;
  if (!read) {
    const problems = by === undefined ? [] : [settingsError(`${by}: there is no file ${path}.`)];
    return { file: { ...file, state: "missing" }, settings: {}, problems };
  }
  if ("problem" in read) {
    const problems = [settingsError(`${path} ${read.problem}.`)];
    return { file: { ...file, state: "refused" }, settings: {}, problems };
  }
  const given = await settingsIn(read.content, path, home);
  return { file: { ...file, state: decideState(given) }, ...given };
}

function decideState({ problems }: FileSettings): SettingsFile["state"] {
  return problems.some(({ level }) => level === "error") ? "invalid" : "used";
}

async function projectSettings(
  options: SettingsOptions,
  user: ReadFile,
): Promise<ReadFile | undefined> {
  const { cwd, env, home, quietAboutTrust, trustOnce = false } = options;
  const project = findProjectFile(cwd, home);
  // A file that the command line names needs no trust.
  if (!project || realPath(project.path) === realPath(user.file.path)) return undefined;
  const { path } = project;
  const unused = (state: SettingsFile["state"], ...texts: readonly string[]): ReadFile => ({
    file: { of: "project file", path, state },
    settings: {},
    problems: texts.map(settingsWarning),
  });
  const refusal = options.policy?.refusesProjects;
  if (refusal !== undefined) {
    return unused("refused", ...(quietAboutTrust ? [] : [`${path} is not used. ${refusal}`]));
  }
  const read = readProjectFile(project, cwd);
  if ("problem" in read) return unused("refused", `${path} is not used: it ${read.problem}.`);
  const given = await settingsIn(read.content, path, home);
  if (!trustOnce) {
    const { readTrustFile, TrustFileError, trustFile, findTrust } = await import("./trust.ts");
    let trust: ReturnType<typeof findTrust>;
    try {
      const folders = readTrustFile(trustFile(env, home));
      // What was never trusted is not looked into any further.
      const files = folders.has(project.folder)
        ? await trustedFiles(project, read.content, given.settings)
        : [];
      trust = findTrust(folders, project.folder, files);
    } catch (error) {
      if (!(error instanceof TrustFileError || isPluginError(error))) throw error;
      const why = quietAboutTrust ? [] : [`${path} is not used: ${error.message}.`];
      return unused("not trusted", ...why);
    }
    if (trust !== "trusted") {
      const isChanged = trust === "changed";
      const what = runsSomething(given.settings) ? "it, or what it runs," : "it";
      const why = isChanged
        ? `${what} has changed since it was trusted`
        : "its folder is not trusted";
      const how = `To see what it sets and trust it: ${trustCommand(project, options)}`;
      const texts = quietAboutTrust ? [] : [`${path} is not used: ${why}. ${how}`];
      return unused(isChanged ? "changed" : "not trusted", ...texts);
    }
  }
  const { settings, refused } = await allowedOfProject(given.settings, user.settings);
  return {
    file: { of: "project file", path, state: decideState(given) },
    settings,
    problems: [...given.problems, ...refused.map((text) => settingsWarning(`${path}: ${text}`))],
  };
}

/** A project's file as it is trusted. */
export function trustedFile(
  { folder, path }: ProjectFile,
  content: Uint8Array,
): { name: string; content: Uint8Array } {
  return { name: relative(folder, path).replaceAll(sep, "/"), content };
}

/** All that is trusted with a project: its file, and what runs because of it. */
export async function trustedFiles(
  project: ProjectFile,
  content: Uint8Array,
  settings: Settings,
): Promise<TrustedFile[]> {
  const files = [trustedFile(project, content)];
  if (!runsSomething(settings)) return files;
  const { filesThatRun } = await import("./files-that-run.ts");
  return [...files, ...filesThatRun(settings, project.folder)];
}

/** Whether settings name what runs outside of the sandbox. */
export function runsSomething({ hooks, mcp, plugins }: Settings): boolean {
  return hooks !== undefined || mcp !== undefined || plugins !== undefined;
}

/** What runs because of a project cannot be trusted; its words say why. */
export function isPluginError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "bad_plugin";
}

/** What to type, from the folder that the program was started in. */
function trustCommand({ folder }: ProjectFile, { cwd, start = cwd }: SettingsOptions): string {
  if (start === cwd) return "gyre trust";
  return `gyre trust ${shellWord(folder)}`;
}

/**
 * What is used of a project's settings, though it is trusted: nothing that takes effect
 * outside of it. `refused` has a line for each that is left out.
 */
export async function allowedOfProject(
  given: Settings,
  users: Settings,
): Promise<{ settings: Settings; refused: string[] }> {
  const settings: Draft = { ...given };
  const refused: string[] = [];
  for (const key of SETTING_NAMES) {
    const rule = brokenRule(key, given, users);
    if (!rule) continue;
    delete settings[key];
    const what = rule.not === undefined ? "" : ` if it is ${rule.not}`;
    refused.push(`${key} is not taken from a project${what}. ${rule.why}`);
  }
  if (given.models) {
    const { projectModels } = await import("./models.ts");
    const taken = projectModels(given.models, users.models);
    settings.models = taken.models;
    refused.push(...taken.refused.map((text) => `models: ${text}.`));
  }
  return { settings, refused };
}

function brokenRule<K extends SettingName>(
  key: K,
  given: Draft,
  users: Draft,
): Pick<ProjectRule<unknown>, "not" | "why"> | undefined {
  const rule = findSetting(key).project;
  const value = given[key];
  return value === undefined || rule?.allows(value, users[key]) ? undefined : rule;
}

async function variableSettings(options: SettingsOptions): Promise<FileSettings> {
  const settings: Draft = {};
  const problems: SettingsProblem[] = [];
  for (const key of SETTING_NAMES) {
    const name = SETTINGS[key].env;
    const text = name === undefined ? undefined : options.env[name];
    // Set to nothing is how many a shell unsets.
    if (name === undefined || !text) continue;
    if (!takeText(settings, key, text, options)) {
      problems.push(settingsError(await mustBe(name, text, SETTINGS[key].kind)));
    }
  }
  return { settings, problems };
}

/** Puts the value that a text stands for into the settings. False: it stands for none. */
export function takeText<K extends SettingName>(
  settings: Draft,
  key: K,
  text: string,
  { cwd, start = cwd, home }: Pick<SettingsOptions, "cwd" | "start" | "home">,
): boolean {
  const { kind, from } = findSetting(key);
  const value = kind.read(text);
  if (value === undefined) return false;
  settings[key] = from ? from(value, start, home) : value;
  return true;
}

/** What is wrong with a value, as a sentence. */
export async function mustBe(name: string, value: unknown, kind: Kind<unknown>): Promise<string> {
  const { shownBriefly } = await import("./shown.ts");
  const allowed = typeof value === "string" ? (kind.allowedText ?? kind.allowed) : kind.allowed;
  return `${name} is ${shownBriefly(value)}, but must be ${allowed}.`;
}
