import { toRecord, toUrl } from "@gyre/ai";
import { httpFetch } from "@gyre/ai/node";
import { type Fetch, findService } from "@gyre/ai/providers";
import { shownText } from "@gyre/coding/internal/text/shown-text";
import type { Environment } from "../../../core/io.ts";

/** A server on this machine answers within this time. */
const LOCAL_LIMIT_MS = 300;
/** Longer answers are ignored. */
export const MAX_ANSWER_BYTES = 1_048_576;
const MAX_MODELS = 100;
const MAX_NAME_CHARS = 200;

/** A model server that answers on this machine. */
export interface LocalServer {
  /** The id of its service: `ollama`. */
  service: string;
  /** For people: `Ollama`. */
  name: string;
  /** For people: `127.0.0.1:11434`. */
  place: string;
  /** Its models, as `--model` takes them: `ollama/llama3.1`. At least one. */
  models: readonly string[];
  /** Variables with its address; empty where it is the default address. */
  variables: Readonly<Record<string, string>>;
}

/** A server to look for. */
export interface LocalService {
  /** The id of a service that needs no key. */
  id: string;
  port: number;
  /** The path of the list of models below the address. */
  path: string;
  /** The end of the address. */
  base: string;
  /** The names of the models in an answer; empty for another kind of server. */
  readModels: (answer: unknown) => readonly unknown[];
}

export const LOCAL_SERVICES: readonly LocalService[] = [
  { id: "ollama", port: 11_434, base: "", path: "/api/tags", readModels: readOllamaModels },
  { id: "lmstudio", port: 1234, base: "/v1", path: "/models", readModels: readOpenAiModels },
  { id: "llamacpp", port: 8080, base: "/v1", path: "/models", readModels: readOpenAiModels },
  { id: "vllm", port: 8000, base: "/v1", path: "/models", readModels: readOpenAiModels },
];

export interface LocalSearch {
  env: Environment;
  signal?: AbortSignal;
  timeoutMs?: number;
  /** The rest is for tests. */
  services?: readonly LocalService[];
  fetch?: Fetch;
  /** Aborts when the time is over. */
  timeLimit?: () => AbortSignal;
}

/**
 * The model servers that answer on this machine, in the order of `LOCAL_SERVICES`. Asks loopback addresses only, all
 * at once, and sends no key, because any program may listen there. An address in the environment counts if it is a
 * loopback address. A server that does not answer in time, or not with a list of models, is left out. Rejects only
 * with the reason of `signal`.
 */
export async function findLocalServers(search: LocalSearch): Promise<LocalServer[]> {
  const { services = LOCAL_SERVICES, timeoutMs = LOCAL_LIMIT_MS } = search;
  const { fetch = httpFetch, timeLimit = () => AbortSignal.timeout(timeoutMs) } = search;
  const limit = timeLimit();
  const signal = search.signal ? AbortSignal.any([search.signal, limit]) : limit;
  const found = await Promise.all(
    services.map(async (service) => {
      const answers = await Promise.all(
        listAddresses(service, search.env).map((address) =>
          queryServer(service, address, fetch, signal),
        ),
      );
      const first = answers.find((answer) => answer !== undefined);
      return first ? [describeServer(service, first, search.env)] : [];
    }),
  );
  search.signal?.throwIfAborted();
  return found.flat();
}

interface Answer {
  address: string;
  names: readonly string[];
}

async function queryServer(
  { readModels: modelsIn, path }: LocalService,
  address: string,
  get: Fetch,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  try {
    const response = await get(address + path, {
      method: "GET",
      headers: { accept: "application/json" },
      body: "",
      signal,
      redirect: "manual",
    });
    if (!response.ok) {
      await response.body?.cancel();
      return undefined;
    }
    const text = await readBody(response.body);
    const names = text === undefined ? [] : filterNames(modelsIn(JSON.parse(text)));
    return names.length > 0 ? { address, names } : undefined;
  } catch {
    // A server that fails cannot be offered.
    return undefined;
  }
}

