import { resolve } from "node:path";
import { findPolicyPlace, readPolicy } from "@gyre/coding/internal/policy/file";
import type { Policy } from "@gyre/coding/internal/policy/policy";
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
import type { Io } from "./io.ts";
import type { Values } from "./options.ts";

/** Where settings are looked for. `start` is what paths on the command line are from. */
type Place = Pick<SettingsOptions, "env" | "cwd" | "start" | "home"> & Pick<Io, "policyPlace">;

/** Settings as a command line has them, under the policy of the machine. */
export type FlagOptions = SettingsOptions & { policy: Policy | undefined };

/** What settings are read with, of what a command has. */
export function pickPlace({ env, policyPlace }: Io): Pick<Place, "env" | "policyPlace"> {
  return { env, ...(policyPlace && { policyPlace }) };
}

/** The policy of the machine, which holds for every command that works with settings or models. */
export async function readMachinePolicy({
  policyPlace = findPolicyPlace(),
}: Pick<Io, "policyPlace">): Promise<Policy | undefined> {
  return readPolicy(policyPlace);
}

/**
 * How settings are loaded for a command line: its options take precedence over files and
 * variables. Rejects with `UsageError` for all that is wrong with it.
 */
export async function readFlags(
  values: Values,
  { policyPlace, ...place }: Place,
): Promise<FlagOptions> {
  const { config, trust = false } = values;
  const { cwd, start = cwd } = place;
  return {
    ...place,
    policy: await readMachinePolicy({ ...(policyPlace && { policyPlace }) }),
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
        : takeValue(settings, key, flag.startsWith("no-") ? !value : value, place);
    if (!fits) problems.push(await mustBe(`--${flag}`, value, kind));
  }
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
  return settings;
}

function takeValue<K extends SettingName>(
  settings: Draft,
  key: K,
  value: unknown,
  { cwd, start = cwd, home }: Place,
): boolean {
  const { kind, from } = findSetting(key);
  if (!kind.is(value)) return false;
  settings[key] = from ? from(value, start, home) : value;
  return true;
}
