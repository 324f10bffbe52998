import { createSearch, MAX_HITS } from "./search.mjs";

/** @typedef {ReturnType<typeof createSearch>} Search */

/**
 * Shows hits while a query is typed. `/` leads to the field, the arrow keys through the hits, Escape out.
 *
 * @param {HTMLInputElement} input
 * @param {HTMLElement} results
 * @param {{ root: string, announce: (message: string) => void }} options `root`: the way to the site's first page
 */
export function startSearch(input, results, { root, announce }) {
  const load = () => loadIndex(`${root}/search-index.js`);
  const show = async () => {
    const query = input.value;
    if (query.trim() === "") return close();
    const search = await load();
    // A later key has its own answer.
    if (input.value === query) showHits(search, query);
  };
  /** @param {Search | undefined} search @param {string} query */
  const showHits = (search, query) => {
    const hits = search === undefined ? [] : search(query);
    const lines = hits.map(({ href, page, section }) => {
      const link = document.createElement("a");
      link.href = `${root}/${href}`;
      const strong = document.createElement("strong");
      strong.textContent = section === "" ? page : section;
      link.append(strong, section === "" ? "" : ` ${page}`);
      return link;
    });
    const message =
      search === undefined
        ? "The search could not be loaded. Reload the page."
        : hits.length === 0
          ? `Nothing found for "${query.trim()}".`
          : `${hits.length === MAX_HITS ? `The first ${MAX_HITS}` : hits.length} results`;
    const note = document.createElement("p");
    note.textContent = message;
    results.replaceChildren(...lines, note);
    results.hidden = false;
    announce(message);
  };
  const close = () => {
    results.hidden = true;
    results.replaceChildren();
  };
  input.addEventListener("focus", () => void load());
  input.addEventListener("input", () => void show());
  addEventListener("keydown", (event) => {
    const inside = event.target === input || results.contains(/** @type {Node} */ (event.target));
    if (inside) moveThrough(event, [input, ...results.querySelectorAll("a")], close);
    else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
    }
  });
  addEventListener("click", (event) => {
    if (event.target !== input && !results.contains(/** @type {Node} */ (event.target))) close();
  });
  // What was typed before the script had run, or stayed in the field when the reader came back.
  if (document.activeElement === input) void show();
}

/**
 * @param {KeyboardEvent} event
 * @param {readonly HTMLElement[]} stops the field and the hits
 * @param {() => void} close
 */
function moveThrough(event, stops, close) {
  const [input, first] = stops;
  const at = stops.findIndex((stop) => stop === document.activeElement);
  if (event.key === "Escape") {
    input?.focus();
    close();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    stops[(next + stops.length) % stops.length]?.focus();
  } else if (event.key === "Enter" && at === 0) {
    first?.click();
  }
}

/** @type {Promise<Search | undefined> | undefined} */
let loading;

/** A script and not JSON: a page that was opened as a file may not fetch. @param {string} src */
function loadIndex(src) {
  loading ??= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = src;
    script.addEventListener("load", () =>
      resolve(createSearch(Reflect.get(globalThis, "searchIndex"))),
    );
    script.addEventListener("error", () => resolve(undefined));
    document.head.append(script);
  });
  return loading;
}
