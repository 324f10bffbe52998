/**
 * What a check found. No problems: it holds. Figures are shown either way.
 *
 * @typedef {{ problems: readonly string[], figures?: readonly string[] }} Findings
 * @typedef {{ name: string, check: () => Findings | Promise<Findings> }} Part
 */

/**
 * Runs the parts one after the other, whatever became of those before, and prints a
 * line for each. A part that throws has failed.
 *
 * @param {readonly Part[]} parts
 * @param {(line: string) => void} print
 * @returns {Promise<boolean>} whether all of them hold
 */
export async function runParts(parts, print) {
  let failed = 0;
  for (const { name, check } of parts) {
    const started = performance.now();
    /** @type {Findings} */
    let findings;
    try {
      findings = await check();
    } catch (error) {
      findings = {
        problems: [error instanceof Error ? (error.stack ?? error.message) : String(error)],
      };
    }
    const { problems, figures = [] } = findings;
    const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
    print(`${name.padEnd(12)} ${seconds} s  ${problems.length === 0 ? "ok" : "FAILED"}`);
    for (const line of [...figures, ...problems]) print(indent(line));
    if (problems.length > 0) failed += 1;
  }
  return failed === 0;
}

/** @param {string} text */
function indent(text) {
  return text.trimEnd().replaceAll(/^(?=.)/gm, "    ");
}
