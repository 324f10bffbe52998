import { createKeyStore } from "@gyre/ai/node";
import { type ModelChoice, modelValue } from "../text/choices.ts";
import { openModels } from "./models.ts";
import { keyPlaces } from "./service-places.ts";
import type { Policy } from "../policy/policy.ts";
import type { Settings } from "../settings/settings.ts";
import type { Environment } from "../core/environment.ts";

/** More than a menu can show. */
const MAX_CHOICES = 200;

/** The models of the services that there is a key for, and those of the user's own. */
export async function usableModels(
  settings: Settings,
  env: Environment,
  policy: Policy | undefined,
): Promise<readonly ModelChoice[]> {
  const [models, places] = await Promise.all([
    openModels({ settings, env, policy }),
    keyPlaces(env, createKeyStore({ env })),
  ]);
  const own = new Set(Object.keys(settings.models ?? {}));
  const usable = (await models.list()).filter(
    ({ provider }) => places.has(provider) || own.has(provider),
  );
  // A dated id beside the plain one would be the same line twice.
  const choices = new Map<string, ModelChoice>();
  for (const { provider, id, name, contextWindow, price } of usable) {
    const key = `${provider}/${name}`;
    const value = modelValue({ provider, id });
    const other = choices.get(key);
    if (other && value.length >= other.value.length) continue;
    choices.set(key, {
      value,
      name,
      ...(contextWindow !== undefined && { contextWindow }),
      ...(price && { price }),
    });
  }
  return sortNewestFirst([...choices.values()]).slice(0, MAX_CHOICES);
}

/** A number with as many digits is a date. */
const DATE_DIGITS = 6;

/** Families (names that differ in numbers alone) in the order of their first model; within each the highest number first. */
export function sortNewestFirst(choices: readonly ModelChoice[]): ModelChoice[] {
  const families = new Map<string, ModelChoice[]>();
  for (const choice of choices) {
    const family = findFamily(choice);
    families.set(family, [...(families.get(family) ?? []), choice]);
  }
  return [...families.values()].flatMap((family) => family.toSorted(compareVersions));
}

function findFamily({ value, name }: ModelChoice): string {
  const [service = ""] = value.split("/", 1);
  return `${service}/${name
    .replaceAll(/[\d.]+/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()}`;
}

function compareVersions(one: ModelChoice, other: ModelChoice): number {
  const [numbers, others] = [readVersion(one), readVersion(other)];
  for (let index = 0; index < Math.max(numbers.length, others.length); index++) {
    const difference = (others[index] ?? 0) - (numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function readVersion({ name }: ModelChoice): number[] {
  const numbers = name.match(/\d+/g) ?? [];
  return numbers.filter((digits) => digits.length < DATE_DIGITS).map(Number);
}
