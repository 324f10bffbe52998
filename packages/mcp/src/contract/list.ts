/** What a server can have lists of. */
export type McpList = "tools" | "resources" | "prompts";
