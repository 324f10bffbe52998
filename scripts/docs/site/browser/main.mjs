// The script of every page: bundled into one file, without a module, so that it runs from a file as well.
import { addCopyButtons } from "./copy.mjs";
import { startSearch } from "./search-box.mjs";
import { applyTheme, startTheme } from "./theme.mjs";

document.documentElement.classList.add("scripted");
applyTheme();
addEventListener("DOMContentLoaded", start);

function start() {
  const status = find("site-status");
  /** @param {string} message */
  const announce = (message) => (status.textContent = message);
  const input = find("site-query");
  if (!(input instanceof HTMLInputElement)) throw new Error("The field of the search is no input.");
  const root = document.documentElement.dataset["root"] ?? ".";
  startSearch(input, find("site-results"), { root, announce });
  startTheme(find("site-theme"));
  startMenu(find("site-menu"));
  addCopyButtons(announce);
  showCurrent(find("site-navigation"));
}

/** Scrolls a long navigation to the page that is open. @param {HTMLElement} navigation */
function showCurrent(navigation) {
  const current = navigation.querySelector("[aria-current]");
  if (current === null) return;
  const below = current.getBoundingClientRect().bottom - navigation.getBoundingClientRect().bottom;
  if (below > 0) navigation.scrollTop = below + navigation.clientHeight / 2;
}

/** The navigation of a narrow page. @param {HTMLElement} button */
function startMenu(button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const isOpen = document.documentElement.classList.toggle("menu-open");
    button.setAttribute("aria-expanded", String(isOpen));
  });
}

/** @param {string} id */
function find(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no element "${id}".`);
  return element;
}
