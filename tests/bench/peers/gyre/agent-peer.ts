/** The agent with a memory; see `./peer.ts`. */
export { agent as default } from "./peer.ts";
