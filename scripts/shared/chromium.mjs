// Chromium for the checks that need a browser: Debian's, or one that is in PATH.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const START_MS = 20_000;

/** What to say where there is none. */
export const NO_CHROMIUM =
  "There is no Chromium here: install it with `apt-get install chromium-headless-shell`.";

/**
 * Gives `use` a browser and closes it afterwards; where there is none, it says so in one line. Sets the exit code.
 *
 * @param {(browser: import("playwright-core").Browser) => Promise<boolean>} use whether all is well
 */
export async function withChromium(use) {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    console.error(NO_CHROMIUM);
    process.exitCode = 1;
    return;
  }
  const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: START_MS });
  try {
    process.exitCode = (await use(browser)) ? 0 : 1;
  } finally {
    await browser.close();
  }
}

/** @returns {string | undefined} */
export function findChromium() {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) =>
    existsSync(path),
  );
}

/**
 * Adds what goes wrong in a page from now on.
 *
 * @param {import("playwright-core").Page} page
 * @param {string[]} problems
 */
export function collectErrors(page, problems) {
  page.on("pageerror", (error) => problems.push(`the page: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`the console: ${message.text()}`);
  });
}
