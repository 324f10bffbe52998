import type { Environment } from "../../../core/io.ts";
import { parseBackground, readColorVariable } from "./background.ts";
import { loadTheme, type Styles, ThemeError } from "./themes.ts";

export interface ThemeChoice {
  /** The setting: `auto`, or the name of a theme. */
  theme: string;
  /** What the terminal said of its background, if it did. */
  answer: string | undefined;
  env: Environment;
  cwd: string;
}

/**
 * What the theme changes. `auto` is light or dark, as the terminal says, else as COLORFGBG does; where neither is known, nothing
 * changes. `problem`: why the theme that is named cannot be used.
 */
export function chooseTheme({ theme, answer, env, cwd }: ThemeChoice): {
  styles: Styles;
  problem?: string;
} {
  const name =
    theme === "auto"
      ? (parseBackground(answer ?? "") ?? readColorVariable(env["COLORFGBG"]))
      : theme;
  if (name === undefined) return { styles: {} };
  try {
    return { styles: loadTheme(name, { env, cwd }) };
  } catch (error) {
    if (!(error instanceof ThemeError)) throw error;
    return { styles: {}, problem: error.message };
  }
}
