import { resolve } from "node:path";
import type { Draft } from "@gyre/coding/internal/settings/file";
import { mustBe, type SettingsOptions, takeText } from "@gyre/coding/internal/settings/load";
import {
  findSetting,
  SETTING_NAMES,
  type SettingName,
  SETTINGS,
} from "@gyre/coding/internal/settings/table";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { UsageError } from "./exit-codes.ts";
import type { Values } from "./options.ts";

/** Where settings are looked for. `start` is what paths on the command line are from. */
type Place = Pick<SettingsOptions, "env" | "cwd" | "start" | "home">;

/**
 * How settings are loaded for a command line: its options take precedence over files and
 * variables. Rejects with `UsageError` for all that is wrong with it.
 */
export async function readFlags(values: Values, place: Place): Promise<SettingsOptions> {
  const { config, trust = false } = values;
  const { cwd, start = cwd } = place;
  return {
    ...place,
    given: { source: "command line", settings: await readSettings(values, place) },
    trustOnce: trust,
    ...(config !== undefined && { userFile: { path: resolve(start, config), by: "--config" } }),
  };
}

async function readSettings(values: Values, place: Place): Promise<Settings> {
  const given: Readonly<Record<string, unknown>> = values;
  const settings: Draft = {};
  const problems: string[] = [];
  for (const key of SETTING_NAMES) {
    const { flag, kind } = SETTINGS[key];
    const value = flag === undefined ? undefined : given[flag];
    if (flag === undefined || value === undefined) continue;
    const fits =
      typeof value === "string"
        ? takeText(settings, key, value, place)
        : takeValue(settings, key, flag.startsWith("no-") ? !value : value);
    if (!fits) problems.push(await mustBe(`--${flag}`, value, kind));
  }
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
  return settings;
}

function takeValue<K extends SettingName>(settings: Draft, key: K, value: unknown): boolean {
  const { kind } = findSetting(key);
  if (!kind.is(value)) return false;
  settings[key] = value;
  return true;
}
