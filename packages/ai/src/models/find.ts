import type { Model } from "../messages/messages.ts";
import { nearNames } from "../schema/near-names.ts";
import { catalog } from "./catalog.ts";

/** No model has such a name. `suggestions` are names that `find` takes, the likeliest first. */
export class ModelNotFoundError extends Error {
  readonly code = "model_not_found";
  readonly query: string;
  readonly suggestions: readonly string[];
  constructor(query: string, suggestions: readonly string[]) {
    const next =
      suggestions.length > 0
        ? `Did you mean ${suggestions.join(", ")}?`
        : "Write a name as provider/id, or add the model to your file of models.";
    const [, service, id] = /^([\w-]+)\/(\S+)$/.exec(query) ?? [];
    const own = id
      ? ` In a program, model("${service}", "${id}") of @gyre/ai/models is one that the catalog does not have.`
      : "";
    super(`No model fits "${query}". ${next}${own}`);
    this.name = "ModelNotFoundError";
    this.query = query;
    this.suggestions = suggestions;
  }
}

/** Several models have such a name, and none of them is the likeliest. */
export class AmbiguousModelError extends Error {
  readonly code = "ambiguous_model";
  readonly query: string;
  /** What fits, as provider/id: of each family at each service the newest. */
  readonly candidates: readonly string[];
  constructor(query: string, candidates: readonly string[]) {
    const shown = candidates.slice(0, MAX_SHOWN).join(", ");
    const more = candidates.length - MAX_SHOWN;
    super(
      `"${query}" fits several models: ${shown}${more > 0 ? ` and ${more} more` : ""}. Write one of them in full.`,
    );
    this.name = "AmbiguousModelError";
    this.query = query;
    this.candidates = candidates;
  }
}

const MAX_SHOWN = 8;
const MAX_SUGGESTIONS = 3;
/** A word as short as this is near to many; one that a single model has is hardly meant. */
const SHORT_WORD_CHARS = 4;
const COMMON_WORD_MODELS = 2;

/** Models that can be looked up by name. */
export interface ModelCatalog {
  /** All of them, or those of one service, in the order in which they were given. */
  list(filter?: { provider?: string }): readonly Model[];
  /**
   * The model that is meant by a name, whatever its case: `provider/id`, an id, a
   * model's own name, or a part of these. A name that begins with a service finds models of that
   * service alone, and by their whole id or name: a model that is not known is never replaced by
   * another. One word without a number, as in `anthropic/sonnet`, is the newest of that family.
   *
   * Where a name fits several, this decides, in this order: what fits exactly; who
   * makes the model before your own and local services, and these before resellers;
   * a part that is whole words ("mini" is not meant to find "gemini"); and of one family
   * at one service (names that differ in numbers and dates alone) the newest: what is
   * called latest, else what has the highest number, and of the same number what has no
   * date. If there are several families still, it throws `AmbiguousModelError`; if
   * nothing fits, `ModelNotFoundError`.
   */
  find(query: string): Model;
}

/** A catalog of `models`. Of two with the same provider and id the later one counts. */
export function createCatalog(models: readonly Model[]): ModelCatalog {
  const all = Object.freeze([...new Map(models.map((model) => [fullId(model), model])).values()]);
  let entries: Entry[] | undefined;
  const named = (wanted: string): Model[] =>
    all.filter((model) => fullId(model).toLowerCase() === wanted);
  return {
    list: ({ provider } = {}) =>
      provider === undefined ? all : all.filter((model) => model.provider === provider),
    find(query) {
      // What has its full name needs no list of words.
      const [only, other] = named(query.trim().toLowerCase());
      if (only && !other) return only;
      entries ??= all.map((model) => new Entry(model));
      return find(query, entries);
    },
  };
}

/** One look-up, in `models` or in the catalog. `ModelCatalog.find` says how names are read. */
export function findModel(query: string, models?: readonly Model[]): Model {
  if (models) return createCatalog(models).find(query);
  known ??= createCatalog(catalog());
  return known.find(query);
}

