/**
 * @typedef {{
 *   text: string, error: string | undefined, turns: number, cost: number | undefined, sessionFile: string,
 * }} Outcome
 * @typedef {{ commit: string, branch: string, pull: string, compare: string, leftOut: readonly string[], note: string }} Published
 */

const MAX_STEPS = 12;
const MAX_STEP_CHARS = 120;
const SHORT_COMMIT = 7;
const CENTS = 2;

/**
 * What a comment says while gyre works.
 *
 * @param {readonly string[]} steps
 * @param {string} run the address of the run
 */
export function formatProgress(steps, run) {
  const before = steps.length - MAX_STEPS;
  return [
    `gyre is working. [Run](${run})`,
    "",
    ...(before > 0 ? [`- ${before} steps before`] : []),
    ...steps.slice(-MAX_STEPS).map((step) => `- ${formatCode(step)}`),
  ].join("\n");
}

/**
 * @param {Outcome} outcome
 * @param {Published | undefined} published
 * @param {string} run
 */
export function formatEnd(outcome, published, run) {
  const { text, error, turns, cost } = outcome;
  const facts = [
    ...(published ? [formatPublished(published)] : []),
    `${turns} ${turns === 1 ? "turn" : "turns"}`,
    ...(cost === undefined ? [] : [`$${cost.toFixed(CENTS)}`]),
    `[Run](${run})`,
  ];
  return [
    ...(error === undefined ? [] : [`gyre did not get to the end: ${disarm(error)}`]),
    ...(text === "" ? [] : [disarm(text)]),
    ...(published?.note ? [published.note] : []),
    ...(published && published.leftOut.length > 0
      ? [
          `Not pushed, because workflows run with the rights of the repository: ${published.leftOut.map(formatCode).join(", ")}`,
        ]
      : []),
    "---",
    facts.join(" · "),
  ].join("\n\n");
}

/** @param {Published} published */
function formatPublished({ commit, branch, pull, compare }) {
  const at = `\`${commit.slice(0, SHORT_COMMIT)}\` on ${formatCode(branch)}`;
  if (pull !== "") return `${at}: ${pull}`;
  return compare === "" ? at : `${at}: [open a pull request](${compare})`;
}

/**
 * A picture is fetched as soon as the page is shown: its address could carry away what gyre has read.
 *
 * @param {string} text
 */
export function disarm(text) {
  return text
    .replaceAll(/!(?=\[)/g, "")
    .replaceAll(/<(?=\/?(?:img|picture|source|video|audio|svg|image)\b)/gi, "&lt;");
}

/** @param {string} text on one line, which nothing in it can end */
export function formatCode(text) {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("`", "'").trim();
  return `\`${line.length > MAX_STEP_CHARS ? `${line.slice(0, MAX_STEP_CHARS)}…` : line}\``;
}

/**
 * A text without the secrets that are known.
 *
 * @param {readonly string[]} secrets
 * @returns {(text: string) => string}
 */
export function createMask(secrets) {
  const known = secrets.filter((secret) => secret.length > 3).sort((a, b) => b.length - a.length);
  return (text) => known.reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}
