import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { THINKING_LEVELS } from "../../packages/ai/dist/messages/messages.js";
import { catalog } from "../../packages/ai/dist/models/index.js";
import { createProviders } from "../../packages/ai/dist/providers/index.js";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { FACTS_FOLDER, fetchFacts, isMadeUp, readEntries, SERVICES } from "./catalog.mjs";

/**
 * Compares the catalog, entry by entry, with the package that its facts are from, without going
 * through what wrote it: windows, output limits, prices, and for each model and level of thinking
 * the word that a request sends. Run after a build:
 *
 *     npm run catalog:compare                      with the package, fetched by npm
 *     npm run catalog:compare -- --from FOLDER     with an unpacked package
 *
 * Differences that have a reason are listed with it; any other makes it fail.
 *
 * @typedef {import("./catalog.mjs").Entry} Entry
 * @typedef {import("../../packages/ai/dist/messages/messages.js").Model} Model
 * @typedef {import("../../packages/ai/dist/messages/messages.js").ThinkingLevel} ThinkingLevel
 * @typedef {{ name: string, what: string, reason?: string | undefined }} Difference
 * @typedef {{ entries: number, requests: number, differences: Difference[] }} Comparison
 */

/**
 * @param {string} folder the unpacked package with the facts
 * @param {readonly Model[]} [models]
 * @returns {Promise<Comparison>}
 */
export async function compareCatalog(folder, models = catalog()) {
  const facts = join(folder, FACTS_FOLDER);
  /** @type {Map<string, Entry>} */
  const source = new Map();
  for (const { id: service, file, of } of SERVICES) {
    for (const entry of readEntries(join(facts, `${file}.json`), of)) {
      source.set(`${service}/${entry.id}`, entry);
    }
  }
  /** @type {Comparison} */
  const comparison = { entries: 0, requests: 0, differences: [] };
  for (const model of models) {
    const name = `${model.provider}/${model.id}`;
    const entry = source.get(name);
    if (entry === undefined) continue;
    comparison.entries++;
    /**
     * @param {string} what
     * @param {string} [reason]
     */
    const report = (what, reason) => void comparison.differences.push({ name, what, reason });
    compareFacts(model, entry, source, report);
    for (const level of THINKING_LEVELS) {
      comparison.requests++;
      const word = await sentWord(model, level);
      if (word !== undefined && !listWords(entry).includes(word)) {
        report(
          `level ${level} is sent as "${word}"; the source has ${listWords(entry).join(", ")}`,
        );
      }
    }
  }
  return comparison;
}

/**
 * @param {Model} model
 * @param {Entry} entry
 * @param {ReadonlyMap<string, Entry>} source
 * @param {(what: string, reason?: string) => void} report
 */
function compareFacts(model, entry, source, report) {
  const { contextWindow, maxTokens, price } = model;
  if (contextWindow !== entry.contextWindow) {
    const cutAt = entry.cost?.tiers?.[0]?.inputTokensAbove;
    const routed = source.get(`openrouter/openai/${model.id}`)?.contextWindow;
    const isCut = entry.contextWindow === cutAt && contextWindow === routed;
    report(
      `window ${contextWindow}; the source has ${entry.contextWindow}`,
      isCut
        ? `the source ends it where the dearer price begins; at OpenRouter it has ${routed}`
        : undefined,
    );
  }
  if (maxTokens !== entry.maxTokens) {
    const isTooMuch = (entry.maxTokens ?? 0) > (entry.contextWindow ?? Infinity);
    const filledIn = "the source has what it fills in where OpenRouter gives none";
    const reason = isMadeUp(entry.maxTokens, entry.contextWindow)
      ? `${filledIn}; ${maxTokens === undefined ? "not known" : "this is the maker's"}`
      : isTooMuch && maxTokens === contextWindow
        ? "the source has more than the window"
        : undefined;
    report(`output limit ${maxTokens}; the source has ${entry.maxTokens}`, reason);
  }
  for (const rate of /** @type {const} */ (["input", "output", "cacheRead", "cacheWrite"])) {
    // The source has 0 for what it does not know, and less for what is not fixed.
    const known = Math.max(0, entry.cost?.[rate] ?? 0);
    const ours = price?.[rate] ?? 0;
    if (Math.abs(ours - known) > known * ROUNDING) {
      report(`price of ${rate} ${ours}; the source has ${known}`);
    }
  }
}

/** Prices are kept with six digits. */
const ROUNDING = 1e-5;

/**
 * The words that the source has for the levels of a model.
 *
 * @param {Entry} entry
 * @returns {string[]}
 */
function listWords({ reasoning, thinkingLevelMap: map, compat }) {
  if (!reasoning || compat?.supportsReasoningEffort === false) return [];
  // Levels that it does not mention are those of all models; these two have to be mentioned.
  return SOURCE_LEVELS.flatMap((level) => {
    const word = map?.[level];
    if (typeof word === "string") return [word.toLowerCase()];
    const isUsual = word === undefined && !["minimal", "xhigh", "max"].includes(level);
    return isUsual ? [level === "off" ? "none" : level] : [];
  });
}

const SOURCE_LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * The word for a level in the request that is sent; nothing where it sends none.
 *
 * @param {Model} model
 * @param {ThinkingLevel} thinkingLevel
 * @returns {Promise<string | undefined>}
 */
async function sentWord(model, thinkingLevel) {
  /** @type {any} */
  let body;
  const providers = createProviders({
    fetch: async (_, init) => {
      body = JSON.parse(init?.body ?? "{}");
      return new Response("", { status: 400 });
    },
  });
  const stream = await providers
    .get(model.api)
    ?.stream(
      { baseUrl: "https://service.test/v1", ...model },
      { messages: [{ role: "user", content: "Hello", timestamp: 0 }] },
      { apiKey: "test-key", thinkingLevel },
    );
  await stream?.result();
  const { additionalModelRequestFields: more = {}, generationConfig } = body ?? {};
  const word =
    body?.reasoning?.effort ??
    body?.reasoning_effort ??
    body?.output_config?.effort ??
    more.reasoning?.effort ??
    more.reasoning_effort ??
    more.output_config?.effort ??
    more.reasoningConfig?.maxReasoningEffort ??
    generationConfig?.thinkingConfig?.thinkingLevel;
  return typeof word === "string" ? word.toLowerCase() : undefined;
}

/** @param {Comparison} comparison */
export function describeComparison({ entries, requests, differences }) {
  const open = differences.filter(({ reason }) => reason === undefined);
  return [
    ...differences.map(({ name, what, reason }) =>
      reason === undefined ? `WRONG ${name}: ${what}` : `${name}: ${what} (${reason})`,
    ),
    `${entries} entries and ${requests} requests compared: ${differences.length} differences, ${open.length} without a reason.`,
  ].join("\n");
}

async function main() {
  const { values } = parseArgs({ options: { from: { type: "string" } } });
  const comparison =
    values.from === undefined
      ? await inTemporaryFolder(async (folder) => compareCatalog(await fetchFacts(folder)))
      : await compareCatalog(values.from);
  console.log(describeComparison(comparison));
  if (comparison.differences.some(({ reason }) => reason === undefined)) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
