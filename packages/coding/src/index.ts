export type {
  CodingAgent,
  CodingContinueOptions,
  CodingPromptOptions,
  RewindOptions,
  Rewound,
} from "./coding-agent.ts";
export { CodingAgentError, type CodingAgentErrorCode } from "./core/errors.ts";
export { createCodingAgent } from "./create-coding-agent.ts";
export {
  CODING_AGENT,
  type CodingRun,
  defineCodingAgent,
  type DurableCodingAgent,
  type DurableCodingAgentOptions,
} from "./define-coding-agent.ts";
export type { DeniedCall } from "./harness/denied-call.ts";
export type { FileChange, FileState, LeftOut } from "./file-history/lines/line.ts";
export type { Skill } from "./guidance/skills.ts";
export type {
  Approve,
  ApproveAnswer,
  CodingAgentOptions,
  CodingPermissions,
  EffectsAnswer,
  SessionChoice,
} from "./options.ts";
export type { Settings } from "./settings/settings.ts";
