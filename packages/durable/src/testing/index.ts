export {
  type ChaosOptions,
  type ChaosReport,
  DATABASE_FAILURES,
  type DatabaseServer,
  type Failure,
  FILE_FAILURES,
  runChaos,
} from "./chaos.ts";
export { checkRun, type Evidence, type Finding, type SentItem } from "./checkers.ts";
export { type DrivenRun, driveRun, gatherEvidence } from "./drive.ts";
export { EngineSite, type EngineSpec, openEngine } from "./engine.ts";
export { FailoverPair } from "./failover.ts";
export { Journal, type JournalLine, readJournals } from "./journal.ts";
export {
  type PlannedCall,
  type PlannedItem,
  type PlannedTool,
  planRun,
  type RunPlan,
} from "./plan.ts";
export { WorkerProcess, type WorkerProcessOptions } from "./processes.ts";
export { DatabaseProxy } from "./proxy.ts";
export { Random } from "./random.ts";
export { createScriptedAgent, SCRIPTED_AGENT } from "./scripted-agent.ts";
