import { createHash } from "node:crypto";
import { errorMessage, toUrl } from "@gyre/ai";
import { type CatalogFacts, CatalogFactsError, parseCatalogFacts } from "@gyre/ai/models";
import { EXIT, ExitError } from "../core/exit-codes.ts";
import type { Environment } from "@gyre/coding/internal/core/environment";
import { oneLine } from "@gyre/coding/internal/settings/problem";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import {
  knownModels,
  MAX_FACTS_BYTES,
  storeFacts,
} from "@gyre/coding/internal/models/stored-facts";

/** For the whole answer. */
const TIME_LIMIT_MS = 30_000;
const DAY_MS = 86_400_000;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export interface RefreshIo {
  env: Environment;
  signal: AbortSignal;
}

export interface RefreshParts {
  settings: Pick<Settings, "catalogUrl" | "catalogHash">;
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Fires when the answer has had its time. */
  timeLimit?: () => AbortSignal;
  now?: () => number;
}

/**
 * Fetches facts of models from the address of the settings, and keeps them if they are what was
 * expected: in their hash, their form and their date. Throws `ExitError` otherwise; what was there
 * before stays then. Nothing but the address is sent.
 */
export async function refreshFacts(io: RefreshIo, parts: RefreshParts): Promise<CatalogFacts> {
  const { href, hash } = findPlace(parts.settings);
  const now = (parts.now ?? Date.now)();
  const bytes = await download(href, io, parts);
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== hash) {
    throw failed(
      href,
      `what came has the SHA-256 ${found}, not ${hash}. If it is what you expect, change catalogHash`,
    );
  }
  const facts = parseFacts(href, bytes);
  if (facts.date > formatDay(now + DAY_MS)) throw failed(href, `${facts.date} is in the future`);
  const { date } = knownModels(io.env);
  if (facts.date < date) {
    throw failed(href, `they are of ${facts.date}, older than those in use, of ${date}`);
  }
  try {
    await storeFacts(io.env, bytes);
  } catch (error) {
    throw failed(href, `they cannot be stored: ${errorMessage(error)}`, error);
  }
  return facts;
}

const HOW =
  'Set "catalogUrl" to the address of a file with facts of models, and "catalogHash" to its SHA-256 (or write #sha256=... behind the address).';

/** The address without what is behind `#`, and the hash that is expected there. */
function findPlace({ catalogUrl, catalogHash }: RefreshParts["settings"]): {
  href: string;
  hash: string;
} {
  if (catalogUrl === undefined) {
    throw new ExitError(EXIT.usage, `There is nothing to fetch facts of models from. ${HOW}`);
  }
  const url = toUrl(catalogUrl);
  if (!url) throw new ExitError(EXIT.usage, `catalogUrl is no address: ${oneLine(catalogUrl)}`);
  const isSafe =
    url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (!isSafe || url.username !== "" || url.password !== "") {
    throw new ExitError(
      EXIT.usage,
      "catalogUrl must be an https address without a name and a password; http only for this machine.",
    );
  }
  const behind = url.hash.slice(1);
  url.hash = "";
  const hashes = [catalogHash, behind || undefined].flatMap((text) =>
    text === undefined ? [] : [readHash(text)],
  );
  const [hash, other = hash] = hashes;
  if (hash === undefined) {
    throw new ExitError(EXIT.usage, `There is no hash that facts of models must have. ${HOW}`);
  }
  if (hash !== other) {
    throw new ExitError(EXIT.usage, "catalogHash and the hash behind # in catalogUrl differ.");
  }
  return { href: url.href, hash };
}

function readHash(text: string): string {
  const [, hex] = /^(?:sha256[-:=])?([0-9a-f]{64})$/i.exec(text.trim()) ?? [];
  if (hex === undefined) {
    throw new ExitError(EXIT.usage, "catalogHash must be a SHA-256: 64 digits in hex.");
  }
  return hex.toLowerCase();
}

async function download(href: string, io: RefreshIo, parts: RefreshParts): Promise<Uint8Array> {
  const limit = (parts.timeLimit ?? (() => AbortSignal.timeout(TIME_LIMIT_MS)))();
  const signal = AbortSignal.any([io.signal, limit]);
  const send = parts.fetch ?? (await findFetch(io.env));
  try {
    const response = await send(href, {
      redirect: "manual",
      headers: { accept: "application/json" },
      signal,
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const to = response.headers.get("location");
      throw failed(
        href,
        to === null
          ? `the answer is ${response.status}`
          : `it redirects to ${oneLine(to)}; if that is right, write it into catalogUrl`,
      );
    }
    return await readBody(href, response);
  } catch (error) {
    if (io.signal.aborted) throw new ExitError(EXIT.interrupted, "Interrupted.", { cause: error });
    if (error instanceof ExitError) throw error;
    throw failed(href, limit.aborted ? "it took too long" : describeCause(error), error);
  }
}

async function readBody(href: string, response: Response): Promise<Uint8Array> {
  const tooMuch = failed(href, `it has more than ${MAX_FACTS_BYTES} bytes`);
  const reader = response.body?.getReader();
  if (!reader) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(pieces);
    size += value.length;
    if (size > MAX_FACTS_BYTES) {
      await reader.cancel();
      throw tooMuch;
    }
    pieces.push(value);
  }
}

function parseFacts(href: string, bytes: Uint8Array): CatalogFacts {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw failed(href, "what came is no JSON", error);
  }
  try {
    return parseCatalogFacts(json, "what came");
  } catch (error) {
    if (!(error instanceof CatalogFactsError)) throw error;
    throw failed(href, oneLine(error.message), error);
  }
}

/** A proxy of the environment counts here, too. */
async function findFetch(env: Environment): Promise<NonNullable<RefreshParts["fetch"]>> {
  if (!Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name) && env[name]))
    return fetch;
  const { proxiedWebFetch } = await import("@gyre/coding/internal/core/proxied-web-fetch");
  return proxiedWebFetch(env);
}

function describeCause(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return oneLine(cause instanceof Error ? errorMessage(cause) : errorMessage(error));
}

function failed(href: string, why: string, cause?: unknown): ExitError {
  return new ExitError(
    EXIT.failed,
    `Facts of models from ${href} are not used: ${why}. Those of before stay.`,
    { cause },
  );
}

function formatDay(time: number): string {
  return new Date(time).toISOString().slice(0, "2000-01-01".length);
}
