export {
  type BatchResult,
  cancelBatch,
  checkBatch,
  collectBatch,
  type CollectOptions,
  DEFAULT_POLL_MS,
  submitBatch,
} from "./batch.ts";
export type { BatchRequest } from "./requests.ts";
export type { Batch, BatchCounts, BatchState } from "./services.ts";
export type { CallOptions } from "../calls/call.ts";
