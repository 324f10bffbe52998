export {
  acknowledgeSafetyChecks,
  listSafetyChecks,
  type SafetyCheck,
} from "../messages/safety-checks.ts";
export { CitedSources, formatSource } from "./citations.ts";
export {
  listServiceTools,
  readServiceTool,
  type ServiceToolSource,
  type ServiceToolUse,
} from "./read.ts";
export { describeUse } from "./to-text.ts";
