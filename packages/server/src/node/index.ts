export { DurableHost, type DurableHostOptions, type NewDurableSession } from "./durable-host.ts";
