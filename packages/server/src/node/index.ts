export { DurableHost, type DurableHostOptions } from "./durable-host.ts";
