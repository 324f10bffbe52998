import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { settingsError, type SettingsProblem, settingsWarning } from "./problem.ts";
import {
  isSettingName,
  SETTING_NAMES,
  type SettingName,
  findSetting,
  SETTINGS,
  type SettingValue,
} from "./table.ts";
import type { Settings } from "./settings.ts";
import type { Environment } from "../core/environment.ts";

const MAX_FILE_BYTES = 1_048_576;
/** Editors look for the JSON Schema there. */
const SCHEMA_KEY = "$schema";

/** The folder of this program in the user's configuration. */
export function configFolder(env: Environment, home: string): string {
  const folder = env["XDG_CONFIG_HOME"];
  // A relative folder is to be ignored, says the standard of that variable.
  return join(folder && isAbsolute(folder) ? folder : join(home, ".config"), "gyre");
}

/** What is in a file, or why it cannot be read; undefined where there is none. */
export type FileContent = { readonly content: Buffer } | { readonly problem: string };

/** Reads a file that is meant to be small. `flags` are added to those for opening it. */
export function readSmallFile(
  path: string,
  flags = 0,
  maxBytes: number = MAX_FILE_BYTES,
): FileContent | undefined {
  let file: number;
  try {
    // Without waiting: a pipe would keep us until a program writes into it.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  } catch (error) {
    const code = describeCode(error);
    return code === "ENOENT" || code === "ENOTDIR"
      ? undefined
      : { problem: `cannot be opened (${code})` };
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return { problem: "is not a file" };
    if (stats.size > maxBytes) return { problem: `has more than ${maxBytes} bytes` };
    return { content: readFileSync(file) };
  } catch (error) {
    return { problem: `cannot be read (${describeCode(error)})` };
  } finally {
    closeSync(file);
  }
}

export interface FileSettings {
  readonly settings: Settings;
  readonly problems: readonly SettingsProblem[];
}

/**
 * The settings that a file holds, and all that is wrong with it. What is wrong is left out
 * of the settings. Paths in it are from the folder of the file.
 */
export async function settingsIn(
  content: Buffer,
  path: string,
  home: string,
): Promise<FileSettings> {
  const json = await parseJson(content.toString("utf8"));
  if ("problem" in json)
    return { settings: {}, problems: [settingsError(`${path} ${json.problem}`)] };
  const object = json.value;
  if (!SETTINGS.models.kind.is(object)) {
    return { settings: {}, problems: [settingsError(`${path} must hold a JSON object.`)] };
  }
  return readSettings(object, { name: path, folder: dirname(path), home });
}

/** Where settings stand: `name` for people; paths among them are from `folder`. */
export interface SettingsPlace {
  readonly name: string;
  readonly folder: string;
  readonly home: string;
}

/** The settings that an object holds, and all that is wrong with it, which is left out of them. */
export async function readSettings(
  object: Readonly<Record<string, unknown>>,
  { name, folder, home }: SettingsPlace,
): Promise<FileSettings> {
  const problems: SettingsProblem[] = [];
  const settings: Draft = {};
  for (const [key, value] of Object.entries(object)) {
    if (key === SCHEMA_KEY) continue;
    if (isSettingName(key)) {
      const wrong = await take(settings, key, value, folder, home);
      problems.push(...wrong.map((text) => settingsError(`${name}: ${text}`)));
    } else {
      const { didYouMean } = await import("./shown.ts");
      // Without its value, which may be a secret.
      const text = `${name}: "${key}" is no setting.${didYouMean(key, SETTING_NAMES)}`;
      problems.push(settingsWarning(text));
    }
  }
  return { settings, problems };
}

/** Settings that are being put together. */
export type Draft = { [K in SettingName]?: SettingValue<K> };

/** Puts a value into the settings if it fits; gives what is wrong with it. */
async function take<K extends SettingName>(
  settings: Draft,
  key: K,
  value: unknown,
  folder: string,
  home: string,
): Promise<readonly string[]> {
  const { kind, from } = findSetting(key);
  if (!kind.is(value)) {
    const { shownBriefly } = await import("./shown.ts");
    return [`${key} is ${shownBriefly(value)}, but must be ${kind.allowed}.`];
  }
  const wrong = await findProblems(key, value);
  if (wrong.length > 0) return wrong.map((text) => `${key}: ${text}.`);
  settings[key] = from ? from(value, folder, home) : value;
  return [];
}

/** What is wrong inside of a value that has the right type. */
async function findProblems(key: SettingName, value: unknown): Promise<readonly string[]> {
  if (key === "models" && SETTINGS.models.kind.is(value)) {
    return (await import("./models.ts")).modelProblems(value);
  }
  if (key === "mcp" && SETTINGS.mcp.kind.is(value)) {
    return (await import("@gyre/mcp")).readMcpServers(value).problems;
  }
  if (key === "hooks" && SETTINGS.hooks.kind.is(value)) {
    return (await import("./hooks.ts")).parseHooks(value).problems;
  }
  if (key === "keys" && SETTINGS.keys.kind.is(value)) {
    return (await import("./terminal/key-problems.ts")).keyProblems(value);
  }
  if (key === "statusLine" && SETTINGS.statusLine.kind.is(value)) {
    return (await import("./terminal/status-line.ts")).statusLineProblems(value);
  }
  return [];
}

export type Parsed = { readonly value: unknown } | { readonly problem: string };

/** The value of a JSON text, or what is wrong with it, without quoting it. */
export async function parseJson(text: string): Promise<Parsed> {
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    return { value };
  } catch {
    // The message of that error quotes the file, and names no place.
    const { parseJsonText } = await import("@gyre/ai");
    const result = parseJsonText(text);
    if (result.ok) return result;
    const { line, column, error } = result;
    return { problem: `is not JSON: line ${line}, column ${column}: ${error}` };
  }
}

export function describeCode(error: unknown): string {
  if (error instanceof Error && "code" in error) return String(error.code);
  return error instanceof Error ? error.message : String(error);
}
