// The site of the guide in Chromium: every page of the navigation is clicked, and what the script of a page does is used.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildSite } from "../../docs/site/build.mjs";
import { serveSite } from "../../docs/site/serve.mjs";
import { collectErrors } from "../../shared/chromium.mjs";
import { inTemporaryFolder } from "../../shared/temporary.mjs";

/**
 * @typedef {import("playwright-core").Browser} Browser
 * @typedef {import("playwright-core").Page} Page
 * @typedef {import("../../shared/parts.mjs").Findings} Findings
 */

/** Any path will do: no page knows where it is. */
const BASE = "/some/where/";
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 360, height: 740 };
/** How long one step of a reader may take to show. */
const STEP_MS = 15_000;
/** The fewest pages that the navigation has. Fewer: it was not read. */
const MIN_PAGES = 100;

/**
 * Builds the site, serves it below a path, and uses it as readers do.
 *
 * @param {Browser} browser
 * @param {string} root
 * @returns {Promise<Findings>}
 */
export async function useGuide(browser, root) {
  const { files, problems } = await buildSite(root);
  if (problems.length > 0) return { problems };
  const { address, close } = await serveSite(files, { base: BASE });
  const context = await browser.newContext({
    viewport: WIDE,
    colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  /** @type {string[]} */
  const found = [];
  /** @param {(page: Page) => Promise<unknown>} use */
  const withPage = async (use) => {
    const page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    collectErrors(page, found);
    collectFailures(page, found);
    // What a reader cannot do is one problem among others: the rest is used as well.
    await use(page).catch((error) => found.push(String(error)));
    await page.close();
  };
  let clicked = 0;
  try {
    await Promise.all([
      withPage(async (page) => (clicked = await clickThrough(page, address, found))),
      withPage((page) => visitNarrow(page, address, [...files.keys()], found)),
    ]);
    await withPage((page) => searchAndOpen(page, address, found));
    await withPage((page) => switchTheme(page, address, found));
    await withPage((page) => copyCode(page, address, found));
    await withPage((page) => useKeyboard(page, address, found));
    await withPage((page) => useMenu(page, address, found));
    await inTemporaryFolder((folder) => withPage((page) => openAsFile(page, folder, files, found)));
  } finally {
    await context.close();
    close();
  }
  if (clicked < MIN_PAGES) found.push(`the navigation has ${clicked} pages of ${MIN_PAGES}`);
  return { problems: found, figures: [`${clicked} pages clicked, ${files.size} files`] };
}

/**
 * Adds the requests of a page that fail, those aside that a page which is left no longer needs.
 *
 * @param {Page} page
 * @param {string[]} problems
 */
function collectFailures(page, problems) {
  page.on("requestfailed", (request) => {
    const { errorText = "no reason" } = request.failure() ?? {};
    // A picture that is still loading when the page is left.
    if (errorText === "net::ERR_ABORTED") return;
    problems.push(`no answer for ${request.url()}: ${errorText}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${response.status()} for ${response.url()}`);
  });
}

/**
 * Clicks every link of the navigation. A page of a folder shows links that others do not: they come next.
 *
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 * @returns {Promise<number>} how many pages there were
 */
async function clickThrough(page, address, problems) {
  await page.goto(address);
  const { links: left } = await inspectPage(page);
  const seen = new Set(left);
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const link = await page.evaluateHandle((href) => {
      const links = document.querySelectorAll("#site-navigation a");
      const found = [...links].find((one) => one instanceof HTMLAnchorElement && one.href === href);
      for (const group of document.querySelectorAll("#site-navigation details")) {
        group.toggleAttribute("open", found !== undefined && group.contains(found));
      }
      return found ?? null;
    }, next);
    const element = link.asElement();
    if (element === null) throw new Error(`${page.url()} has no link to ${next}`);
    await element.click();
    await page.waitForURL(next, { waitUntil: "domcontentloaded" });
    const { links, headings, isMarked } = await inspectPage(page);
    if (headings !== 1) problems.push(`${next} has ${headings} headings of the first level`);
    if (!next.includes("#") && !isMarked) problems.push(`${next} is not marked as current`);
    const more = links.filter((one) => !seen.has(one));
    for (const one of more) seen.add(one);
    left.unshift(...more);
  }
  return new Set([...seen].map((href) => href.split("#", 1)[0])).size;
}

/** `links`: where the navigation leads, the page that is open aside. @param {Page} page */
function inspectPage(page) {
  return page.evaluate(() => {
    const found = [...document.querySelectorAll("#site-navigation a")];
    const addresses = found.flatMap((link) => (link instanceof HTMLAnchorElement ? link.href : []));
    return {
      links: [...new Set(addresses)].filter((href) => href !== location.href),
      headings: document.querySelectorAll("main h1").length,
      isMarked: document.querySelector("#site-navigation [aria-current=page]") !== null,
    };
  });
}

/**
 * On a phone no page scrolls sideways.
 *
 * @param {Page} page
 * @param {string} address
 * @param {readonly string[]} paths
 * @param {string[]} problems
 */
async function visitNarrow(page, address, paths, problems) {
  await page.setViewportSize(NARROW);
  for (const path of paths.filter((one) => one.endsWith(".html"))) {
    await page.goto(address + encodeURI(path), { waitUntil: "domcontentloaded" });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > NARROW.width) problems.push(`${path} is ${width} px wide of ${NARROW.width}`);
  }
}

