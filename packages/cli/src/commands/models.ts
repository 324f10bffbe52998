import { errorMessage, type Model, toUrl } from "@gyre/ai";
import {
  listServiceModels,
  mergeModels,
  parseUserModels,
  type UserModels,
  UserModelsError,
  userServices,
} from "@gyre/ai/models";
import { createKeyStore, type KeyStore } from "@gyre/ai/node";
import { findService, resolveService, type ServicePreset, SERVICES } from "@gyre/ai/providers";
import { EXIT, ExitError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import { refreshFacts } from "./refresh-facts.ts";
import { knownModels } from "@gyre/coding/internal/models/stored-facts";
import { findKeyPlaces, type KeyPlace } from "@gyre/coding/internal/models/service-places";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { oneLine } from "@gyre/coding/internal/settings/problem";
import { modelValue } from "@gyre/coding/internal/text/choices";
import { alignColumns } from "../text/columns.ts";
import { openTerminal } from "../core/terminal.ts";

/** A server on this machine answers at once, or is not there. */
const LOCAL_LIMIT_MS = 500;
const OLLAMA_PORT = "11434";
const THOUSAND = 1_000;
const MILLION = 1_000_000;
const GAP = "  ";
const UNKNOWN = "-";

/** What `runModels` takes from elsewhere; all of it for tests. */
export interface ModelsParts {
  settings?: Pick<Settings, "models" | "catalogUrl" | "catalogHash">;
  keys?: Pick<KeyStore, "list" | "get">;
  fetch?: typeof fetch;
  /** Fires when a local server has had its time. */
  timeLimit?: () => AbortSignal;
}

/** A model as `--json` shows it. What is not known of it is absent. */
export interface ListedModel {
  /** What `--model` takes. */
  model: string;
  service: string;
  id: string;
  name: string;
  /** Its service has a key, or needs none. */
  usable: boolean;
  contextWindow?: number;
  maxTokens?: number;
  images?: boolean;
  thinking?: boolean;
  /** US dollars for a million tokens. */
  price?: Model["price"];
}

interface Group {
  service: ServicePreset;
  usable: boolean;
  /** Where the key is, for people. */
  key: string;
  models: Model[];
}

/**
 * `gyre models [PART OF A NAME]`: those of the services that have a key, and of local
 * servers that answer; with `--all` the others as well. With `--refresh` it first fetches newer facts,
 * and ends where that fails. Ends with 1 if there are none.
 */
export async function runModels(
  args: readonly string[],
  values: Values,
  io: Io,
  parts: ModelsParts = {},
): Promise<number> {
  const settings = parts.settings ?? (await readSettings(values, io));
  if (values.refresh) {
    const { date, models } = await refreshFacts(io, { settings });
    io.stderr.write(`Facts of ${models.length} models, of ${date}, are stored.\n`);
  }
  const user = readUserModels(settings.models);
  const own = user ? userServices(user) : [];
  const keys = parts.keys ?? createKeyStore({ env: io.env });
  const { places, error } = await findKeyPlaces(io.env, keys, [...SERVICES, ...own]);
  if (error) io.stderr.write(`gyre: ${error.message}\n`);
  const local = await localModels(io, keys, own, parts);
  const facts = knownModels(io.env);
  if (facts.problem !== undefined) io.stderr.write(`gyre: ${facts.problem}\n`);
  const known = user ? mergeModels(facts.models, user) : facts.models;
  // Of the same model, what is said last counts.
  const models = [
    ...new Map([...local, ...known].map((model) => [modelValue(model), model])).values(),
  ];
  const part = args.join(" ").trim();
  const groups = groupModels(models.filter(fits(part)), own, places);
  const shown = groups.filter(({ usable }) => usable || values.all);
  if (values.json) io.stdout.write(formatJson(shown));
  else writeGroups(shown, io);
  const hidden = groups
    .filter(({ usable }) => !usable && !values.all)
    .reduce((sum, group) => sum + group.models.length, 0);
  if (shown.length === 0) {
    const isAny = groupModels(models, own, places).some(({ usable }) => usable);
    io.stderr.write(`${nothingShown(part, hidden, isAny)}\n`);
    return EXIT.failed;
  }
  if (!values.json) {
    const more =
      hidden > 0 ? ` ${hidden} more, of services without a key, with: gyre models --all.` : "";
    io.stderr.write(
      `\nWindow in tokens; US dollars for a million tokens, in / out, as known on ${facts.date}.${more}\n`,
    );
  }
  return EXIT.done;
}

async function readSettings(values: Values, io: Io): Promise<Settings> {
  const { readSetup } = await import("../core/setup.ts");
  return (await readSetup(values, io)).settings;
}

function readUserModels(models: Settings["models"]): UserModels | undefined {
  if (models === undefined) return undefined;
  try {
    return parseUserModels(models, 'the settings, under "models"');
  } catch (error) {
    if (!(error instanceof UserModelsError)) throw error;
    throw new ExitError(EXIT.failed, error.message, { cause: error });
  }
}

/** What the servers on this machine have; those that do not answer in time have nothing. */
async function localModels(
  io: Io,
  keys: Pick<KeyStore, "get">,
  own: readonly ServicePreset[],
  parts: ModelsParts,
): Promise<Model[]> {
  const local = SERVICES.filter(({ keyless }) => keyless).map(
    (service) => findService(service.id, own) ?? service,
  );
  const limit = (parts.timeLimit ?? (() => AbortSignal.timeout(LOCAL_LIMIT_MS)))();
  const signal = AbortSignal.any([io.signal, limit]);
  const lists = await Promise.all(
    local.map(async (service) => {
      const baseUrl = localAddress(service, io);
      if (baseUrl === undefined) return [];
      try {
        const apiKey = await keys.get(service, signal);
        return await listServiceModels(
          { ...service, baseUrl, ...(apiKey !== undefined && { apiKey }) },
          { signal, ...(parts.fetch && { fetch: parts.fetch }) },
        );
      } catch (error) {
        if (io.signal.aborted) throw new ExitError(EXIT.interrupted, "Interrupted.");
        // A user who named an address needs the reason why nothing comes from there.
        if (own.includes(service) || service.urlEnv.some((name) => io.env[name])) {
          const why = limit.aborted
            ? `${service.name} did not answer at ${baseUrl}.`
            : errorMessage(error);
          io.stderr.write(`gyre: ${oneLine(why)}\n`);
        }
        return [];
      }
    }),
  );
  return lists.flat();
}

/** OLLAMA_HOST may lack scheme and port, or name what the server listens on. */
function localAddress({ baseUrl, id, urlEnv }: ServicePreset, { env }: Io): string | undefined {
  const variable = urlEnv.find((name) => env[name]);
  const address = variable === undefined ? baseUrl : env[variable];
  if (id !== "ollama" || address === undefined) return address;
  const url = /^\w+:\/\//.test(address) ? address : `http://${address}`;
  const parsed = toUrl(url);
  if (!parsed) return address;
  if (parsed.hostname === "0.0.0.0") parsed.hostname = "127.0.0.1";
  if (parsed.hostname === "[::]") parsed.hostname = "[::1]";
  if (url !== address && parsed.port === "") parsed.port = OLLAMA_PORT;
  return parsed.href;
}

function fits(part: string): (model: Model) => boolean {
  const words = part.toLowerCase().split(/\s+/);
  return (model) => {
    const text = `${modelValue(model)} ${model.name}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

/** By service: those that are usable first, then in the order of the presets. */
function groupModels(
  models: readonly Model[],
  own: readonly ServicePreset[],
  places: ReadonlyMap<string, KeyPlace>,
): Group[] {
  const groups = new Map<string, Group>();
  for (const model of models) {
    let group = groups.get(model.provider);
    if (!group) {
      const service = resolveService(model, own);
      const place = places.get(service.id) ?? (service.keyless ? { place: "" } : undefined);
      const key = place === undefined ? "no key" : place.place && `key: ${place.place}`;
      group = { service, usable: place !== undefined, key: key || "needs no key", models: [] };
      groups.set(model.provider, group);
    }
    group.models.push(model);
  }
  const order = [...own.map(({ id }) => id), ...SERVICES.map(({ id }) => id)];
  const rank = ({ service, usable }: Group): number =>
    (usable ? 0 : order.length + 1) + (order.indexOf(service.id) + 1 || order.length);
  return [...groups.values()].sort((a, b) => rank(a) - rank(b));
}

function formatJson(groups: readonly Group[]): string {
  const lines = groups.flatMap(({ models, usable }) =>
    models.map((model) => `  ${JSON.stringify(listed(model, usable))}`),
  );
  // A line each: `grep` and shells read it, too.
  return lines.length === 0 ? "[]\n" : `[\n${lines.join(",\n")}\n]\n`;
}

function listed(model: Model, usable: boolean): ListedModel {
  const { contextWindow, id, input, maxTokens, name, price, provider, reasoning } = model;
  return {
    model: modelValue(model),
    service: provider,
    id,
    name,
    usable,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(input && { images: input.includes("image") }),
    ...(reasoning !== undefined && { thinking: reasoning }),
    ...(price && { price }),
  };
}

function writeGroups(groups: readonly Group[], io: Io): void {
  const { style } = openTerminal(io.stdout, io.env);
  const texts = groups.map(({ key, models, service }) => {
    const title = `${style.bold(oneLine(service.name))} ${style.dim(`(${key})`)}`;
    return `${[title, ...alignColumns(models.map(cells), 1).map((row) => GAP + row)].join("\n")}\n`;
  });
  if (texts.length > 0) io.stdout.write(texts.join("\n"));
}

function cells(model: Model): string[] {
  const { contextWindow, input, price, reasoning } = model;
  const can = [input?.includes("image") && "images", reasoning && "thinking"].filter(Boolean);
  return [
    oneLine(modelValue(model)),
    contextWindow === undefined ? UNKNOWN : tokens(contextWindow),
    price ? `${dollars(price.input)} / ${dollars(price.output)}` : UNKNOWN,
    can.join(", "),
  ];
}

function tokens(count: number): string {
  return count >= MILLION
    ? `${Number((count / MILLION).toFixed(2))}M`
    : `${Math.round(count / THOUSAND)}k`;
}

function dollars(price: number | undefined): string {
  return price === undefined ? "?" : `$${price}`;
}

function nothingShown(part: string, hidden: number, isAny: boolean): string {
  if (hidden > 0 && part !== "") {
    return `Only models of services without a key fit "${part}". See them with: gyre models --all ${part}`;
  }
  if (isAny) return `No model fits "${part}". See all that are known with: gyre models --all`;
  return `No model is usable yet: no service has a key, and no local server answers.
  Store a key:         gyre login anthropic
  Or set a variable:   ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, ...
  Or start a server:   ollama serve
See all models with:   gyre models --all`;
}
