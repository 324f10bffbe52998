import { isRecord } from "@gyre/ai";
import type { NewToolClient, ToolClientRow } from "../contract/client-tools.ts";

export interface ToolClientRecord {
  client: string;
  holder: string;
  keeps_calls: number;
  tools: string;
  left_ms: number;
}

export function toToolClient(record: ToolClientRecord): ToolClientRow {
  const { client, holder, keeps_calls: keeps, tools, left_ms: leftMs } = record;
  return { client, holder, keepsCalls: keeps === 1, tools, leftMs };
}

/** The name of a tool that another client has registered. */
export function findTaken(
  { client, tools }: NewToolClient,
  rows: readonly ToolClientRow[],
): string | undefined {
  const taken = new Set(
    rows.flatMap((row) => (row.client === client ? [] : listNames(JSON.parse(row.tools)))),
  );
  return tools.find(({ name }) => taken.has(name))?.name;
}

function listNames(tools: unknown): string[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool) => (isRecord(tool) ? [String(tool["name"])] : []));
}
