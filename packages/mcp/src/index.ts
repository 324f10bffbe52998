export {
  findMcpPresentation,
  isMcpToolName,
  MCP_CALL,
  MCP_PRESENTATIONS,
  TOOL_SEARCH,
} from "./tools/catalog.ts";
export {
  fileLogins,
  type LoginKey,
  type LoginStore,
  memoryLogins,
  type StoredLogin,
} from "./auth/login-store.ts";
export { loopbackLogin, type LoopbackLoginOptions, type McpLogin } from "./auth/login.ts";
export { McpLoginError } from "./auth/oauth-session.ts";
export { connectMcp, type ConnectMcpOptions } from "./client/connect.ts";
export type {
  CallOptions,
  ListedTool,
  McpConnection,
  McpServerInfo,
  McpState,
} from "./client/connection.ts";
export { McpError } from "./contract/error.ts";
export type { McpFetch } from "./contract/fetch.ts";
export type { McpList } from "./contract/list.ts";
export type { McpProgress } from "./contract/progress.ts";
export {
  type AskQuestion,
  checkAnswer,
  fieldProblem,
  type McpAnswer,
  type McpField,
  type McpFieldValue,
  type McpFormProperty,
  type McpFormQuestion,
  type McpFormSchema,
  type McpQuestion,
  type McpUrlQuestion,
  parseField,
  toFormSchema,
} from "./contract/question.ts";
export {
  expandConfig,
  expandVariables,
  isAddress,
  type McpAddress,
  McpConfigError,
  type McpOAuth,
  type McpProgram,
  type McpServerConfig,
  type McpServerEntry,
  type McpServersRead,
  readMcpServers,
  variablesIn,
} from "./config/config.ts";
export { createMcpHandler, type McpHandler, type McpHandlerOptions } from "./serve/http.ts";
export { listenMcp, type ListenMcpOptions, type McpListener } from "./serve/listen.ts";
export type {
  Completer,
  McpOffer,
  ServeContext,
  ServedAnswer,
  ServedContents,
  ServedPrompt,
  ServedQuestion,
  ServedRead,
  ServedResource,
  ServedResourceTemplate,
  ServedTool,
} from "./serve/offer.ts";
export { serveMcp, type ServeMcpOptions } from "./serve/stdio.ts";
export {
  type Mcp,
  type McpChanges,
  type McpOptions,
  type McpServerStatus,
  openMcp,
} from "./tools/hub.ts";
export type { McpAccess, McpTool } from "./tools/mcp-tool.ts";
export type { McpPrompt } from "./tools/prompts.ts";
export { ruleForServer, serverAliases, toolNames } from "./tools/names.ts";
export {
  filePins,
  memoryPins,
  PinFileError,
  type PinStore,
  type ToolChanges,
} from "./tools/pins.ts";
export type { McpDetails } from "./tools/result.ts";
