export {
  DEFAULT_MAX_PARALLEL,
  embed,
  type Embedded,
  type EmbeddedMany,
  embedMany,
  EmbedManyError,
  type EmbedManyOptions,
  type EmbedOptions,
} from "./embed.ts";
export type { EmbeddingPurpose } from "./services.ts";
export type { CallOptions } from "../calls/call.ts";
