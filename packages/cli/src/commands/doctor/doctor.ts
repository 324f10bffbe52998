import { homedir } from "node:os";
import { resolve } from "node:path";
import type { Model } from "@gyre/ai";
import { createKeyStore } from "@gyre/ai/node";
import type { ServicePreset } from "@gyre/ai/providers";
import { createSandbox, type Sandbox } from "@gyre/tools";
import {
  type Check,
  checkGit,
  checkKeys,
  checkModel,
  checkNode,
  checkPlatform,
  checkPolicy,
  checkProcesses,
  checkProxies,
  checkRipgrep,
  checkSandbox,
  checkSessions,
  checkSettings,
  checkTerminal,
  findKeys,
} from "./checks.ts";
import { checkExtensions } from "./extensions.ts";
import { checkRaces } from "./races.ts";
import { EXIT } from "../../core/exit-codes.ts";
import { pickPlace, readFlags } from "../../core/flag-settings.ts";
import type { Io } from "../../core/io.ts";
import { openModels } from "@gyre/coding/internal/models/models";
import type { Values } from "../../core/options.ts";
import { inspectSettings } from "@gyre/coding/internal/settings/load";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { writeChecks } from "./write-checks.ts";
import { version } from "@gyre/coding/internal/core/version";

/** What `runDoctor` takes from elsewhere; for tests. */
export interface DoctorParts {
  home?: string;
  nodeVersion?: string;
  platform?: NodeJS.Platform;
  sandbox?: () => Promise<Sandbox>;
  /** The path of ripgrep. */
  ripgrep?: () => Promise<string>;
}

/**
 * `gyre doctor`: looks at everything that a run needs, without any request to the network,
 * and says a line on each. Ends with 1 if something does not work.
 */
export async function runDoctor(values: Values, io: Io, parts: DoctorParts = {}): Promise<number> {
  const checks = await allChecks(values, io, parts);
  const isWell = checks.every(({ status }) => status !== "problem");
  if (values.json) {
    io.stdout.write(
      `${JSON.stringify({ version: version(), ok: isWell, checks }, undefined, 2)}\n`,
    );
  } else {
    writeChecks(checks, io);
  }
  return isWell ? EXIT.done : EXIT.failed;
}

async function allChecks(values: Values, io: Io, parts: DoctorParts): Promise<Check[]> {
  const { home = homedir(), nodeVersion = process.version, platform = process.platform } = parts;
  const { env } = io;
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  const at = { ...io, cwd };
  const flags = await readFlags(values, { ...pickPlace(io), cwd, start: io.cwd, home });
  const { policy } = flags;
  const { files, layers, problems, settings } = await inspectSettings(flags);
  const own = await ownServices(settings.models);
  const keys = createKeyStore({ env });
  const found = await findKeys(io, keys, own);
  const current = async (): Promise<Model> =>
    (await openModels({ settings, env, policy })).current();
  const { defaultSessionFolder } = await import("@gyre/sessions");
  return [
    { name: "gyre", status: "ok", message: version() },
    checkNode(nodeVersion),
    checkPlatform(platform),
    checkPolicy(policy),
    ...checkSettings(files, problems),
    ...(await checkExtensions({
      settings,
      layers,
      cwd,
      env,
      home,
      trustOnce: values.trust ?? false,
    })),
    ...(await checkKeys(found, io, keys, own)),
    ...(await checkModel({ current }, found, io, own)),
    ...checkProxies(io),
    await checkSandbox(
      parts.sandbox ?? (() => createSandbox({ workspace: at.cwd })),
      settings.sandbox ?? "auto",
      at,
    ),
    await checkProcesses(),
    await checkRipgrep(parts.ripgrep ?? bundledRipgrep, at),
    await checkGit(at),
    ...(await checkSessions(defaultSessionFolder(env))),
    ...(await checkRaces(env, Date.now())),
    checkTerminal(io, platform),
  ];
}

/** The services that the settings add; what is wrong with them is among the problems already. */
async function ownServices(models: Settings["models"]): Promise<ServicePreset[]> {
  if (models === undefined) return [];
  const { parseUserModels, userServices } = await import("@gyre/ai/models");
  return userServices(parseUserModels(models, "the settings"));
}

async function bundledRipgrep(): Promise<string> {
  return (await import("@vscode/ripgrep")).rgPath;
}
