export {
  expandConfig,
  expandVariables,
  isAddress,
  type McpAddress,
  McpConfigError,
  type McpProgram,
  type McpServerConfig,
  type McpServerEntry,
  type McpServersRead,
  readMcpServers,
  variablesIn,
} from "./config.ts";
export { type ListedTool, McpError, type McpState } from "./connection.ts";
export type { McpFetch } from "./http-transport.ts";
export {
  type Mcp,
  MCP_CALL,
  type McpChanges,
  type McpOptions,
  type McpServerStatus,
  openMcp,
  TOOL_SEARCH,
} from "./hub.ts";
export { isMcpToolName, ruleForServer, serverAliases, toolNames } from "./names.ts";
export { filePins, memoryPins, PinFileError, type PinStore, type ToolChanges } from "./pins.ts";
export type { McpDetails } from "./result.ts";
export { serveMcp, type ServeMcpOptions } from "./serve.ts";
