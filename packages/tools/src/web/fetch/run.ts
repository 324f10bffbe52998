import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { isIP } from "node:net";
import { type Duplex, pipeline, type Readable } from "node:stream";
import { connect } from "node:tls";
import { createGunzip, createInflate } from "node:zlib";
import type { AgentToolResult } from "@gyre/agent";
import { type TextContent, toUrl } from "@gyre/ai";
import { fromSource, sanitize } from "@gyre/ai/text";
import { counted, textResult, within } from "../../text/text.ts";
import { readHost } from "@gyre/ai/network";
import { parseUrl, refuseAddress } from "./address.ts";
import { fetchEntry } from "./entry.ts";
import { coversRedirect } from "./redirect-rules.ts";
import {
  DEFAULT_FETCH_BYTES,
  type Destination,
  FETCH_TIMEOUT_MS,
  type FetchEnv,
  type FetchOptions,
  MAX_FETCH_BYTES,
  MAX_REDIRECTS,
  MAX_SHOWN_CHARS,
} from "./tool.ts";

/** What an error page is shown of. */
const MAX_ERROR_CHARS = 2_000;
const MS_PER_SECOND = 1_000;
const HTTPS_PORT = 443;
/** Where a page that names its own encoding has to do so. */
const CHARSET_WITHIN_BYTES = 1_024;

/** Characters after it take two units of a string. */
const LAST_OF_ONE_UNIT = 0xffff;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const FIRST_SUCCESS = 200;
const AFTER_SUCCESS = 300;

const TEXT_TYPE =
  /^(?:text\/[\w.+-]+|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|toml|javascript|ecmascript|x-javascript|x-yaml|x-ndjson|ndjson|jsonl|graphql|sql|x-sh|x-httpd-php|typescript|rtf)|image\/svg\+xml)$/;
const HTML_TYPE = /^(?:text\/html|application\/xhtml\+xml)$/;

interface Page {
  url: URL;
  status: number;
  statusText: string;
  /** In lower case, without parameters; "" if not given. */
  type: string;
  charset: string | undefined;
  bytes: Uint8Array;
  /** There was more. */
  cut: boolean;
}

/** Downloads a page and gives its text from `offset` on. */
export async function runFetch(
  { clock, workspace }: FetchEnv,
  { lookup = lookUp, dial = dialServer }: FetchOptions,
  { url, ...args }: FetchArgs,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const offset = within("offset", args.offset ?? 0, { least: 0 });
  const maxBytes = within("maxBytes", args.maxBytes ?? DEFAULT_FETCH_BYTES, {
    least: 1,
    most: MAX_FETCH_BYTES,
  });
  const late = new AbortController();
  const cancel = clock.after(FETCH_TIMEOUT_MS, () => {
    const seconds = FETCH_TIMEOUT_MS / MS_PER_SECOND;
    late.abort(
      new Error(`${url} took longer than ${seconds} s. Try again later, or another address.`),
    );
  });
  const either = AbortSignal.any([signal, late.signal]);
  try {
    const page = await download(parseUrl(url), maxBytes, {
      lookup,
      dial,
      signal: either,
      covers: (from, to) => coversRedirect(workspace, fetchEntry.name, from, to),
    });
    return page instanceof URL ? movedResult(url, page) : await pageResult(page, offset, maxBytes);
  } catch (error) {
    // What breaks because of the abort says less than the abort.
    throw either.aborted ? either.reason : error;
  } finally {
    cancel();
  }
}

interface FetchArgs {
  url: string;
  maxBytes?: number;
  offset?: number;
}

interface Ways extends Required<FetchOptions> {
  signal: AbortSignal;
  /** Whether a redirect within a server may be followed. */
  covers: (from: string, to: string) => boolean;
}

