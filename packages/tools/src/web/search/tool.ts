import type { Model, ProtocolClient } from "@gyre/ai";
import { sanitize } from "@gyre/ai/text";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { webSearchEntry } from "./entry.ts";

/** Results that the model is shown. */
export const MAX_SEARCH_RESULTS = 10;
/** Searches that a service makes for one call. */
export const MAX_SERVICE_SEARCHES = 3;
/** A search engine has to answer within this. */
export const SEARCH_TIMEOUT_MS = 20_000;
/** Of its answer; a larger one is an error. */
export const MAX_SEARCH_BYTES: number = 2 * 1024 * 1024;

/** What searches: the service of a model, or a search engine that answers with JSON. */
export type WebSearchOptions =
  | {
      client: ProtocolClient;
      /** A function is called for each search: the model of the agent, say. */
      model: Model | (() => Model);
    }
  | {
      /** With `{query}` in it, such as `https://search.example/search?q={query}&format=json`. */
      url: string;
      /** Such as the one with a key. */
      headers?: Readonly<Record<string, string>>;
      /** Default: the global one. */
      fetch?: typeof globalThis.fetch;
    };

/** The part of an address where the words stand that are looked for. */
export const QUERY_MARK = "{query}";

const parameters = {
  type: "object",
  properties: { query: { type: "string", minLength: 1 } },
  required: ["query"],
} as const;

/**
 * A tool that searches the web. Each call is a request to the network that permissions decide on, and
 * what it gives is marked as text of the web. Throws on an address without `{query}`.
 */
export function webSearchTool(env: Pick<ToolEnv, "clock">, options: WebSearchOptions): GuardedTool {
  if ("url" in options) checkUrl(options.url);
  return defineEntryTool(webSearchEntry, {
    label: "Web search",
    description: "Searches the web.",
    parameters,
    concurrent: true,
    idempotent: true,
    async execute({ query }, { signal }) {
      const run = await import("./run.ts");
      return "url" in options
        ? run.askEngine(env, options, query, signal)
        : run.askService(options.client, findModel(options.model), query, signal);
    },
    access({ query }) {
      const target =
        "url" in options ? describeUrl(options.url) : describeModel(findModel(options.model));
      const shown = sanitize(String(query), { keepNewlines: false, exact: true });
      return {
        kind: "network",
        targets: [target],
        summary: `Search the web by ${target}: ${shown}`,
      };
    },
  });
}

function findModel(model: Model | (() => Model)): Model {
  return typeof model === "function" ? model() : model;
}

function describeModel({ id, provider }: Model): string {
  return `${provider}/${id}`;
}

/** Without what is asked, and without a key. */
function describeUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function checkUrl(url: string): void {
  const fits = /^https?:\/\//.test(url) && url.includes(QUERY_MARK) && URL.canParse(url);
  if (fits) return;
  throw new TypeError(
    `"${url}" is no address of a search engine: write one with ${QUERY_MARK} where the words stand, such as https://search.example/search?q=${QUERY_MARK}&format=json.`,
  );
}
