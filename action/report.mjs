import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";

/** @typedef {import("./inputs.mjs").Environment} Environment */

/** Of a summary. GitHub takes 1 MiB. */
const MAX_SUMMARY_CHARS = 500_000;

/**
 * What later steps and readers of the run get.
 *
 * @param {Environment} env
 * @param {(text: string) => string} mask
 */
export function createReport(env, mask) {
  return {
    /**
     * A line of the log. It begins with our name, so that no text in it is a command for the runner.
     *
     * @type {(text: string) => void}
     */
    log: (text) => console.log(`gyre: ${mask(text).replaceAll(/[\r\n]+/g, " ")}`),
    /**
     * @param {"notice" | "warning" | "error"} level
     * @param {string} text
     */
    announce(level, text) {
      const plain = mask(text)
        .replaceAll("%", "%25")
        .replaceAll("\r", "%0D")
        .replaceAll("\n", "%0A");
      console.log(`::${level}::${plain}`);
    },
    /** @param {Readonly<Record<string, string>>} values */
    output(values) {
      const file = env["GITHUB_OUTPUT"];
      if (!file) return;
      for (const [name, value] of Object.entries(values)) {
        // A text cannot hold the end that is made up for it.
        const end = randomUUID();
        appendFileSync(file, `${name}<<${end}\n${mask(value)}\n${end}\n`);
      }
    },
    /** @param {string} text */
    summarize(text) {
      const file = env["GITHUB_STEP_SUMMARY"];
      if (file) appendFileSync(file, `${mask(text).slice(0, MAX_SUMMARY_CHARS)}\n`);
    },
  };
}