/** The page, or where it is if that is for another call. */
async function download(first: URL, maxBytes: number, ways: Ways): Promise<Page | URL> {
  let url = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await ask(url, ways);
    const location = response.headers.location;
    if (!REDIRECTS.has(response.statusCode ?? 0) || location === undefined) {
      return await readPage(url, response, maxBytes);
    }
    response.destroy();
    const target = toUrl(location, url);
    if (!target) {
      throw new Error(`${url.href} redirects to "${location}", which is not an address.`);
    }
    const next = parseUrl(target.href);
    // An approval of this server does not cover that one: not even looking up its name.
    if (next.origin !== url.origin || !ways.covers(first.href, next.href)) return next;
    url = next;
  }
  throw new Error(`${first.href} redirects more than ${MAX_REDIRECTS} times. Try another address.`);
}

async function ask(url: URL, ways: Ways): Promise<IncomingMessage> {
  const hostname = readHost(url);
  const addresses = isIP(hostname)
    ? [hostname]
    : await unlessAborted(ways.lookup(hostname), ways.signal);
  if (addresses.length === 0) throw new Error(`There is no address for ${hostname}.`);
  // One private address among others is as good as none: it may be tried first.
  for (const address of addresses) refuseAddress(hostname, address);
  ways.signal.throwIfAborted();
  const port = Number(url.port || HTTPS_PORT);
  return await new Promise((resolve, reject) => {
    const asked = request(url, {
      method: "GET",
      headers: {
        accept: "text/html, application/json;q=0.9, text/*;q=0.9, */*;q=0.5",
        "accept-encoding": "gzip",
        "user-agent": "gyre",
      },
      signal: ways.signal,
      defaultPort: HTTPS_PORT,
      createConnection: () => ways.dial({ hostname, port, addresses }),
    });
    asked.once("response", resolve);
    asked.once("error", (cause: NodeJS.ErrnoException) => {
      // Several addresses that all fail make an error with a code alone.
      const why = cause.message || cause.code;
      reject(new Error(`${url.host} cannot be reached: ${why}`, { cause }));
    });
    asked.end();
  });
}

async function readPage(url: URL, response: IncomingMessage, maxBytes: number): Promise<Page> {
  const { statusCode: status = 0, statusMessage: statusText = "", headers } = response;
  const [type = "", ...rest] = (headers["content-type"] ?? "").toLowerCase().split(";");
  if (type.trim() !== "" && !TEXT_TYPE.test(type.trim())) {
    response.destroy();
    const size = headers["content-length"];
    throw new Error(
      `${url.href} is ${type.trim()}${size === undefined ? "" : ` (${size} bytes)`}, and only text can be fetched.`,
    );
  }
  const { bytes, cut } = await readBody(unpacked(response), maxBytes);
  const charset = rest.map((part) => /^\s*charset="?([^"\s]+)/.exec(part)?.[1]).find(Boolean);
  return { url, status, statusText, type: type.trim(), charset, bytes, cut };
}

function unpacked(response: IncomingMessage): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return response;
  if (encoding !== "gzip" && encoding !== "x-gzip" && encoding !== "deflate") {
    response.destroy();
    throw new Error(`The server packs its answer as "${encoding}", which was not asked for.`);
  }
  const unpacker = encoding === "deflate" ? createInflate() : createGunzip();
  // An error reaches the reader of the unpacker: it needs no second report.
  return pipeline(response, unpacker, () => undefined);
}

async function readBody(
  body: Readable,
  maxBytes: number,
): Promise<{ bytes: Uint8Array; cut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) continue;
    chunks.push(chunk);
    size += chunk.length;
    // Leaving the loop closes the connection.
    if (size > maxBytes) break;
  }
  const bytes = Buffer.concat(chunks, Math.min(size, maxBytes));
  return { bytes, cut: size > maxBytes };
}

function movedResult(from: string, to: URL): ReturnType<typeof textResult> {
  const where = new URL(from).origin === to.origin ? "address" : "server";
  const text = `${from} redirects to another ${where}, and nothing was read. Fetch this address if you want it: ${to.href}`;
  return textResult(sanitize(text), { redirect: to.href });
}