let known: ModelCatalog | undefined;

/** The services that make the models which they offer. */
const MAKERS = new Set([
  "anthropic",
  "openai",
  "google",
  "xai",
  "deepseek",
  "mistral",
  "moonshot",
  "zai",
  "perplexity",
]);

const RESELLERS = new Set([
  "groq",
  "cerebras",
  "together",
  "fireworks",
  "huggingface",
  "google-vertex",
  "amazon-bedrock",
  "azure-openai-responses",
  "github-models",
  "openrouter",
]);

class Entry {
  readonly model: Model;
  /** Smaller is more direct. */
  readonly rank: number;
  readonly id: string;
  readonly name: string;
  // What most entries are never asked for is made when it is.
  #texts: readonly [string, string] | undefined;
  #parts: IdParts | undefined;

  constructor(model: Model) {
    this.model = model;
    this.rank = computeRank(model.provider);
    this.id = model.id.toLowerCase();
    this.name = model.name.toLowerCase();
  }

  /** Id and name with one separator, and one at each end, so that whole words match. */
  get texts(): readonly [string, string] {
    this.#texts ??= [`-${separated(this.id)}-`, `-${separated(this.name)}-`];
    return this.#texts;
  }

  get parts(): IdParts {
    this.#parts ??= parseId(this.id);
    return this.#parts;
  }

  /** Service and id, without numbers and dates. */
  get family(): string {
    return `${this.model.provider}/${this.parts.words}`;
  }
}

interface IdParts {
  /** Without numbers and dates. */
  words: string;
  version: readonly number[];
  dated: boolean;
}

/** Days and months as ids have them: 20250929, 2025-09-29, 02-23, 0905, 10-2025, 2512. */
const DATE =
  /-(?:20\d\d-?(?:0[1-9]|1[0-2])-?[0-3]\d|0[1-9]-[0-3]\d|(?:0[1-9]|1[0-2])[0-3]\d|(?:0[1-9]|1[0-2])-20\d\d|2[3-9](?:0[1-9]|1[0-2]))(?=-|$)/g;
/** How many parameters a model has makes it another one, not a newer one. */
const SIZE = /^[a-z]?\d+(?:\.\d+)?[bm]$/;
/** What is called so is always the newest. */
const LATEST = "latest";

function parseId(id: string): IdParts {
  const plain = id.replace(/[\s_:/@]+/g, "-");
  const undated = plain.replace(DATE, "");
  const words: string[] = [];
  const version: number[] = [];
  for (const word of undated.split("-")) {
    if (word === LATEST) {
      version.unshift(Number.POSITIVE_INFINITY);
    } else if (SIZE.test(word)) {
      words.push(word);
    } else {
      const letters = word.replace(/[\d.]+/g, "");
      if (letters !== "" && letters !== "v") words.push(letters);
      for (const number of word.match(/\d+/g) ?? []) version.push(Number(number));
    }
  }
  return { words: words.join("-"), version, dated: undated !== plain };
}

/** The maker of a model first, then the user's own and local services, then resellers. */
function computeRank(provider: string): number {
  if (MAKERS.has(provider)) return 0;
  return RESELLERS.has(provider) ? 2 : 1;
}

function fullId({ provider, id }: Model): string {
  return `${provider}/${id}`;
}

/** "Sonnet 5.5" and "sonnet-5-5" are one. */
function separated(text: string): string {
  return text
    .toLowerCase()
    .replace(/[\s_.:/@()-]+/g, "-")
    .replace(/^-|-$/g, "");
}

