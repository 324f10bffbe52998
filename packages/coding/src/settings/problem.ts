import { plainText } from "../text/plain-text.ts";

/** Something about the settings that a person should know. */
export interface SettingsProblem {
  /** `error`: nothing can be run with these settings. */
  readonly level: "error" | "warning";
  /** One line, safe to show in a terminal, without keys. */
  readonly text: string;
}

export function settingsError(text: string): SettingsProblem {
  return { level: "error", text: oneLine(text) };
}

export function settingsWarning(text: string): SettingsProblem {
  return { level: "warning", text: oneLine(text) };
}

/** Names of files and keys are written by others. */
export function oneLine(text: string): string {
  return plainText(text).replaceAll("\n", " ");
}