async function pageResult(
  page: Page,
  offset: number,
  maxBytes: number,
): Promise<ReturnType<typeof textResult>> {
  const name = page.url.href;
  const text = await decodePage(page);
  const details = {
    url: name,
    status: page.status,
    type: page.type,
    bytes: page.bytes.length,
    cut: page.cut,
  };
  if (page.status < FIRST_SUCCESS || page.status >= AFTER_SUCCESS) {
    const body = fromSource({ kind: "web", name }, text.slice(0, MAX_ERROR_CHARS));
    const first = sanitize(`${name} answered ${page.status} ${page.statusText}.`, {
      keepNewlines: false,
    });
    return { ...textResult(text === "" ? first : [first, body], details), isError: true };
  }
  if (text === "") return textResult(`${name} has no text.`, details);
  if (offset >= text.length) {
    throw new Error(
      `offset ${offset} is past the end: ${name} has ${counted(text.length, "character")}.`,
    );
  }
  const end = wholeEnd(text, offset + MAX_SHOWN_CHARS);
  const notes: (string | TextContent)[] = [
    fromSource({ kind: "web", name }, text.slice(offset, end)),
  ];
  if (offset > 0 || end < text.length) {
    const on = end < text.length ? ` Read on with offset ${end}.` : "";
    notes.push(`Shown: characters ${offset} to ${end} of ${text.length}.${on}`);
  }
  if (page.cut) {
    const more =
      maxBytes < MAX_FETCH_BYTES
        ? `Give maxBytes (up to ${MAX_FETCH_BYTES}) for more.`
        : "No more than that can be fetched.";
    notes.push(
      `The page is longer than the ${counted(maxBytes, "byte")} that were downloaded. ${more}`,
    );
  }
  return textResult(notes, details);
}

async function decodePage(page: Page): Promise<string> {
  const isHtml = HTML_TYPE.test(page.type);
  const raw = decode(page, isHtml);
  if (page.type === "" && raw.includes("\0")) {
    throw new Error(`${page.url.href} is not text, and only text can be fetched.`);
  }
  if (!isHtml) return sanitize(raw);
  // The parser takes time to load, and most runs fetch no page.
  const { htmlToText } = await import("./html-text.ts");
  return sanitize(htmlToText(raw, page.url.href));
}

function decode(page: Page, isHtml: boolean): string {
  const start = isHtml
    ? Buffer.from(page.bytes.subarray(0, CHARSET_WITHIN_BYTES)).toString("latin1")
    : "";
  const charset = page.charset ?? /<meta[^>]{0,200}charset=["']?([\w-]+)/i.exec(start)?.[1];
  // Of a page that was cut, half a character at the end is left out.
  return createDecoder(charset).decode(page.bytes, { stream: page.cut });
}

function createDecoder(charset = "utf-8"): InstanceType<typeof TextDecoder> {
  try {
    return new TextDecoder(charset);
  } catch {
    // An unknown name: most pages are UTF-8, whatever they say.
    return new TextDecoder();
  }
}

/** Not between the halves of a character. */
function wholeEnd(text: string, end: number): number {
  if (end >= text.length) return text.length;
  return (text.codePointAt(end - 1) ?? 0) > LAST_OF_ONE_UNIT ? end - 1 : end;
}

async function lookUp(hostname: string): Promise<string[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
}

/** Connects to one of the checked addresses: the name is not looked up again. */
export function dialServer({ hostname, port, addresses }: Destination): Duplex {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }));
  return connect({
    host: hostname,
    port,
    ...(!isIP(hostname) && { servername: hostname }),
    // Also where the environment says otherwise.
    rejectUnauthorized: true,
    lookup: (_hostname, options, done) => {
      if (options.all) done(null, checked);
      else done(null, checked[0]?.address ?? "", checked[0]?.family);
    },
  });
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