function find(query: string, entries: readonly Entry[]): Model {
  const wanted = query.trim().toLowerCase();
  if (exactly(wanted, entries).length === 0) checkColon(query, wanted, entries);
  const { here, rest } = behindProvider(wanted, entries);
  const attempts =
    here.length > 0
      ? [
          () => here.filter(({ model }) => fullId(model).toLowerCase() === wanted),
          () => (rest === "" ? here : exactly(rest, here)),
          () => (FAMILY.test(rest) ? partly(rest, here) : []),
        ]
      : [() => exactly(wanted, entries), () => partly(wanted, entries)];
  for (const attempt of attempts) {
    const fits = attempt();
    if (fits.length > 0) return choose(query, fits);
  }
  const suggestions =
    here.length > 0
      ? [...suggest(rest, here), ...exactly(wanted, entries).map(({ model }) => fullId(model))]
      : [...suggestAtNear(wanted, entries), ...suggest(wanted, entries)];
  if (suggestions.length === 0)
    suggestions.push(...suggestNewer(rest, here.length > 0 ? here : entries));
  throw new ModelNotFoundError(query, [...new Set(suggestions)].slice(0, MAX_SUGGESTIONS));
}

/** Throws on "openai:gpt-5", as other libraries write it, with the name that is meant. */
function checkColon(query: string, wanted: string, entries: readonly Entry[]): void {
  const [, service = "", id = ""] = /^([\w-]+):(.+)$/.exec(wanted) ?? [];
  const here = entries.filter(isAt(service));
  if (here.length === 0 || id === "") return;
  const fits = exactly(id, here).map(({ model }) => fullId(model));
  const near = fits.length > 0 ? fits : [...suggest(id, here), ...suggestNewer(id, here)];
  if (near.length > 0) throw new ModelNotFoundError(query, near.slice(0, MAX_SUGGESTIONS));
}

/**
 * The newest of the family of a model that is not offered any more. Where others of its number
 * are, it may be a dated one that the catalog does not have: then nothing is better.
 */
function suggestNewer(wanted: string, entries: readonly Entry[]): string[] {
  const { words, version } = parseId(wanted.toLowerCase());
  const fits = words === "" ? [] : entries.filter(({ family }) => family.endsWith(`/${words}`));
  const [number] = version.filter(Number.isFinite);
  const isOffered = fits.some((entry) => entry.parts.version.find(Number.isFinite) === number);
  return fits.length === 0 || isOffered
    ? []
    : newestOfFamilies(fits).map(({ model }) => fullId(model));
}

/** A part of a name that means no model of a certain number. */
const FAMILY = /^[a-z]+$/;

/** `openrouter/sonnet` asks for a part of a name at one service: what is there, and the part. */
function behindProvider(
  wanted: string,
  entries: readonly Entry[],
): { here: Entry[]; rest: string } {
  const slash = wanted.indexOf("/");
  const here = slash < 0 ? [] : entries.filter(isAt(wanted.slice(0, slash)));
  return { here, rest: wanted.slice(slash + 1) };
}

function isAt(provider: string): (entry: Entry) => boolean {
  return ({ model }) => model.provider.toLowerCase() === provider;
}

function exactly(wanted: string, entries: readonly Entry[]): Entry[] {
  const byId = entries.filter(({ id }) => id === wanted);
  return byId.length > 0 ? byId : entries.filter(({ name }) => name === wanted);
}

function partly(wanted: string, entries: readonly Entry[]): Entry[] {
  const part = separated(wanted);
  if (part === "") return [];
  const together = entries.filter(({ texts }) => texts.some((text) => text.includes(part)));
  return together.length > 0 ? withWholeWords(part, together) : withAllWords(part, entries);
}

function withWholeWords(part: string, entries: readonly Entry[]): Entry[] {
  const direct = mostDirect(entries);
  const whole = direct.filter(({ texts }) => texts.some((text) => text.includes(`-${part}-`)));
  return whole.length > 0 ? whole : direct;
}

/** "gemini flash" fits gemini-2.5-flash: the words need not stand together. */
function withAllWords(part: string, entries: readonly Entry[]): Entry[] {
  const words = part.split("-");
  return entries.filter(({ texts }) =>
    texts.some((text) => words.every((word) => text.includes(`-${word}-`))),
  );
}

