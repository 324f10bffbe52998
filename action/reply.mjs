import { ApiError } from "./api.mjs";
import { errorText, pickNumber, pickText, toList } from "./json.mjs";
import { MARK } from "./request.mjs";

/**
 * @typedef {import("./api.mjs").Api} Api
 * @typedef {import("./request.mjs").Request} Request
 */

/** Of a comment. GitHub takes 65,536. */
const MAX_CHARS = 60_000;
/** Between two changes of a comment that shows what goes on. */
const UPDATE_MS = 5000;
const PAGE = 100;
const NOT_FOUND = 404;

/**
 * The one comment that a request gets, changed as the work goes on. A run that is repeated finds it again.
 */
export class Reply {
  #api;
  #repository;
  #request;
  #log;
  #mark;
  /** @type {{ path: string, url: string } | undefined} */
  #place;
  #shown = "";
  /** @type {string | undefined} */
  #next;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  /** @type {Promise<void>} */
  #writing = Promise.resolve();

  /**
   * @param {Api} api
   * @param {string} repository
   * @param {Request} request
   * @param {(text: string) => void} log
   */
  constructor(api, repository, request, log) {
    this.#api = api;
    this.#repository = repository;
    this.#request = request;
    this.#log = log;
    this.#mark = `${MARK}${request.key} -->`;
  }

  get url() {
    return this.#place?.url ?? "";
  }

  /**
   * Shows a text soon, or a later one in its place. What fails is reported and otherwise ignored: the work goes on.
   *
   * @param {string} text
   */
  update(text) {
    this.#next = text;
    if (this.#timer !== undefined) return;
    this.#flush();
  }

  #flush() {
    const text = this.#next;
    this.#next = undefined;
    if (text === undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, UPDATE_MS);
    this.#timer.unref();
    this.#writing = this.#writing
      .then(() => this.#write(text))
      .catch((error) => this.#log(`The comment could not be changed. ${errorText(error)}`));
  }

  /**
   * Shows a text, and nothing after it.
   *
   * @param {string} text
   */
  async end(text) {
    clearTimeout(this.#timer);
    this.#next = undefined;
    this.update = () => {};
    await this.#writing;
    await this.#write(text);
  }

  /** @param {string} text */
  async #write(text) {
    const body = `${text.slice(0, MAX_CHARS)}\n\n${this.#mark}`;
    if (body === this.#shown) return;
    this.#place ??= await this.#find();
    if (this.#place) {
      try {
        await this.#api.json(this.#place.path, { method: "PATCH", body: { body } });
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
        // It was deleted.
        this.#place = await this.#create(body);
      }
    } else {
      this.#place = await this.#create(body);
    }
    this.#shown = body;
  }

  /** The comment of an earlier attempt. Only bots can have written it: anyone can write its mark. */
  async #find() {
    const { thread, comment } = this.#request;
    if (thread === undefined) return undefined;
    const path = `/repos/${this.#repository}/${comment?.kind === "review" ? "pulls" : "issues"}`;
    const { at } = this.#request;
    const since = at === undefined ? "" : `&since=${encodeURIComponent(at)}`;
    const listed = await this.#api.json(
      `${path}/${thread.number}/comments?per_page=${PAGE}${since}`,
    );
    const found = toList(listed).find(
      (each) =>
        pickText(each, "user", "type") === "Bot" && pickText(each, "body")?.endsWith(this.#mark),
    );
    return found === undefined ? undefined : this.#findAddress(found);
  }

  /** @param {string} body */
  async #create(body) {
    const { thread, comment } = this.#request;
    if (thread === undefined) return undefined;
    const repository = `/repos/${this.#repository}`;
    const path =
      comment?.kind === "review"
        ? `${repository}/pulls/${thread.number}/comments/${comment.id}/replies`
        : `${repository}/issues/${thread.number}/comments`;
    try {
      return this.#findAddress(await this.#api.json(path, { method: "POST", body: { body } }));
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 0 && error.status < 500)) throw error;
      // It may be there in spite of the error.
      this.#log(error.message);
      const found = await this.#find();
      return (
        found ?? this.#findAddress(await this.#api.json(path, { method: "POST", body: { body } }))
      );
    }
  }

  /** @param {unknown} written */
  #findAddress(written) {
    const kind = this.#request.comment?.kind === "review" ? "pulls" : "issues";
    const path = `/repos/${this.#repository}/${kind}/comments/${pickNumber(written, "id") ?? 0}`;
    return { path, url: pickText(written, "html_url") ?? "" };
  }
}
