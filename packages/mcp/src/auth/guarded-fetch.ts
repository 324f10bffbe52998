import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { addressRefusal, readHost } from "@gyre/ai/network";
import type { McpFetch } from "../contract/fetch.ts";

/** Of a metadata document, a registration or a token: the longest ones have a few kilobytes. */
export const MAX_LOGIN_BYTES: number = 256 * 1024;
/** For one request of a login. */
export const LOGIN_REQUEST_MS = 30_000;
/** What `addressRefusal` calls the loopback. */
const THIS_MACHINE = "this machine";
const LOOPBACK_V6 = "::1";

/** Gives the addresses of a host. Rejects where it has none. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/** Why a login fails, in our words: what a server says may be meant for a model. */
export class LoginProblem extends Error {}

/**
 * A `fetch` for logins. The addresses come from documents of the server, so they may lead to places
 * that we can reach and the server cannot: requests go to the server's own origin, or by https to
 * the public internet. Where the server itself is on this machine or in a private network, they may
 * go to others there. Answers are bounded in size and in time.
 */
export function guardedFetch(server: URL, fetch: McpFetch, lookup: Lookup = lookUp): McpFetch {
  return async (address, init) => {
    const url = new URL(address);
    if (url.origin !== server.origin) await checkTarget(url, server, lookup);
    const late = AbortSignal.timeout(LOGIN_REQUEST_MS);
    const signal = init?.signal ? AbortSignal.any([init.signal, late]) : late;
    // A redirection is followed by the caller, and is checked as any other request.
    const response = await fetch(url, { ...init, redirect: "manual", signal });
    const { status, statusText, headers } = response;
    const body = response.body?.pipeThrough(bounded(url)) ?? null;
    return new Response(hasNoBody(status) ? null : body, { status, statusText, headers });
  };
}

async function checkTarget(url: URL, server: URL, lookup: Lookup): Promise<void> {
  const refuse = (why: string): never => {
    throw new LoginProblem(`${url.origin} is not asked: ${why}`);
  };
  if (url.username !== "" || url.password !== "") refuse("the address has a password in it");
  const kinds = await findKinds(url, lookup);
  const own = await findKinds(server, lookup);
  const isHere = (set: ReadonlySet<string>): boolean => set.size === 1 && set.has(THIS_MACHINE);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isHere(kinds) && isHere(own))) {
    refuse("it has to be an https address");
  }
  for (const kind of kinds) {
    if (kind !== "" && !own.has(kind)) refuse(`it is ${kind}, and the server is not`);
  }
}

/** What the addresses of a host are, "" for those of the public internet. */
async function findKinds(url: URL, lookup: Lookup): Promise<ReadonlySet<string>> {
  const host = readHost(url);
  // Systems disagree on whether such names are looked up at all.
  const isHere = host === "localhost" || host.endsWith(".localhost") || host === LOOPBACK_V6;
  if (isHere) return new Set([THIS_MACHINE]);
  if (isIP(host) !== 0) return new Set([addressRefusal(host) ?? ""]);
  try {
    return new Set((await lookup(host)).map((address) => addressRefusal(address) ?? ""));
  } catch {
    // Behind a proxy names need not be known here; else the request itself fails and says why.
    return new Set([""]);
  }
}

async function lookUp(host: string): Promise<string[]> {
  return (await systemLookup(host, { all: true })).map(({ address }) => address);
}

function bounded({ origin }: URL): TransformStream<Uint8Array, Uint8Array> {
  let left = MAX_LOGIN_BYTES;
  return new TransformStream({
    transform(chunk, controller) {
      left -= chunk.length;
      if (left >= 0) controller.enqueue(chunk);
      else {
        const text = `the answer of ${origin} has more than ${MAX_LOGIN_BYTES} bytes`;
        controller.error(new LoginProblem(text));
      }
    },
  });
}

/** A response with one of these cannot be made with a body. */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}
