// The wire in Chromium: the packages' entries for browsers, and the page of examples/server.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { ModelService, WireServer } from "@gyre/protocol";
import { listenHttp, makeToken, createStreamRoutes } from "@gyre/protocol/node";
import { SessionService } from "@gyre/server";
import { collectErrors } from "../../shared/chromium.mjs";

/**
 * @typedef {import("playwright-core").Browser} Browser
 * @typedef {import("playwright-core").Page} Page
 * @typedef {import("../../shared/parts.mjs").Findings} Findings
 */

/** How long one step of a person at the page may take to show. */
const STEP_MS = 15_000;
/** An example that is still there by then was left behind. */
const EXAMPLE_MS = 60_000;
const TEXT = "Tea is ready when the leaves say so, not before.";
/** A page that took it for more than text would not show it whole. */
const HELLO = "Hello <b>there</b>";
/** Of an answer that streams, at least so many states are seen. */
const MIN_STEPS = 10;
const NUMBERS = Array.from({ length: 100 }, (_, at) => at + 1).join(" ");

/**
 * A server with models and sessions, for pages of one origin.
 *
 * @param {string} origin
 */
export async function serveWire(origin) {
  const scripted = scriptedModel(() => TEXT, { chunkSize: 4, betweenMs: 1, keepCalls: false });
  const { model } = scripted;
  const models = new ModelService({ client: scripted, models: () => [model] });
  let made = 0;
  const sessions = new SessionService({
    create: async () => {
      const agent = new Agent({ protocol: scripted, model });
      return { id: `s_${++made}`, agent, close: async () => agent.abort() };
    },
    open: async () => undefined,
    list: async () => [],
  });
  const server = new WireServer([models, sessions]);
  const token = makeToken();
  const listener = await listenHttp({
    token,
    origins: [origin],
    routes: createStreamRoutes(models),
    serve: (transport) => void server.serve(transport),
  });
  return {
    page: { url: listener.url, token, model, text: TEXT },
    close: async () => {
      await Promise.all([server.close(), listener.close({ graceMs: 0 })]);
    },
  };
}

/**
 * Uses every entry for browsers in a page that has loaded them.
 *
 * @param {Page} page
 * @returns {Promise<Findings>}
 */
export async function entriesInPage(page) {
  const server = await serveWire(new URL(page.url()).origin);
  try {
    await page.addScriptTag({ type: "module", url: "wire.js" });
    await page.waitForFunction(() => "tourOfTheWire" in globalThis);
    /** @type {string[]} */
    const stops = await page.evaluate(
      (given) => Reflect.get(globalThis, "tourOfTheWire")(given),
      server.page,
    );
    return { problems: [], figures: [stops.join(", ")] };
  } finally {
    await server.close();
  }
}

/**
 * Does what a person would do at the page of the example: prompts, has the connection cut in
 * the middle of the answer, twice, steers, stops, and looks with a second page.
 *
 * @param {Browser} browser
 * @param {string} root
 * @returns {Promise<Findings>}
 */
export async function exampleInPages(browser, root) {
  const { address, end } = await startExample(root);
  const context = await browser.newContext();
  /** @type {string[]} */
  const problems = [];
  try {
    const page = await openPage(context, address, problems);
    if (page.url().includes("token")) problems.push("the token stays in the address");

    const answer = `You said "${HELLO}". ${NUMBERS}`;
    const seen = await watchAnswer(page);
    await sayAt(page, HELLO);
    await cutAt(page, "10 11 12", problems);
    await cutAt(page, "40 41 42", problems);
    await waitForIdle(page);
    await expectConversation(problems, page, [HELLO, answer], "two cuts");
    const shown = await seen();
    if (shown.length < MIN_STEPS) problems.push(`the answer came in ${shown.length} steps`);
    const wrong = shown.find((text) => !answer.startsWith(text));
    if (wrong !== undefined) problems.push(`in between there was ${JSON.stringify(wrong)}`);

    await sayAt(page, "Count");
    await waitForText(page, 'You said "Count". 1 2 3');
    await sayAt(page, "Stop counting");
    await waitForText(page, 'You said "Stop counting". 1 2 3');
    await page.click("#stop");
    await waitForIdle(page);
    const conversation = await readConversation(page);
    const [, , , counted = "", steered = "", stopped = ""] = conversation;
    if (!/^You said "Count"\. 1 2 3.* \[Steered\]$/.test(counted)) {
      problems.push(`count: ${counted}`);
    }
    if (steered !== "Stop counting") problems.push(`steered: ${steered}`);
    if (!/1 2 3.* \[Stopped\]$/.test(stopped)) problems.push(`stopped: ${stopped}`);

    const second = await openPage(context, address, problems);
    await expectConversation(problems, second, conversation, "a second page was opened");
    await second.reload();
    await waitForReady(second);
    await expectConversation(problems, second, conversation, "it was loaded again");
    return {
      problems,
      figures: [`${conversation.length} messages, ${shown.length} steps over two cuts`],
    };
  } catch (error) {
    return { problems: [...problems, String(error)] };
  } finally {
    await context.close();
    await end();
  }
}

