// The library in Chromium: in a page, in a worker, where `eval` is forbidden, and over the wire
// with a server; and the site of the guide: `npm run test:browser`; `-- guide` says which.
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { useGuide } from "./browser/guide.mjs";
import { entriesInPage, exampleInPages } from "./browser/wire.mjs";
import { bundleForBrowser } from "../release/bundle.mjs";
import { collectErrors, withChromium } from "../shared/chromium.mjs";
import { runParts } from "../shared/parts.mjs";

/**
 * @typedef {import("playwright-core").Browser} Browser
 * @typedef {import("playwright-core").Page} Page
 * @typedef {import("../release/consumer/browser.mjs").Outcome} Outcome
 */

const STRICT = "default-src 'none'; script-src 'self'; worker-src 'self'";
const TIMEOUT_MS = 20_000;

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Serves an empty page, with and without a policy, and the bundle. A worker is bound by
 * the policy of its own file, so that is there twice too.
 *
 * @param {ReadonlyMap<string, string>} files
 */
async function serve(files) {
  const server = createServer(({ url = "/" }, response) => {
    const [, mode, name = ""] = url.split("/");
    const code = files.get(name);
    const isPage = name === "";
    if (mode === "strict") response.setHeader("content-security-policy", STRICT);
    response.setHeader("content-type", isPage ? "text/html" : "text/javascript");
    response.statusCode = isPage || code !== undefined ? 200 : 404;
    response.end(isPage ? "<!doctype html><title>Gyre</title>" : code);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { server, base: `http://127.0.0.1:${address.port}` };
}

/**
 * @param {Outcome} outcome
 * @returns {import("../shared/parts.mjs").Findings}
 */
function toFindings(outcome) {
  return "error" in outcome
    ? { problems: [outcome.error] }
    : { problems: [], figures: [outcome.stops.join(", ")] };
}

/** @param {Page} page */
async function inPage(page) {
  /** @type {Outcome} */
  const outcome = await page.evaluate(async () => {
    const script = document.createElement("script");
    script.type = "module";
    script.src = "main.js";
    const loaded = new Promise((resolve, reject) => {
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error("the bundle did not load")));
    });
    document.head.append(script);
    await loaded;
    return Reflect.get(globalThis, "outcome");
  });
  return toFindings(outcome);
}

/**
 * @param {Page} page
 * @param {"file" | "blob"} from
 */
async function inWorker(page, from) {
  /** @type {Outcome} */
  const outcome = await page.evaluate((from) => {
    const main = new URL("main.js", location.href).href;
    const blob = new Blob([`import ${JSON.stringify(main)};`], { type: "text/javascript" });
    const url = from === "blob" ? URL.createObjectURL(blob) : main;
    const worker = new Worker(url, { type: "module" });
    return new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }) => resolve(data));
      worker.addEventListener("error", ({ message }) =>
        reject(new Error(`the worker failed: ${message || "it did not load"}`)),
      );
    });
  }, from);
  return toFindings(outcome);
}

/**
 * A policy that is not in force proves nothing: what the page itself tries must fail.
 * It tries it in a script of its own, since a debugger's evaluation may be exempt.
 *
 * @param {Page} page
 */
async function evalIsForbidden(page) {
  const message = await page.evaluate(async () => {
    const url = new URL("eval.js", location.href).href;
    return (await import(url)).tryEval();
  });
  return /unsafe-eval/.test(message)
    ? { problems: [] }
    : { problems: [`eval works under the policy (${message})`] };
}

/** @param {Browser} browser */
async function main(browser) {
  const entry = fileURLToPath(new URL("../release/consumer/browser.mjs", import.meta.url));
  const chunks = await bundleForBrowser(entry, root);
  const files = new Map(chunks.map(({ fileName, code }) => [fileName, code]));
  const wireEntry = fileURLToPath(new URL("../release/consumer/wire.mjs", import.meta.url));
  for (const { fileName, code } of await bundleForBrowser(wireEntry, root)) {
    files.set(fileName === "main.js" ? "wire.js" : fileName, code);
  }
  files.set(
    "eval.js",
    'export function tryEval() { try { return "got " + new Function("return 1")(); } catch (error) { return String(error); } }',
  );
  const { server, base } = await serve(files);
  /**
   * @param {"plain" | "strict"} mode
   * @param {(page: Page) => Promise<import("../shared/parts.mjs").Findings>} check
   */
  const on = (mode, check) => async () => {
    const page = await browser.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    /** @type {string[]} */
    const problems = [];
    collectErrors(page, problems);
    await page.goto(`${base}/${mode}/`);
    const found = await Promise.race([check(page), tooLate()]);
    await page.close();
    return { ...found, problems: [...found.problems, ...problems] };
  };
  try {
    const parts = [
      { name: "page", check: on("plain", inPage) },
      { name: "blob worker", check: on("plain", (page) => inWorker(page, "blob")) },
      { name: "policy", check: on("strict", evalIsForbidden) },
      { name: "strict page", check: on("strict", inPage) },
      { name: "strict work", check: on("strict", (page) => inWorker(page, "file")) },
      { name: "wire", check: on("plain", entriesInPage) },
      { name: "example", check: () => exampleInPages(browser, root) },
      { name: "guide", check: () => useGuide(browser, root) },
    ];
    const given = process.argv.slice(2);
    const unknown = given.find((name) => parts.every((part) => part.name !== name));
    if (unknown !== undefined) {
      throw new Error(
        `No part "${unknown}". There are: ${parts.map(({ name }) => name).join(", ")}.`,
      );
    }
    const chosen = parts.filter(({ name }) => given.length === 0 || given.includes(name));
    return await runParts(chosen, (line) => console.log(line));
  } finally {
    server.close();
  }
}

/** @returns {Promise<import("../shared/parts.mjs").Findings>} */
function tooLate() {
  return new Promise((resolve) => {
    const problems = [`there was no outcome after ${TIMEOUT_MS / 1000} s`];
    setTimeout(() => resolve({ problems }), TIMEOUT_MS).unref();
  });
}

await withChromium(main);
