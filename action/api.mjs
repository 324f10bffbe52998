import { errorText, pickText } from "./json.mjs";

/**
 * @typedef {{ method?: string, body?: unknown, accept?: string, isRepeatable?: boolean }} Call
 *   `isRepeatable`: whether it may be sent again where it is not known what became of it. Default: all but POST
 * @typedef {{
 *   json: (path: string, call?: Call) => Promise<unknown>,
 *   text: (path: string, call?: Call) => Promise<string>,
 * }} Api
 */

const MAX_TRIES = 5;
const REQUEST_MS = 30_000;
const FIRST_DELAY_MS = 1000;
/** Longer than this no job should wait. */
const MAX_DELAY_MS = 120_000;
/** Where the service says that it is too much, and not for how long. */
const UNKNOWN_DELAY_MS = 60_000;
const MS = 1000;
const TOO_MANY = 429;
const FORBIDDEN = 403;
const SERVER_ERRORS = 500;

/** The service refused a request. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status 0 where there was no answer
   */
  constructor(message, status) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/**
 * GitHub's REST API. Waits as long as the service asks, and tries again what can be tried again.
 *
 * @param {{ url: string, token: string, log: (text: string) => void, wait?: (ms: number) => Promise<void>, now?: () => number }} options
 * @returns {Api}
 */
export function createApi({ url, token, log, wait = pause, now = Date.now }) {
  /**
   * @param {string} path
   * @param {Call} call
   */
  const send = async (path, { method = "GET", body, accept, isRepeatable = method !== "POST" }) => {
    const what = `${method} ${path}`;
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(`${url}${path}`, { method, body, accept, token });
      if (answer.status >= 200 && answer.status < 300) return answer.text;
      const delay = findDelay(answer, attempt, isRepeatable, now());
      const error = new ApiError(`${what}: ${describe(answer)}`, answer.status);
      if (delay === undefined || attempt >= MAX_TRIES) throw error;
      if (delay > MAX_DELAY_MS) {
        throw new ApiError(
          `${what}: to wait ${Math.ceil(delay / MS)} s is too long.`,
          answer.status,
        );
      }
      log(`${error.message} The next try is in ${Math.ceil(delay / MS)} s.`);
      await wait(delay);
    }
  };
  return {
    json: async (path, call = {}) => {
      const text = await send(path, call);
      return text === "" ? undefined : JSON.parse(text);
    },
    text: (path, call = {}) => send(path, call),
  };
}

/** @typedef {{ status: number, text: string, headers: Headers }} Answer */

/**
 * @param {string} url
 * @param {{ method: string, body: unknown, accept: string | undefined, token: string }} call
 * @returns {Promise<Answer>}
 */
async function ask(url, { method, body, accept = "application/vnd.github+json", token }) {
  try {
    const response = await fetch(url, {
      method,
      headers: {
        accept,
        authorization: `Bearer ${token}`,
        "user-agent": "gyre-action",
        "x-github-api-version": "2022-11-28",
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const { status, headers } = response;
    return { status, headers, text: await response.text() };
  } catch (error) {
    return { status: 0, headers: new Headers(), text: errorText(error) };
  }
}

/**
 * How long to wait before the next try; undefined where there is none.
 *
 * @param {Answer} answer
 * @param {number} attempt
 * @param {boolean} isRepeatable
 * @param {number} now
 */
function findDelay({ status, headers, text }, attempt, isRepeatable, now) {
  const after = Number(headers.get("retry-after") ?? Number.NaN);
  const isLimited =
    status === TOO_MANY ||
    (status === FORBIDDEN &&
      (!Number.isNaN(after) ||
        headers.get("x-ratelimit-remaining") === "0" ||
        /rate limit/i.test(text)));
  if (isLimited) {
    if (!Number.isNaN(after)) return after * MS;
    const reset = Number(headers.get("x-ratelimit-reset") ?? Number.NaN);
    if (headers.get("x-ratelimit-remaining") !== "0" || Number.isNaN(reset))
      return UNKNOWN_DELAY_MS;
    return Math.max(0, reset * MS - now) + MS;
  }
  if (!isRepeatable || (status !== 0 && status < SERVER_ERRORS)) return undefined;
  return FIRST_DELAY_MS * 2 ** (attempt - 1);
}

/** @param {Answer} answer */
function describe({ status, text }) {
  if (status === 0) return `no answer: ${text}.`;
  let message = "";
  try {
    message = pickText(JSON.parse(text), "message") ?? "";
  } catch {
    // An error page of a proxy: the status says enough.
  }
  return `${status}${message === "" ? "" : ` ${message.slice(0, 300)}`}.`;
}

/**
 * @param {number} ms
 * @returns {Promise<void>}
 */
function pause(ms) {
  return new Promise((settle) => setTimeout(settle, ms));
}
