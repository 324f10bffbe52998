import { spawnSync } from "node:child_process";
import type { Reporter, TestModule, Vitest } from "vitest/node";

/** Where packages of the system put bwrap; the sandbox looks there first. */
const SYSTEM_FOLDERS = "/usr/bin:/bin:/usr/local/bin";

/** Whether a program of the system works that tests with the tag `bubblewrap` need. */
export function findBubblewrap(): boolean {
  const env = { PATH: `${SYSTEM_FOLDERS}:${process.env["PATH"] ?? ""}` };
  const args = ["--ro-bind", "/", "/", "--unshare-pid", "true"];
  return spawnSync("bwrap", args, { env, stdio: "ignore" }).status === 0;
}

/** Prints how many tests did not run because the program that they need is missing. */
export class MissingProgramReporter implements Reporter {
  readonly #tag: string;
  readonly #hint: string;
  #hasFilter = false;

  constructor(tag: string, hint = "") {
    this.#tag = tag;
    this.#hint = hint && ` (${hint})`;
  }

  onInit(vitest: Vitest): void {
    this.#hasFilter = vitest.config.tagsFilter !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#hasFilter) return;
    const skipped = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    const count = skipped.filter(({ tags }) => tags.includes(this.#tag)).length;
    if (count > 0) console.log(`${this.#tag} not found: ${count} tests not run${this.#hint}`);
  }
}
