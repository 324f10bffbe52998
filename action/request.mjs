import { pick, pickNumber, pickText } from "./json.mjs";

/**
 * A comment of the thread that an answer belongs to.
 *
 * @typedef {{ kind: "issue" | "review", id: number }} CommentPlace
 * @typedef {{ number: number, isPull: boolean }} Thread
 * @typedef {{
 *   text: string, people: readonly string[], sender: { login: string, id: number } | undefined,
 *   thread: Thread | undefined, comment: CommentPlace | undefined, at: string | undefined, key: string,
 * }} Request `text` is what to do. `people` wrote it or started the run: all of them need write access.
 *   `comment` is the one that it was written in. `at`: when it was written. `key` is its own among all requests
 * @typedef {{ skip: string }} Skip why nothing is done
 */

/** In every comment that the action writes. */
export const MARK = "<!-- gyre-action ";

/** The events with a text of a person in them: where that text is, and the one action that counts. */
const WRITTEN = new Map([
  ["issues", { at: "issue", action: "opened" }],
  ["pull_request", { at: "pull_request", action: "opened" }],
  ["issue_comment", { at: "comment", action: "created" }],
  ["pull_request_review_comment", { at: "comment", action: "created" }],
  ["pull_request_review", { at: "review", action: "submitted" }],
]);

/** Events that only people with write access can cause. */
const OTHERS = new Set(["push", "repository_dispatch", "schedule", "workflow_dispatch"]);

/**
 * What an event asks for.
 *
 * @param {string} name of the event
 * @param {unknown} event
 * @param {{ trigger: string, prompt: string }} inputs
 * @param {string} runId
 * @returns {Request | Skip}
 */
export function findRequest(name, event, { trigger, prompt }, runId) {
  const written = WRITTEN.get(name);
  if (written === undefined) {
    if (!OTHERS.has(name)) return { skip: `gyre does not run for the event "${name}".` };
    if (prompt === "") return { skip: `The event "${name}" has no text: give a prompt.` };
    return { text: prompt, people: [], ...common(event), comment: undefined, key: `run-${runId}` };
  }
  const text = pick(event, written.at);
  const body = pickText(text, "body") ?? "";
  const author = pickText(text, "user", "login");
  const { sender, ...rest } = common(event);
  if (author === undefined || sender === undefined) return { skip: "The event names no author." };
  if (body.includes(MARK)) return { skip: "The text is gyre's own." };
  if ([pickText(text, "user", "type"), pickText(event, "sender", "type")].includes("Bot")) {
    return { skip: "It was written by a bot." };
  }
  if (prompt === "") {
    if (pickText(event, "action") !== written.action) {
      return { skip: `Of "${name}" only "${written.action}" is answered.` };
    }
    if (!isCalled(body, trigger)) return { skip: `Nothing in it calls ${trigger}.` };
  }
  const id = pickNumber(text, "id") ?? 0;
  const comment = findPlace(name, id);
  return {
    text: prompt === "" ? body : prompt,
    people: [...new Set([sender.login, author])],
    sender,
    ...rest,
    comment,
    key: prompt === "" ? `${written.at}-${id}` : `run-${runId}`,
  };
}

/**
 * @param {string} name
 * @param {number} id
 * @returns {CommentPlace | undefined}
 */
function findPlace(name, id) {
  if (name === "issue_comment") return { kind: "issue", id };
  return name === "pull_request_review_comment" ? { kind: "review", id } : undefined;
}

/** @param {unknown} event */
function common(event) {
  const issue = pickNumber(event, "issue", "number");
  const pull = pickNumber(event, "pull_request", "number");
  const number = pull ?? issue;
  const isPull = pull !== undefined || pick(event, "issue", "pull_request") !== undefined;
  const login = pickText(event, "sender", "login");
  const at = ["comment", "review", "issue", "pull_request"]
    .map((part) => pickText(event, part, "created_at") ?? pickText(event, part, "submitted_at"))
    .find((time) => time !== undefined);
  return {
    sender: login === undefined ? undefined : { login, id: pickNumber(event, "sender", "id") ?? 0 },
    thread: number === undefined ? undefined : { number, isPull },
    at,
  };
}

/**
 * Whether a text has the word that calls gyre, outside of quotes and of code.
 *
 * @param {string} body
 * @param {string} trigger
 */
export function isCalled(body, trigger) {
  const plain = body
    .replaceAll(/<!--[\s\S]*?(?:-->|$)/g, "")
    .replaceAll(/^ {0,3}(```|~~~)[\s\S]*?(?:^ {0,3}\1|$(?![\s\S]))/gm, "")
    .replaceAll(/`[^`\n]*`/g, "")
    .replaceAll(/^\s*>.*$/gm, "");
  const word = trigger.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(String.raw`(?:^|[\s(,;:])${word}(?![\w/-])`, "i").test(plain);
}
