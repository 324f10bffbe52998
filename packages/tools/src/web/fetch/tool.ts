import type { Duplex } from "node:stream";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { sanitize } from "@gyre/ai/text";
import { parseUrl } from "./address.ts";
import { fetchEntry } from "./entry.ts";

/** What is downloaded at most, unpacked, unless a call says otherwise. */
export const DEFAULT_FETCH_BYTES: number = 2 * 1024 * 1024;
/** ... and whatever a call says. */
export const MAX_FETCH_BYTES: number = 5 * 1024 * 1024;
/** For all of it: names, connections, redirects, the body. */
export const FETCH_TIMEOUT_MS = 20_000;
/** Within one server; another server is for another call. */
export const MAX_REDIRECTS = 5;
/** What the model is shown of a page in one call. */
export const MAX_SHOWN_CHARS = 50_000;

/** A server, by addresses that were checked: no other may be connected to. */
export interface Destination {
  hostname: string;
  port: number;
  addresses: readonly string[];
}

/** The ways out, for those who bring their own: a test, a proxy. */
export interface FetchOptions {
  /** All addresses of a name. */
  lookup?: (hostname: string) => Promise<readonly string[]>;
  /** A connection with TLS, the server's name verified. */
  dial?: (destination: Destination) => Duplex;
}

/** What the tool works with. The workspace is known to permissions, whose rules hold for redirects. */
export type FetchEnv = Pick<ToolEnv, "clock"> & Partial<Pick<ToolEnv, "workspace">>;

const parameters = {
  type: "object",
  properties: {
    url: { type: "string" },
    offset: { type: "integer" },
    maxBytes: { type: "integer" },
  },
  required: ["url"],
} as const;

/**
 * A tool that reads a page of the public internet as text: by https alone, without
 * cookies, never from an address of this machine or a private network, also not by a name
 * or a redirect that leads there.
 */
export function fetchTool(env: FetchEnv, options: FetchOptions = {}): GuardedTool {
  return defineEntryTool(fetchEntry, {
    label: "Fetch",
    description: `Reads a page by https as text, ${MAX_SHOWN_CHARS} characters at a time.`,
    parameters,
    concurrent: true,
    idempotent: true,
    async execute(args, { signal }) {
      const { runFetch } = await import("./run.ts");
      return runFetch(env, options, args, signal);
    },
    access(args) {
      const url = parseUrl(String(args["url"]));
      return {
        kind: "network",
        targets: [url.origin + url.pathname],
        summary: `Reads ${sanitize(url.href, { keepNewlines: false, exact: true })}`,
      };
    },
  });
}
