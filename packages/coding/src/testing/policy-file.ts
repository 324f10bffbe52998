import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PolicyPlace, readPolicy } from "../policy/file.ts";
import type { Policy } from "../policy/policy.ts";

const made: string[] = [];

/** For `afterEach`. */
export function removePolicies(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** A file as an administrator has it, but that it belongs to the user of the tests. */
export function writePolicy(content: unknown): PolicyPlace {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-policy-")));
  made.push(folder);
  const path = join(folder, "policy.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  const owner = process.getuid?.();
  return { path, ...(owner !== undefined && { owner }) };
}

/** The policy of such a file. */
export async function makePolicy(content: unknown): Promise<Policy> {
  const policy = await readPolicy(writePolicy(content));
  if (!policy) throw new Error("There is a file.");
  return policy;
}
