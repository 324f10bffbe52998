import type { Peer } from "./peer.ts";

/** A column of the tables: where the library is installed and the module that speaks to it. */
export interface Column {
  readonly id: string;
  /** The folder with its `package.json`; none for what is in this repository. */
  readonly folder?: string;
  readonly module: string;
}

export const COLUMNS: readonly Column[] = [
  { id: "floor", module: "./floor/peer.ts" },
  { id: "gyre", module: "./gyre/peer.ts" },
  { id: "gyre-agent", module: "./gyre/agent-peer.ts" },
  { id: "pi-0.87-loop", folder: "pi-0.87", module: "./pi-0.87/loop-peer.ts" },
  { id: "pi-0.87", folder: "pi-0.87", module: "./pi-0.87/peer.ts" },
  { id: "pi-0.73-loop", folder: "pi-0.73", module: "./pi-0.73/loop-peer.ts" },
  { id: "pi-0.73", folder: "pi-0.73", module: "./pi-0.73/peer.ts" },
  { id: "ai-sdk", folder: "ai-sdk", module: "./ai-sdk/peer.ts" },
  { id: "ai-sdk-agent", folder: "ai-sdk", module: "./ai-sdk/agent-peer.ts" },
  { id: "openai-agents", folder: "openai-agents", module: "./openai-agents/peer.ts" },
  { id: "langchain", folder: "langchain", module: "./langchain/peer.ts" },
  { id: "langchain-events", folder: "langchain", module: "./langchain/events-peer.ts" },
  { id: "mastra", folder: "mastra", module: "./mastra/peer.ts" },
  { id: "strands", folder: "strands", module: "./strands/peer.ts" },
];

/** Loads the module of a column, and with it the library. */
export async function loadPeer(id: string): Promise<Peer> {
  const column = COLUMNS.find((one) => one.id === id);
  if (!column) {
    const known = COLUMNS.map((one) => one.id).join(", ");
    throw new Error(`There is no peer "${id}". There are: ${known}.`);
  }
  return ((await import(column.module)) as { default: Peer }).default;
}

/** The package that an import is of: `@a/b` of `@a/b/c`. */
export function parsePackageName(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}
