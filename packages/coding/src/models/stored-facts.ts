import { randomBytes } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { errorMessage, type Model } from "@gyre/ai";
import { catalog, CATALOG_DATE, mergeCatalogFacts, parseCatalogFacts } from "@gyre/ai/models";
import { readSmallFile } from "../settings/file.ts";
import type { Environment } from "../core/environment.ts";

/** More than ten times what the facts of all services take. */
export const MAX_FACTS_BYTES: number = 8 * 1024 * 1024;
const OWNER_ONLY = 0o600;
const FOLDER_MODE = 0o700;
const TEMPORARY_NAME_BYTES = 6;

/** Where facts of models that were fetched are: `gyre/models.json` in `XDG_DATA_HOME`, or in `~/.local/share`. */
export function storedFactsPath(env: Environment): string {
  const data = env["XDG_DATA_HOME"];
  const base =
    data !== undefined && isAbsolute(data)
      ? data
      : join(env["HOME"] || homedir(), ".local", "share");
  return join(base, "gyre", "models.json");
}

export interface KnownModels {
  models: readonly Model[];
  /** The day of the newest facts among them. */
  date: string;
  /** Why facts that were fetched are not used; for people. */
  problem?: string;
}

/** The models of the catalog, with what was fetched since. What was fetched before the catalog was made counts no more. */
export function knownModels(env: Environment): KnownModels {
  const builtIn = { models: catalog(), date: CATALOG_DATE };
  const path = storedFactsPath(env);
  const file = readSmallFile(path, 0, MAX_FACTS_BYTES);
  if (file === undefined) return builtIn;
  const broken = (why: string): KnownModels => ({
    ...builtIn,
    problem: `Facts of models that were fetched are not used: ${why}. Fetch them again with: gyre models --refresh`,
  });
  if ("problem" in file) return broken(`${path} ${file.problem}`);
  try {
    const facts = parseCatalogFacts(JSON.parse(file.content.toString("utf8")), path);
    if (facts.date < CATALOG_DATE) return builtIn;
    return { models: mergeCatalogFacts(catalog(), facts), date: facts.date };
  } catch (error) {
    return broken(error instanceof SyntaxError ? `${path} is no JSON` : errorMessage(error));
  }
}

/** Replaces the stored facts as a whole: a crash leaves the old ones or the new ones. */
export async function storeFacts(env: Environment, bytes: Uint8Array): Promise<void> {
  const path = storedFactsPath(env);
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  const temporary = `${path}.${randomBytes(TEMPORARY_NAME_BYTES).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", OWNER_ONLY);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
