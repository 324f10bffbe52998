import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";
import { defaultSessionFolder } from "@gyre/sessions";
import { UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import type { Ceilings } from "@gyre/coding/internal/harness/ceilings";
import type { Setup } from "../../core/setup.ts";
import type { Models } from "@gyre/coding/internal/models/models";
import { configFolder } from "@gyre/coding/internal/settings/file";
import { modelValue } from "@gyre/coding/internal/text/choices";

export interface CeilingsOptions {
  values: Values;
  setup: Pick<Setup, "settings" | "cwd" | "policy">;
  models: Models;
  io: Pick<Io, "cwd" | "env">;
  /** The file with the token, where there is one. */
  tokenFile?: string | undefined;
}

/** What the command line lets sessions of a server have at most. Throws `UsageError`. */
export async function readCeilings(options: CeilingsOptions): Promise<Ceilings> {
  const { values, setup, io, tokenFile } = options;
  const { mode = "ask", tools } = setup.settings;
  const models = await readModels(options);
  const state = dirname(defaultSessionFolder(io.env));
  return {
    mode: setup.policy?.lowerMode(mode) ?? mode,
    ...(tools && { tools }),
    ...(models && { models }),
    roots: values.root?.map((root) => realFolder(resolve(io.cwd, root))) ?? [realFolder(setup.cwd)],
    unsandboxed: values["allow-unsandboxed"] ?? false,
    secret: [
      configFolder(io.env, io.env["HOME"] || homedir()),
      state,
      ...(tokenFile === undefined ? [] : [tokenFile]),
    ],
  };
}

/** The names of `--models`, as service/id. */
async function readModels({ values, models }: CeilingsOptions): Promise<string[] | undefined> {
  if (values.models === undefined) return undefined;
  const names = values.models.split(",").map((name) => name.trim());
  const found = await Promise.all(names.map(async (name) => modelValue(await models.find(name))));
  if (values.model !== undefined && !found.includes(modelValue(await models.find(values.model)))) {
    throw new UsageError(`--model ${values.model} is not one of --models ${values.models}.`);
  }
  return found;
}

function realFolder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return realpathSync(path);
  throw new UsageError(`--root "${path}": there is no such folder.`);
}