/** The body as text; undefined if it is too long. */
async function readBody(body: ReadableStream<Uint8Array> | null): Promise<string | undefined> {
  if (!body) return undefined;
  const reader = body.getReader();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(pieces).toString("utf8");
    bytes += value.byteLength;
    if (bytes > MAX_ANSWER_BYTES) {
      await reader.cancel();
      return undefined;
    }
    pieces.push(value);
  }
}

/** Keeps names that can be shown unchanged: the user must see what is used. */
function filterNames(names: readonly unknown[]): string[] {
  const fit = names.filter(
    (name): name is string =>
      typeof name === "string" &&
      name !== "" &&
      name.length <= MAX_NAME_CHARS &&
      name.trim() === name &&
      !name.includes("\n") &&
      shownText(name) === name,
  );
  return [...new Set(fit)].slice(0, MAX_MODELS);
}

function readOllamaModels(answer: unknown): readonly unknown[] {
  return readList(answer, "models")
    .filter((entry) => {
      const can = readField(entry, "capabilities");
      return !Array.isArray(can) || can.includes("completion");
    })
    .map((entry) => readField(entry, "model") ?? readField(entry, "name"));
}

/** Other programs use these ports too: only an answer that is a list of models counts. */
function readOpenAiModels(answer: unknown): readonly unknown[] {
  if (readField(answer, "object") !== "list") return [];
  return readList(answer, "data")
    .filter((entry) => readField(entry, "object") === "model")
    .map((entry) => readField(entry, "id"))
    .filter((id) => typeof id === "string" && !/embed/i.test(id));
}

function readList(value: unknown, name: string): readonly unknown[] {
  const list = readField(value, name);
  return Array.isArray(list) ? list : [];
}

function readField(value: unknown, name: string): unknown {
  return toRecord(value)[name];
}

/** The address of the environment if it is on this machine, else the default ones. */
function listAddresses({ base, id, port }: LocalService, env: Environment): readonly string[] {
  const variable = findService(id)?.urlEnv.find((name) => env[name]);
  const configured = variable === undefined ? undefined : env[variable];
  const set = configured === undefined ? [] : parseLoopbackAddresses(configured, port);
  return set.length > 0 ? set : [`http://127.0.0.1:${port}${base}`, `http://[::1]:${port}${base}`];
}

/** Reads an address that, as in OLLAMA_HOST, may lack a scheme or a port; empty outside of loopback. */
function parseLoopbackAddresses(configured: string, port: number): string[] {
  const isWhole = configured.includes("://");
  const text = isWhole
    ? configured
    : `http://${configured.startsWith(":") ? "127.0.0.1" : ""}${configured}`;
  const url = toUrl(text);
  if (!url) return [];
  if (url.protocol !== "http:" || url.username !== "" || url.password !== "") return [];
  // An address to listen on is replaced by one to connect to; names are not resolved.
  const hosts = /^127(?:\.\d{1,3}){3}$/.test(url.hostname)
    ? [url.hostname]
    : HOSTS.get(url.hostname);
  const ending = url.pathname.replace(/\/+$/, "");
  const at = url.port !== "" ? `:${url.port}` : isWhole ? "" : `:${port}`;
  return (hosts ?? []).map((host) => `http://${host}${at}${ending}`);
}

const HOSTS: ReadonlyMap<string, readonly string[]> = new Map([
  ["localhost", ["127.0.0.1", "[::1]"]],
  ["0.0.0.0", ["127.0.0.1"]],
  ["[::]", ["[::1]"]],
  ["[::1]", ["[::1]"]],
]);

function describeServer(
  { id }: LocalService,
  { address, names }: Answer,
  env: Environment,
): LocalServer {
  const service = findService(id);
  const variable = service?.urlEnv[0];
  const isUsual = !service?.urlEnv.some((name) => env[name]) && service?.baseUrl === address;
  return {
    service: id,
    name: service?.name ?? id,
    place: new URL(address).host,
    models: names.map((name) => `${id}/${name}`),
    variables: isUsual || variable === undefined ? {} : { [variable]: address },
  };
}
