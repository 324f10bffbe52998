import { ApiError } from "./api.mjs";
import { pick, pickNumber, pickText, toList } from "./json.mjs";

/**
 * @typedef {import("./api.mjs").Api} Api
 * @typedef {import("./request.mjs").Request} Request
 */

/** Of a thread, all of it. The newest comments are kept. */
const MAX_THREAD_CHARS = 100_000;
/** Of one comment. */
const MAX_BODY_CHARS = 20_000;
const MAX_DIFF_CHARS = 100_000;
const PAGE = 100;
/** Of comments, the newest. */
const MAX_PAGES = 3;
const NOT_ACCEPTABLE = 406;
/** What a reader of the page does not see. */
const HIDDEN = /<!--[\s\S]*?(?:-->|$)/g;
// Everything but tab and line end; marks that turn text around; letters without a shape.
const INVISIBLE =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

/**
 * The title, the text and the comments of an issue or pull request, for a model to read. What was written or changed after
 * the request is left out: the one who asked has not read it.
 *
 * @param {Api} api
 * @param {string} repository
 * @param {import("./request.mjs").Thread} thread
 * @param {string | undefined} before
 * @returns {Promise<string>}
 */
export async function readThread(api, repository, { number, isPull }, before) {
  const path = `/repos/${repository}/issues/${number}`;
  const issue = await api.json(path);
  const count = pickNumber(issue, "comments") ?? 0;
  const comments = await readNewest(api, `${path}/comments`, count);
  const review = isPull
    ? toList(
        await api.json(
          `/repos/${repository}/pulls/${number}/comments?sort=created&direction=desc&per_page=${PAGE}`,
        ),
      ).toReversed()
    : [];
  const kept = [...comments, ...review].filter((comment) => !isLater(comment, before));
  const title = clean(pickText(issue, "title") ?? "").replaceAll("\n", " ");
  const head = `# ${isPull ? "Pull request" : "Issue"} #${number}: ${title}\n\n${format(issue)}`;
  return joinNewest(head, kept.map(format), Math.max(0, count + review.length - kept.length));
}

/**
 * What a pull request changes.
 *
 * @param {Api} api
 * @param {string} repository
 * @param {number} number
 * @returns {Promise<string>}
 */
export async function readDiff(api, repository, number) {
  try {
    const accept = "application/vnd.github.diff";
    const diff = await api.text(`/repos/${repository}/pulls/${number}`, { accept });
    return cut(diff, MAX_DIFF_CHARS);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_ACCEPTABLE) throw error;
    return "The diff is too large to be shown here.";
  }
}

/**
 * @param {Api} api
 * @param {string} path
 * @param {number} count
 * @returns {Promise<unknown[]>} the newest comments, in order
 */
async function readNewest(api, path, count) {
  const last = Math.max(1, Math.ceil(count / PAGE));
  const comments = [];
  for (let page = Math.max(1, last - MAX_PAGES + 1); page <= last; page++) {
    comments.push(...toList(await api.json(`${path}?per_page=${PAGE}&page=${page}`)));
  }
  return comments;
}

/**
 * @param {unknown} comment
 * @param {string | undefined} before
 */
function isLater(comment, before) {
  if (before === undefined) return false;
  const limit = Date.parse(before);
  return ["created_at", "updated_at"].some((name) => {
    const time = Date.parse(pickText(comment, name) ?? "");
    return time > limit;
  });
}

/** @param {unknown} comment */
function format(comment) {
  const login = pickText(comment, "user", "login") ?? "ghost";
  const role = pickText(comment, "author_association") ?? "NONE";
  const time = pickText(comment, "created_at") ?? "";
  const path = pickText(comment, "path");
  const line = pick(comment, "line");
  const place =
    path === undefined ? "" : ` on ${clean(path)}${typeof line === "number" ? `:${line}` : ""}`;
  const body = cut(clean(pickText(comment, "body") ?? ""), MAX_BODY_CHARS);
  return `## @${login} (${role}) ${time}${place}\n\n${body}`;
}

/**
 * @param {string} head
 * @param {readonly string[]} comments
 * @param {number} missing how many were left out already
 */
function joinNewest(head, comments, missing) {
  let room = MAX_THREAD_CHARS - head.length;
  let from = comments.length;
  while (from > 0 && room >= (comments[from - 1]?.length ?? 0)) {
    room -= comments[from - 1]?.length ?? 0;
    from--;
  }
  const left = from + missing;
  const note = left === 0 ? [] : [`(${left} comments are left out here.)`];
  return [head, ...note, ...comments.slice(from)].join("\n\n");
}

/** @param {string} text */
function clean(text) {
  return text.replaceAll("\r\n", "\n").replaceAll(HIDDEN, "").replaceAll(INVISIBLE, "");
}

/**
 * @param {string} text
 * @param {number} max
 */
function cut(text, max) {
  if (text.length <= max) return text;
  return `${text.slice(0, max)}\n(${text.length - max} characters more are left out.)`;
}
