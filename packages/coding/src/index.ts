export { openHarness } from "./harness/harness.ts";
export type { Harness, HarnessOptions } from "./harness/types.ts";
