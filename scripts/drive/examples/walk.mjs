// What a person does at the page of an example; all of them have the same roles, names and script.
import { gzipSync } from "node:zlib";
import { collectErrors } from "../../shared/chromium.mjs";
import { listenBetween } from "./cut.mjs";

/**
 * @typedef {import("playwright-core").Browser} Browser
 * @typedef {import("playwright-core").Page} Page
 * @typedef {import("../../shared/parts.mjs").Findings} Findings
 */

/** How long one step may take to show on a busy machine. */
const STEP_MS = 30_000;
/** A page that took it for more than text would not show it whole. */
const HELLO = "Hello <b>there</b>";
/** Of an answer that streams, at least so many states are seen. */
const MIN_STEPS = 10;
const NUMBERS = Array.from({ length: 100 }, (_, at) => at + 1).join(" ");
/** What a browser writes of a connection that we cut. */
const CUT = /net::ERR_(?:INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)/;
const REFUNDED = "5 euros are on their way.";

/** @param {string} text */
const makeAnswer = (text) => `You said "${text}". ${NUMBERS}`;

/**
 * Prompts, allows a call, denies one, sees an error, stops an answer, loads the page again in the middle of one, and
 * has the connection cut in the middle of another where the page connects again by itself.
 *
 * @param {Browser} browser
 * @param {URL} server
 * @param {{ reconnects: boolean, errorText: string }} example
 * @returns {Promise<Findings>}
 */
export async function walkChat(browser, server, { reconnects, errorText }) {
  const between = await listenBetween(server);
  const context = await browser.newContext();
  /** @type {string[]} */
  const problems = [];
  /** @type {string[]} */
  const steps = [];
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    collectErrors(page, problems);
    const scripts = collectScripts(page);
    steps.push("open");
    await page.goto(between.address);
    await waitForIdle(page);
    const sizes = await scripts();

    steps.push("text");
    const watched = await watchAnswer(page);
    await sayAt(page, HELLO);
    await waitForText(page, makeAnswer(HELLO));
    await waitForIdle(page);
    const { seen, firstMs } = await watched();
    const answer = makeAnswer(HELLO);
    if (seen.length < MIN_STEPS) problems.push(`the answer came in ${seen.length} steps`);
    const wrong = seen.find((text) => !answer.startsWith(text));
    if (wrong !== undefined) problems.push(`in between there was ${JSON.stringify(wrong)}`);

    steps.push("allow");
    await sayAt(page, "Please refund me");
    await page.getByRole("button", { name: "Allow" }).click();
    await waitForText(page, `The tool gave: ${REFUNDED}`);
    await waitForIdle(page);

    steps.push("deny");
    await sayAt(page, "Another refund");
    const deny = page.getByRole("button", { name: "Deny" });
    await deny.waitFor();
    // The question is there when the page is loaded again.
    await page.reload();
    await deny.click();
    await waitForText(page, 'The tool gave: Tool "refund" was denied');
    await waitForIdle(page);
    const refunds = (await readLog(page)).split(REFUNDED).length - 1;
    if (refunds !== 2) problems.push(`of the one refund, the page shows ${refunds} texts, not 2`);

    steps.push("error");
    await sayAt(page, "Now fail");
    await page.getByRole("alert").filter({ hasText: errorText }).waitFor();
    if ((await readLog(page)).includes("sk-")) problems.push("the page has what the service wrote");
    await waitForIdle(page);

    steps.push("stop");
    await sayAt(page, "Count");
    await waitForText(page, 'You said "Count". 1 2 3');
    await page.getByRole("button", { name: "Stop" }).click();
    await waitForIdle(page);
    if ((await readLog(page)).includes(makeAnswer("Count")))
      problems.push("the stop came too late");

    steps.push("reload");
    await sayAt(page, "Count again");
    await waitForText(page, 'You said "Count again". 1 2 3');
    await page.reload();
    await waitForText(page, 'You said "Count again". 1 2 3');
    if ((await readLog(page)).includes(makeAnswer("Count again"))) {
      problems.push("the page was loaded again too late");
    }
    await waitForText(page, makeAnswer("Count again"));
    await waitForIdle(page);

    if (reconnects) {
      steps.push("cut");
      await sayAt(page, "Count on");
      await waitForText(page, 'You said "Count on". 1 2 3');
      if (between.cut() === 0) problems.push("there was nothing to cut");
      if ((await readLog(page)).includes(makeAnswer("Count on")))
        problems.push("the cut came too late");
      await waitForText(page, makeAnswer("Count on"));
      await waitForIdle(page);
      problems.splice(0, problems.length, ...problems.filter((problem) => !CUT.test(problem)));
    }

    steps.push("end");
    await expectConversation(page, reconnects, problems);
    return { problems, figures: [`${sizes}; first delta after ${firstMs.toFixed(0)} ms`] };
  } catch (error) {
    return { problems: [...problems, `at "${steps.at(-1)}": ${String(error)}`] };
  } finally {
    await context.close();
    between.close();
  }
}