function mostDirect(entries: readonly Entry[]): Entry[] {
  const rank = Math.min(...entries.map((entry) => entry.rank));
  return entries.filter((entry) => entry.rank === rank);
}

function choose(query: string, fits: readonly Entry[]): Model {
  const newest = newestOfFamilies(fits);
  const [first, ...others] = newest;
  if (first && others.length === 0) return first.model;
  throw new AmbiguousModelError(
    query,
    newest.map(({ model }) => fullId(model)),
  );
}

/** Of the most direct ones, the newest of each family. */
function newestOfFamilies(fits: readonly Entry[]): Entry[] {
  const newest = new Map<string, Entry>();
  for (const entry of mostDirect(fits)) {
    const other = newest.get(entry.family);
    if (!other || isBetter(entry, other)) newest.set(entry.family, entry);
  }
  return [...newest.values()];
}

/** The newer one; if both have the same numbers, the one without a date; else the later date. */
function isBetter(one: Entry, other: Entry): boolean {
  const [first, second] = [one.parts, other.parts];
  const length = Math.max(first.version.length, second.version.length);
  for (let index = 0; index < length; index++) {
    const a = first.version[index] ?? 0;
    const b = second.version[index] ?? 0;
    if (a !== b) return a > b;
  }
  if (first.dated !== second.dated) return second.dated;
  return one.id > other.id;
}

/** Names that are near as a whole, or that would fit if each word were the nearest known one. */
function suggest(wanted: string, entries: readonly Entry[]): string[] {
  const byRank = [...entries].sort((a, b) => a.rank - b.rank);
  const names = new Map<string, string>();
  for (const { id, model } of byRank) if (!names.has(id)) names.set(id, fullId(model));
  const near = nearNames(wanted, names.keys())
    .filter((id) => !isWithinWords(wanted, id))
    .flatMap((id) => names.get(id) ?? []);
  const fits = corrected(wanted, entries);
  // Several that a corrected word fits are no better than those that are near as they are.
  const suggestions = fits.length === 1 ? [...fits, ...near] : [...near, ...fits];
  return [...new Set(suggestions)].slice(0, MAX_SUGGESTIONS);
}

/** Models of the service whose name is misspelled: "anthropc/sonnet". */
function suggestAtNear(wanted: string, entries: readonly Entry[]): string[] {
  const [, service = "", id = ""] = /^([\w-]+)\/(.+)$/.exec(wanted) ?? [];
  const [near] = nearNames(
    service,
    entries.map(({ model }) => model.provider),
  );
  if (near === undefined || id === "") return [];
  const here = entries.filter(({ model }) => model.provider === near);
  const fits = exactly(id, here).map(({ model }) => fullId(model));
  return fits.length > 0 ? fits : suggest(id, here);
}

/** "nope" is in "in.openai", but at the beginning of no word: that is chance. */
function isWithinWords(wanted: string, id: string): boolean {
  const part = separated(wanted).replaceAll("-", "");
  const words = separated(id).split("-");
  const isIn = words.join("").includes(part);
  return isIn && !words.some((_, index) => words.slice(index).join("").startsWith(part));
}

function corrected(wanted: string, entries: readonly Entry[]): string[] {
  const vocabulary = new Map<string, number>();
  for (const { texts } of entries) {
    for (const word of new Set(texts.join("").split("-"))) {
      if (word !== "") vocabulary.set(word, (vocabulary.get(word) ?? 0) + 1);
    }
  }
  const common = [...vocabulary.keys()].filter(
    (word) => (vocabulary.get(word) ?? 0) >= COMMON_WORD_MODELS,
  );
  const words = separated(wanted)
    .split("-")
    .map((word) => {
      if (vocabulary.has(word)) return word;
      return nearNames(word, word.length > SHORT_WORD_CHARS ? vocabulary.keys() : common)[0];
    });
  if (words.includes(undefined)) return [];
  const fits = withAllWords(words.join("-"), entries);
  return fits.length === 0 ? [] : newestOfFamilies(fits).map(({ model }) => fullId(model));
}
