import { setTimeout as later } from "node:timers/promises";
import { errorMessage } from "@gyre/ai";
import type {
  Activate,
  Engine,
  EngineWork,
  EngineWorkOptions,
  WakeOptions,
} from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";
import { nameQueue } from "../engines/members.ts";
import { ACTIVATE, RestateEndpoint } from "./endpoint.ts";

export interface RestateEngineOptions {
  /** Where Restate takes requests. Default "http://localhost:8080". */
  ingress?: string;
  /**
   * Where workers register themselves. Default "http://localhost:9070". `false`: they do not; register
   * `address` yourself, with HTTP/1.1.
   */
  admin?: string | false;
  /** Where Restate reaches the workers: of several, their balancer. Default: this one, on localhost. */
  address?: string;
  /** The port that this worker listens on. Default 9080; 0: any. */
  port?: number;
  /** The interface that this worker listens on. Default: all of them. */
  host?: string;
  /** The name of the service. Runs of a pool have one beside it, "service-pool". Default "gyre". */
  service?: string;
}

const DEFAULT_PORT = 9_080;
const TIMEOUT_MS = 10_000;
const REGISTER_TRIES = 25;
const REGISTER_PAUSE_MS = 200;
const NAME = /^[A-Za-z][\w.-]*$/;

/**
 * Restate decides which worker runs a session next: each activation is an invocation of its
 * service. The worker that has one may die: Restate calls another one, which goes on at once.
 */
export function restateEngine(options: RestateEngineOptions = {}): Engine {
  const { service = "gyre" } = options;
  if (!NAME.test(service)) {
    throw new DurableError(
      "invalid",
      `The service "${service}" has other characters than letters, digits, ".", "_" and "-", or begins with one of these.`,
    );
  }
  for (const name of ["ingress", "admin", "address"] as const) {
    const value = options[name];
    if (typeof value !== "string" || (URL.canParse(value) && value.startsWith("http"))) continue;
    throw new DurableError(
      "bad_url",
      `\`${name}\` of restateEngine() is not the address of a server: give one such as "http://localhost:8080".`,
    );
  }
  return new RestateEngine({ ...options, service });
}

class RestateEngine implements Engine {
  readonly name = "restate";
  readonly #options: RestateEngineOptions & { service: string };
  readonly #ingress: string;
  readonly #admin: string | false;
  #endpoint: RestateEndpoint | undefined;

  constructor(options: RestateEngineOptions & { service: string }) {
    this.#options = options;
    this.#ingress = options.ingress ?? "http://localhost:8080";
    this.#admin = options.admin ?? "http://localhost:9070";
  }

  async wake(session: string, { inMs, pool, key }: WakeOptions): Promise<void> {
    const path = `${nameQueue(this.#options.service, pool)}/${ACTIVATE}/send`;
    const url = new URL(path, withSlash(this.#ingress));
    if (inMs !== undefined) url.searchParams.set("delay", `${Math.ceil(inMs)}ms`);
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (key !== undefined) headers["idempotency-key"] = encodeURIComponent(key);
    const response = await request(url, { headers, body: JSON.stringify(session) }, "ingress");
    // No worker has registered the service yet: the first one finds what is ready.
    if (response.status === 404) return;
    await expectOk(response, url, "ingress");
  }

  async work(activate: Activate, options: EngineWorkOptions): Promise<EngineWork> {
    const { port = DEFAULT_PORT, host, service } = this.#options;
    const endpoint = (this.#endpoint ??= new RestateEndpoint());
    const services = options.pools.map((pool) => nameQueue(service, pool));
    const { concurrency } = options;
    const member = { activate, services, concurrency };
    await endpoint.add(member, { port, ...(host !== undefined && { host }) });
    try {
      await this.#register(endpoint);
    } catch (error) {
      await endpoint.remove(member);
      throw error;
    }
    return { stop: () => endpoint.remove(member) };
  }

  async #register(endpoint: RestateEndpoint): Promise<void> {
    if (this.#admin === false) return;
    const { address: uri = `http://localhost:${endpoint.port}` } = this.#options;
    const url = new URL("deployments", withSlash(this.#admin));
    const body = JSON.stringify({ uri, use_http_11: true, force: true });
    const headers = { "content-type": "application/json" };
    // Restate asks a worker behind the address, which may be another one, and about to stop.
    for (let left = REGISTER_TRIES; ; left--) {
      const response = await request(url, { headers, body }, "admin");
      if (response.status < 500) return expectOk(response, url, "admin");
      if (await this.#isRegistered(this.#admin, uri)) return;
      if (left <= 1) return expectOk(response, url, "admin");
      await response.body?.cancel();
      await later(REGISTER_PAUSE_MS);
    }
  }

  /** Whether Restate knows the address already, of another worker behind it. */
  async #isRegistered(admin: string, uri: string): Promise<boolean> {
    const response = await fetch(new URL("deployments", withSlash(admin)));
    const listed: { deployments?: { uri?: string; services?: { name: string }[] }[] } = response.ok
      ? JSON.parse(await response.text())
      : {};
    const { service } = this.#options;
    return (listed.deployments ?? []).some(
      (one) => one.uri === new URL(uri).href && one.services?.some(({ name }) => name === service),
    );
  }
}

type Place = "ingress" | "admin";

async function request(
  url: URL,
  init: { headers: Record<string, string>; body: string },
  place: Place,
): Promise<Response> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return await fetch(url, { method: "POST", ...init, signal });
  } catch (error) {
    const reason = error instanceof Error && error.cause ? error.cause : error;
    throw new DurableError(
      "unavailable",
      `Restate cannot be reached at ${url.origin} (${errorMessage(reason)}): start its server, or give \`${place}\` to restateEngine().`,
      { cause: error },
    );
  }
}

async function expectOk(response: Response, url: URL, place: Place): Promise<void> {
  const text = await response.text();
  if (response.ok) return;
  throw new DurableError(
    "unavailable",
    `Restate at ${url.origin} answers ${response.status} to ${url.pathname}: ${text.slice(0, 300)}. Look whether \`${place}\` of restateEngine() is the right address.`,
  );
}

function withSlash(url: string): string {
  return url.endsWith("/") ? url : `${url}/`;
}