/**
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 */
async function searchAndOpen(page, address, problems) {
  await page.goto(`${address}reference/agent.html`);
  await page.keyboard.press("/");
  await page.keyboard.type("steering");
  const first = page.locator("#site-results a").first();
  await first.waitFor();
  const text = await first.textContent();
  if (text !== "Steering") problems.push(`the first hit of "steering" is ${text}`);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${address}steering.html`);

  await page.locator("#site-query").fill("defineTool");
  await page.locator("#site-results a").first().click();
  await page.waitForURL(`${address}reference/agent.html#function-definetool`);

  await page.locator("#site-query").fill("nosuchwordatall");
  await page.locator("#site-results").getByText("Nothing found for").waitFor();
  await page.keyboard.press("Escape");
  if (await page.locator("#site-results").isVisible()) problems.push("Escape leaves the hits");
}

/**
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 */
async function switchTheme(page, address, problems) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.goto(address);
  const light = await background();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await background();
  if (light === dark) problems.push("the page does not follow the system into the dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.locator("#site-theme").click();
  if ((await background()) !== dark) problems.push("the switch does not make the page dark");
  await page.reload();
  if ((await background()) !== dark) problems.push("the page is not dark after a reload");
  await page.goto(`${address}tools.html`);
  if ((await background()) !== dark) problems.push("another page is not dark");
  await page.emulateMedia({ media: "print" });
  if ((await background()) !== light) problems.push("the page is printed dark");
  if (await page.locator("header").isVisible()) problems.push("the header is printed");
  await page.emulateMedia({ media: "screen" });
  await page.locator("#site-theme").click();
  if ((await background()) !== light) problems.push("the switch does not lead back");
}

/**
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 */
async function copyCode(page, address, problems) {
  await page.goto(`${address}getting-started.html`);
  const block = page.locator(".code").first();
  await block.hover();
  await block.locator("button").click();
  await block.getByText("Copied").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const shown = await block.locator("code").textContent();
  if (copied !== shown || copied.trim() === "") problems.push(`the copy of the code is: ${copied}`);
}

/**
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 */
async function useKeyboard(page, address, problems) {
  await page.goto(`${address}tools.html`);
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement?.textContent);
  if (first !== "Skip to the content") problems.push(`the first stop of Tab is ${first}`);
  await page.keyboard.press("Enter");
  const id = await page.evaluate(() => document.activeElement?.id);
  if (id !== "site-content") problems.push(`the link to the content leads to "${id}"`);
  // What no label names is nothing to a screen reader.
  const unnamed = await page.evaluate(
    () =>
      [...document.querySelectorAll("a, button, nav, [role=region], img")].filter((element) => {
        const name =
          element.getAttribute("aria-label") ?? element.getAttribute("alt") ?? element.textContent;
        return (name ?? "").trim() === "";
      }).length,
  );
  if (unnamed > 0) problems.push(`${unnamed} elements have no name`);
}

/**
 * @param {Page} page
 * @param {string} address
 * @param {string[]} problems
 */
async function useMenu(page, address, problems) {
  await page.setViewportSize(NARROW);
  await page.goto(`${address}tools.html`);
  const link = page.locator("#site-navigation [aria-current=page]").first();
  if (await link.isVisible()) problems.push("the navigation of a narrow page is open");
  await page.getByRole("button", { name: "Menu", expanded: false }).click();
  await link.waitFor();
  await page.getByRole("button", { name: "Menu", expanded: true }).click();
  await link.waitFor({ state: "hidden" });
}

/**
 * Without a server: a page that is opened as a file has the same search.
 *
 * @param {Page} page
 * @param {string} folder
 * @param {ReadonlyMap<string, string>} files
 * @param {string[]} problems
 */
async function openAsFile(page, folder, files, problems) {
  for (const [path, text] of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  await page.goto(pathToFileURL(join(folder, "tools.html")).href);
  await page.locator("#site-query").fill("steering");
  await page.locator("#site-results a").first().click();
  await page.waitForURL(pathToFileURL(join(folder, "steering.html")).href);
  const title = await page.locator("h1").textContent();
  if (title !== "Steering") problems.push(`the hit opened "${title}"`);
}
