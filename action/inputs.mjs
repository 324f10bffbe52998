/**
 * @typedef {Readonly<Record<string, string | undefined>>} Environment
 * @typedef {"pull-request" | "branch" | "none"} Publishing
 * @typedef {{
 *   trigger: string, prompt: string, publish: Publishing, comment: boolean, version: string, program: string,
 *   token: string, keys: Readonly<Record<string, string>>, args: readonly string[],
 * }} Inputs `keys`: variables that gyre gets, by name; `args`: arguments of gyre
 */

/** The inputs that hold a key, and the variable that gyre reads it from. */
const KEYS = {
  "anthropic-api-key": "ANTHROPIC_API_KEY",
  "openai-api-key": "OPENAI_API_KEY",
  "gemini-api-key": "GEMINI_API_KEY",
};
/** @type {readonly Publishing[]} */
const PUBLISHING = ["pull-request", "branch", "none"];
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables of the runner, with tokens in them or with a meaning for later steps. */
const RUNNER = /^(?:GITHUB_|RUNNER_|ACTIONS_|INPUT_)/i;
const VERSION = /^[\w.+-]*$/;

/**
 * What the step of the workflow says. Throws for what cannot be meant.
 *
 * @param {Environment} env
 * @returns {Inputs}
 */
export function readInputs(env) {
  /** @param {string} name */
  const read = (name) => (env[`INPUT_${name.replaceAll(" ", "_").toUpperCase()}`] ?? "").trim();
  /** @param {string} name */
  const lines = (name) =>
    read(name)
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
  const trigger = read("trigger") || "@gyre";
  if (/\s/.test(trigger)) throw new Error(`trigger is ${JSON.stringify(trigger)}: write one word.`);
  const publish = PUBLISHING.find((known) => known === (read("publish") || "pull-request"));
  if (publish === undefined) {
    throw new Error(
      `publish is ${JSON.stringify(read("publish"))}: write ${PUBLISHING.join(", ")}.`,
    );
  }
  const comment = read("comment") || "true";
  if (comment !== "true" && comment !== "false") {
    throw new Error(`comment is ${JSON.stringify(comment)}: write true or false.`);
  }
  const version = read("version");
  if (!VERSION.test(version)) throw new Error(`version is ${JSON.stringify(version)}.`);
  const token = read("github-token");
  if (token === "") throw new Error("There is no github-token.");
  const args = ["model", "thinking", "mode", "tools", "max-turns", "max-cost", "timeout"].flatMap(
    (name) => (read(name) === "" ? [] : [`--${name}=${read(name)}`]),
  );
  const rules = ["allow", "deny"].flatMap((name) => lines(name).map((rule) => `--${name}=${rule}`));
  return {
    trigger,
    prompt: read("prompt"),
    publish,
    comment: comment === "true",
    version,
    program: read("program"),
    token,
    keys: readKeys(env, read, lines("env")),
    args: [...args, ...rules],
  };
}

/**
 * @param {Environment} env
 * @param {(name: string) => string} read
 * @param {readonly string[]} named variables of the step that are passed on
 * @returns {Record<string, string>}
 */
function readKeys(env, read, named) {
  /** @type {Record<string, string>} */
  const keys = {};
  for (const [input, variable] of Object.entries(KEYS)) {
    if (read(input) !== "") keys[variable] = read(input);
  }
  for (const name of named) {
    if (!VARIABLE.test(name) || RUNNER.test(name)) {
      throw new Error(`env has ${JSON.stringify(name)}: gyre does not get that.`);
    }
    const value = env[name];
    if (value !== undefined && value !== "") keys[name] = value;
  }
  return keys;
}
