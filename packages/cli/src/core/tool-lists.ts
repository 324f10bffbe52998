import { DEFAULT_TOOLS, TOOL_NAMES } from "@gyre/tools/catalog";

export { DEFAULT_TOOLS };

/** What an agent has if it is named. */
export const OTHER_TOOLS: readonly string[] = TOOL_NAMES.filter(
  (name) => !DEFAULT_TOOLS.includes(name),
);
