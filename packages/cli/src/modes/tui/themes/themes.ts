import { homedir } from "node:os";
import { join } from "node:path";
import { errorMessage, isRecord } from "@gyre/ai";
import { configFolder, type FileContent, readSmallFile } from "@gyre/coding/internal/settings/file";
import { findProjectFile, readProjectFile } from "@gyre/coding/internal/settings/project-file";
import type { Environment } from "../../../core/io.ts";
import { COLORS, type Theme } from "../terminal/theme.ts";
import type { Background } from "./background.ts";
import { ALLOWED_STYLES, parseStyle } from "./styles.ts";

/** What a theme changes of the usual one. */
export type Styles = Partial<Theme>;

/** A theme that cannot be used, and why. */
export class ThemeError extends Error {
  readonly code = "invalid_theme";
  override readonly name = "ThemeError";
}

const FOLDER = "themes";
/** Terminals that have 256 colors without a TERM that says so. */
const MANY_COLORS = /256|direct|kitty|ghostty|alacritty|foot|wezterm/;

/** Blue is hard to read on black, and yellow, cyan and green are on white. */
const BUILT_IN: Readonly<Record<Background, Styles>> = {
  dark: { prompt: "48;5;236", link: "4;38;5;75", call: "38;5;75" },
  light: {
    prompt: "48;5;254",
    accent: "38;5;30",
    title: "1;4;38;5;30",
    heading: "1;38;5;30",
    code: "38;5;30",
    good: "38;5;28",
    warning: "38;5;130",
    added: "38;5;28",
    string: "38;5;28",
    number: "38;5;130",
    type: "38;5;30",
  },
};

export interface ThemeOptions {
  env: Environment;
  /** Below it and above it the project's themes are looked for. */
  cwd: string;
}

/**
 * The styles of a theme by its name: `light`, `dark`, or that of a file `themes/NAME.json` in the user's configuration, else
 * in `.gyre` of the project. Throws `ThemeError` where there is none, or one that is wrong.
 */
export function loadTheme(name: string, { env, cwd }: ThemeOptions): Styles {
  const hasTrueColor = /^(?:truecolor|24bit)$/.test(env["COLORTERM"] ?? "");
  const hasMany = hasTrueColor || MANY_COLORS.test(env["TERM"] ?? "");
  if (name === "light" || name === "dark") return hasMany ? BUILT_IN[name] : {};
  const { path, file } = findFile(name, env, cwd);
  const where = `The theme "${name}" (${path})`;
  if ("problem" in file) throw new ThemeError(`${where} ${file.problem}.`);
  const { base, colors } = readFile(where, file.content.toString("utf8"));
  const inherited = base !== undefined && hasMany ? BUILT_IN[base] : {};
  const own = Object.entries(colors).map(([key, value]) => {
    const style = typeof value === "string" ? parseStyle(value, hasTrueColor) : undefined;
    if (!Object.hasOwn(COLORS, key)) {
      const known = Object.keys(COLORS).join(", ");
      throw new ThemeError(`${where}: there is nothing called "${key}". There are: ${known}.`);
    }
    if (style === undefined) {
      const given = JSON.stringify(value);
      throw new ThemeError(`${where}: "${key}" must be ${ALLOWED_STYLES}. It is ${given}.`);
    }
    return [key, style] as const;
  });
  return { ...inherited, ...Object.fromEntries(own) };
}

function findFile(
  name: string,
  env: Environment,
  cwd: string,
): { path: string; file: FileContent } {
  const home = env["HOME"] || homedir();
  const path = join(configFolder(env, home), FOLDER, `${name}.json`);
  const file = readSmallFile(path);
  if (file) return { path, file };
  const ofProject = findProjectFile(cwd, home, join(".gyre", FOLDER, `${name}.json`));
  if (ofProject) return { path: ofProject.path, file: readProjectFile(ofProject, cwd) };
  throw new ThemeError(
    `There is no theme "${name}": neither ${path} nor .gyre/${FOLDER}/${name}.json of the project. There are auto, light, dark and those files.`,
  );
}

function readFile(
  where: string,
  text: string,
): { base?: Background; colors: Readonly<Record<string, unknown>> } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ThemeError(`${where} is not JSON: ${errorMessage(error)}`, { cause: error });
  }
  const { base, colors = {}, ...others } = isRecord(value) ? value : { colors: value };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new ThemeError(`${where} has "base" and "colors", and no "${unknown}".`);
  }
  if (base !== undefined && base !== "light" && base !== "dark") {
    const given = JSON.stringify(base);
    throw new ThemeError(`${where}: "base" must be "light" or "dark". It is ${given}.`);
  }
  if (!isRecord(colors)) {
    throw new ThemeError(
      `${where} must be an object such as { "base": "dark", "colors": { "accent": "#ff8800" } }.`,
    );
  }
  return { ...(base !== undefined && { base }), colors };
}