/**
 * Prompts once and waits for an answer: for an example whose model is not its script.
 *
 * @param {Browser} browser
 * @param {URL} server
 * @param {string} answer
 * @returns {Promise<Findings>}
 */
export async function askOnce(browser, server, answer) {
  const context = await browser.newContext();
  /** @type {string[]} */
  const problems = [];
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(STEP_MS);
    collectErrors(page, problems);
    await page.goto(server.href);
    await waitForIdle(page);
    await sayAt(page, HELLO);
    await waitForText(page, answer);
    await waitForIdle(page);
    return { problems };
  } catch (error) {
    return { problems: [...problems, String(error)] };
  } finally {
    await context.close();
  }
}

/**
 * The conversation, once, in its order, and the same when the page is loaded again.
 *
 * @param {Page} page
 * @param {boolean} reconnects
 * @param {string[]} problems
 */
async function expectConversation(page, reconnects, problems) {
  const order = [
    HELLO,
    makeAnswer(HELLO),
    "Please refund me",
    `The tool gave: ${REFUNDED}`,
    "Another refund",
    'The tool gave: Tool "refund" was denied',
    "Now fail",
    "Count",
    'You said "Count". 1 2 3',
    "Count again",
    makeAnswer("Count again"),
    ...(reconnects ? ["Count on", makeAnswer("Count on")] : []),
  ];
  const text = await readLog(page);
  let at = 0;
  for (const part of order) {
    const found = text.indexOf(part, at);
    if (found === -1) problems.push(`there is no ${JSON.stringify(part)} in its place in: ${text}`);
    else at = found + part.length;
  }
  const again = text.indexOf(makeAnswer(HELLO), text.indexOf(makeAnswer(HELLO)) + 1);
  if (again !== -1) problems.push("the first answer is there twice");
  await page.reload();
  await waitForText(page, order.at(-1) ?? "");
  await waitForIdle(page);
  const reloaded = await readLog(page);
  if (reloaded !== text) problems.push(`loaded again it has: ${reloaded}\nbefore: ${text}`);
}

/**
 * Counts the scripts of a page from now on: those that it loads, and those within it.
 *
 * @param {Page} page
 * @returns {() => Promise<string>} what there were
 */
function collectScripts(page) {
  /** @type {Promise<Buffer>[]} */
  const bodies = [];
  page.on("response", (response) => {
    if (response.request().resourceType() === "script") bodies.push(response.body());
  });
  return async () => {
    const inline = await page.$$eval("script:not([src])", (scripts) =>
      scripts.map(({ textContent }) => textContent ?? ""),
    );
    const files = [...(await Promise.all(bodies)), ...inline.map((text) => Buffer.from(text))];
    const size = files.reduce((sum, { length }) => sum + length, 0);
    const zipped = files.reduce((sum, file) => sum + gzipSync(file).length, 0);
    return `JavaScript: ${toKb(size)}, ${toKb(zipped)} gzip`;
  };
}

/** @param {number} bytes */
const toKb = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;

/**
 * Notes each state of the first answer as a person would see it, and when it began to show after Send was pressed.
 *
 * @param {Page} page
 * @returns {Promise<() => Promise<{ seen: string[], firstMs: number }>>}
 */
async function watchAnswer(page) {
  const notes = await page.evaluateHandle(() => {
    /** @type {{ seen: string[], firstMs: number }} */
    const noted = { seen: [], firstMs: Number.NaN };
    let pressedAt = 0;
    const press = () => (pressedAt = performance.now());
    document.querySelector("form")?.addEventListener("submit", press, { capture: true });
    const look = () => {
      const text = document.querySelector('[data-role="assistant"]')?.textContent ?? "";
      if (text === "" || text === noted.seen.at(-1)) return;
      if (noted.seen.length === 0) noted.firstMs = performance.now() - pressedAt;
      noted.seen.push(text);
    };
    const what = { childList: true, characterData: true, subtree: true };
    new MutationObserver(look).observe(document.body, what);
    return noted;
  });
  return () => notes.jsonValue();
}

/**
 * @param {Page} page
 * @param {string} text
 */
async function sayAt(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/**
 * @param {Page} page
 * @param {string} text
 */
async function waitForText(page, text) {
  const isThere = (/** @type {string} */ wanted) =>
    (document.querySelector('[role="log"]')?.textContent ?? "").includes(wanted);
  await page.waitForFunction(isThere, text);
}

/** Nothing runs: a person can send. @param {Page} page */
async function waitForIdle(page) {
  await page.waitForFunction(() => {
    const buttons = [...document.querySelectorAll("button")];
    const isOff = (/** @type {string} */ name) =>
      buttons.find(({ textContent }) => textContent === name)?.disabled;
    return isOff("Send") === false && isOff("Stop") === true;
  });
}

/** @param {Page} page */
async function readLog(page) {
  return (await page.locator('[role="log"]').textContent()) ?? "";
}
