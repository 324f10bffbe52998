import type { SettingsLayer, SettingsSource } from "@gyre/coding/internal/settings/load";
import { shownValue } from "@gyre/coding/internal/settings/shown";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { SETTING_NAMES, type SettingName, SETTINGS } from "@gyre/coding/internal/settings/table";

/** A setting as it holds. */
export interface SettingRow {
  name: SettingName;
  /** For people, without keys. */
  value: string;
  /** What sets it; empty where nothing does. */
  from: readonly SettingsSource[];
}

/** Each setting, with its value and where that is from. */
export function listSettings(
  settings: Settings,
  layers: readonly SettingsLayer[],
): readonly SettingRow[] {
  return SETTING_NAMES.map((name) => {
    const value = settings[name];
    if (value === undefined) return { name, value: describeUnset(name), from: [] };
    return { name, value: shownValue(value), from: listOrigins(name, layers) };
  });
}

/** The sources that set a value: the last one, or all of them where values add up. */
export function listOrigins(name: SettingName, layers: readonly SettingsLayer[]): SettingsSource[] {
  const all = layers.filter(({ settings }) => settings[name] !== undefined);
  const sources = all.map(({ source }) => source);
  return SETTINGS[name].add ? sources : sources.slice(-1);
}

/** What holds where nothing sets it. */
function describeUnset(name: SettingName): string {
  const { otherwise, standard } = SETTINGS[name];
  return standard === undefined ? (otherwise ?? "not set") : shownValue(standard);
}
