import { accessSync, constants, lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { isRecord } from "@gyre/ai";
import { CodingAgentError } from "../core/errors.ts";
import { describeCode, parseJson, readSmallFile } from "../settings/file.ts";
import { oneLine } from "../settings/problem.ts";
import { realPath } from "../settings/project-file.ts";
import type { Policy } from "./policy.ts";
import type { PolicyRules } from "./table.ts";

/** Where a policy is. */
export interface PolicyPlace {
  /** Absolute. */
  readonly path: string;
  /** The user that the file and its folders must belong to. Absent: that is not looked at. */
  readonly owner?: number;
}

const ROOT = 0;
/** The bits of a mode that let others than the owner write. */
const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Where the administrator of this machine puts one. No variable and no option changes it: else
 * a user could name another. On Windows the rights of the folder keep it from users.
 */
export function findPolicyPlace(platform: NodeJS.Platform = process.platform): PolicyPlace {
  if (platform === "win32") return { path: "C:\\Program Files\\gyre\\policy.json" };
  const folder = platform === "darwin" ? "/Library/Application Support/gyre" : "/etc/gyre";
  return { path: `${folder}/policy.json`, owner: ROOT };
}

/**
 * Reads the policy; nothing where there is none. Rejects with `CodingAgentError` for one that
 * users could have changed, and for one that is wrong in any way: it is never left out.
 */
export async function readPolicy({ path, owner }: PolicyPlace): Promise<Policy | undefined> {
  try {
    if (!lstatSync(path, { throwIfNoEntry: false })) return undefined;
  } catch (error) {
    if (describeCode(error) === "ENOTDIR") return undefined;
    throw unusable(path, `cannot be looked at (${describeCode(error)})`);
  }
  if (owner !== undefined) assertProtected(path, owner);
  const read = readSmallFile(path);
  if (!read) throw unusable(path, "is a link that leads nowhere");
  if ("problem" in read) throw unusable(path, read.problem);
  const json = await parseJson(read.content.toString("utf8"));
  if ("problem" in json) throw unusable(path, json.problem);
  if (!isRecord(json.value)) throw unusable(path, "must hold a JSON object");
  return createPolicy(path, json.value);
}

/** Throws for a file that others than its owner could change or replace. */
function assertProtected(path: string, owner: number): void {
  for (const place of listPlaces(path)) {
    const stats = statSync(place, { throwIfNoEntry: false });
    const problem = stats && explainWriters(place, stats, owner);
    if (problem === undefined) continue;
    throw unusable(path, `can be changed by users: ${place} ${problem}`);
  }
}

/** The file and all folders above it, as it is named and where links lead. */
function listPlaces(path: string): Set<string> {
  const places = new Set<string>();
  const add = (place: string): void => {
    for (let at = place; !places.has(at); at = dirname(at)) places.add(at);
  };
  add(path);
  try {
    add(realpathSync(path));
  } catch (error) {
    // That a link leads nowhere is found when it is read.
    if (describeCode(error) !== "ENOENT")
      throw unusable(path, `cannot be looked at (${describeCode(error)})`);
  }
  return places;
}

function explainWriters(place: string, stats: Stats, owner: number): string | undefined {
  const { uid, mode } = stats;
  if (uid !== owner && uid !== ROOT) return `belongs to user ${uid}, not to ${owner}`;
  // In such a folder users replace what is their own, and nothing else.
  const isSticky = stats.isDirectory() && (mode & STICKY) !== 0;
  if ((mode & OTHERS_WRITE) !== 0 && !isSticky) return "has a mode that lets others write";
  const user = process.getuid?.();
  if (isSticky || user === owner || user === ROOT) return undefined;
  try {
    accessSync(place, constants.W_OK);
  } catch {
    // As it should be.
    return undefined;
  }
  return "can be written to by you";
}

async function createPolicy(
  path: string,
  given: Readonly<Record<string, unknown>>,
): Promise<Policy> {
  const [{ Policy: Made }, { isPolicyKey, POLICY, POLICY_KEYS }, { didYouMean, shownBriefly }] =
    await Promise.all([
      import("./policy.ts"),
      import("./table.ts"),
      import("../settings/shown.ts"),
    ]);
  const problems: string[] = [];
  for (const [key, value] of Object.entries(given)) {
    if (key === "$schema") continue;
    if (!isPolicyKey(key)) {
      problems.push(`"${key}" is no key of a policy.${didYouMean(key, POLICY_KEYS)}`);
    } else if (!POLICY[key].kind.is(value)) {
      problems.push(`${key} is ${shownBriefly(value)}, but must be ${POLICY[key].kind.allowed}.`);
    }
  }
  if (problems.length > 0) throw wrong(path, problems);
  const { $schema: _schema, ...rest } = given;
  // Each key was checked above.
  const rules: PolicyRules = rest;
  const { domains, modelHosts, network, sandbox, folders } = rules;
  if ((domains || network === false) && sandbox === undefined) {
    const key = domains ? "domains" : "network";
    throw wrong(path, [`"${key}" holds in a sandbox alone: write "sandbox": "required" as well.`]);
  }
  const most = network === false ? [] : domains;
  const hosts = {
    domains: await createHosts(most, path),
    models: await createHosts(modelHosts, path),
  };
  const real = folders?.map((folder) => realFolder(folder, path));
  return new Made(path, { ...rules, ...(real && { folders: real }) }, hosts);
}

async function createHosts(hosts: readonly string[] | undefined, path: string) {
  if (!hosts) return undefined;
  const { createHostList } = await import("@gyre/tools");
  try {
    return createHostList(hosts);
  } catch (error) {
    throw wrong(path, [error instanceof Error ? error.message : String(error)]);
  }
}

/** Folders are compared by their real paths. One that is not there yet is what it is called. */
function realFolder(folder: string, path: string): string {
  if (!isAbsolute(folder)) throw wrong(path, [`folders: "${folder}" is not an absolute path.`]);
  return realPath(folder);
}

function unusable(path: string, problem: string): CodingAgentError {
  return new CodingAgentError(
    "bad_settings",
    oneLine(`The policy ${path} ${problem}. Nothing runs before the administrator has fixed it.`),
  );
}

function wrong(path: string, problems: readonly string[]): CodingAgentError {
  return unusable(path, `is wrong: ${problems.join(" ").replace(/\.$/, "")}`);
}
