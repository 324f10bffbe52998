// Declarations that name types of Node, and options as the guide writes them.
import type { CodingAgentOptions } from "@gyre/coding";
import type { Session } from "@gyre/sessions";
import type { Toolset } from "@gyre/tools";
import type { McpServerConfig } from "@gyre/mcp";

const docs: McpServerConfig = { url: "https://docs.example/mcp" };
export const options: CodingAgentOptions = { mcp: { docs } };
export type Used = Session | Toolset;
