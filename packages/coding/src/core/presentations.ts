import type { ToolPresentation } from "@gyre/agent";
import { findMcpPresentation } from "@gyre/mcp/catalog";
import { findPresentation as findToolPresentation } from "@gyre/tools/catalog";

/**
 * How calls of a tool are shown, by its name alone: those of a toolset, and those by which
 * MCP servers are reached. Undefined for a tool that is not one of ours.
 */
export function findPresentation(name: string): ToolPresentation | undefined {
  return findMcpPresentation(name) ?? findToolPresentation(name);
}