/** @param {string} root */
async function startExample(root) {
  const script = join(root, "scripts/drive/example.mjs");
  const child = spawn(process.execPath, [script, "server"], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: EXAMPLE_MS,
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const end = async () => {
    child.kill();
    await ended;
  };
  /** @type {Promise<string>} */
  const found = new Promise((resolve) => {
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
      const address = /Open (http:\S+)\n/.exec(output)?.[1];
      if (address !== undefined) resolve(address);
    });
  });
  const address = await Promise.race([found, ended.then(() => undefined)]);
  if (address === undefined) throw new Error("the example ended before it printed its address");
  return { address, end };
}

/**
 * @param {import("playwright-core").BrowserContext} context
 * @param {string} address
 * @param {string[]} problems
 */
async function openPage(context, address, problems) {
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  collectErrors(page, problems);
  await page.goto(address);
  await waitForReady(page);
  return page;
}

/**
 * The page is connected, and shows the conversation.
 *
 * @param {Page} page
 */
async function waitForReady(page) {
  await page.waitForSelector("#state[data-type=ready]");
  await page.waitForSelector("#send:enabled");
}

/**
 * Notes each state of the first answer, as a person would see it. Returns a function that
 * lists them.
 *
 * @param {Page} page
 * @returns {Promise<() => Promise<string[]>>}
 */
async function watchAnswer(page) {
  const notes = await page.evaluateHandle(() => {
    /** @type {string[]} */
    const seen = [];
    const look = () => {
      const text = document.querySelector("article:nth-of-type(2)")?.textContent ?? "";
      if (text !== seen.at(-1)) seen.push(text);
    };
    const what = { childList: true, characterData: true, subtree: true };
    new MutationObserver(look).observe(document.body, what);
    return seen;
  });
  return () => notes.jsonValue();
}

/**
 * Has the server cut all connections when a text is there, and waits for the next one. The
 * answer has to be on its way still, or it proves nothing.
 *
 * @param {Page} page
 * @param {string} text
 * @param {string[]} problems
 */
async function cutAt(page, text, problems) {
  await waitForText(page, text);
  const again = page.waitForEvent("websocket");
  await page.click("#cut");
  await again;
  if ((await page.$("#stop:enabled")) === null) problems.push(`the cut at ${text} came too late`);
  await waitForReady(page);
}

/**
 * @param {Page} page
 * @param {string} text
 */
async function sayAt(page, text) {
  await page.fill("#text", text);
  await page.click("#send");
}

/**
 * @param {Page} page
 * @param {string} text
 */
async function waitForText(page, text) {
  const isThere = (/** @type {string} */ wanted) =>
    (document.querySelector("#conversation")?.textContent ?? "").includes(wanted);
  await page.waitForFunction(isThere, text);
}

/** @param {Page} page */
async function waitForIdle(page) {
  await page.waitForFunction(() => document.querySelector("#stop:disabled") !== null);
}

/** @param {Page} page */
function readConversation(page) {
  return page.$$eval("article", (articles) =>
    articles.map(({ textContent, dataset: { note } }) =>
      note === undefined ? textContent : `${textContent} [${note}]`,
    ),
  );
}

/**
 * @param {string[]} problems
 * @param {Page} page
 * @param {readonly string[]} expected
 * @param {string} after
 */
async function expectConversation(problems, page, expected, after) {
  const got = JSON.stringify(await readConversation(page));
  const wanted = JSON.stringify(expected);
  if (got !== wanted) problems.push(`after ${after} there is ${got} instead of ${wanted}`);
}
