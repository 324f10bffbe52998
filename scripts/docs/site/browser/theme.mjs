/** Where the choice is kept. */
const KEY = "gyre-theme";

/** Applies the choice that was made before, as early as possible. */
export function applyTheme() {
  const kept = readKept();
  if (kept !== null) document.documentElement.dataset["theme"] = kept;
}

/** The switch between dark and light. @param {HTMLElement} button */
export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () =>
    (document.documentElement.dataset["theme"] ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset["theme"] = next;
    keep(next);
    show();
  });
  system.addEventListener("change", show);
  show();
}

function readKept() {
  const store = findStore();
  const kept = store === undefined ? null : store.getItem(KEY);
  return kept === "dark" || kept === "light" ? kept : null;
}

/** @param {string} theme */
function keep(theme) {
  findStore()?.setItem(KEY, theme);
}

/** Some browsers deny it, to files say: then a choice holds for one page. @returns {Storage | undefined} */
function findStore() {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}
