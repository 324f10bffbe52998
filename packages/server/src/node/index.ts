export {
  DurableHost,
  type DurableHostOptions,
  type NewDurableSession,
  type StoredPlace,
} from "./durable-host.ts";
