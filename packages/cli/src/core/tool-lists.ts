import { TOOLS } from "@gyre/tools/catalog";

/** What an agent has unless the user chooses others, in the order in which a model sees them. */
export const DEFAULT_TOOLS: readonly string[] = TOOLS.filter(({ isDefault }) => isDefault).map(
  ({ name }) => name,
);

/** What it has if it is named. */
export const OTHER_TOOLS: readonly string[] = TOOLS.filter(({ isDefault }) => !isDefault).map(
  ({ name }) => name,
);
