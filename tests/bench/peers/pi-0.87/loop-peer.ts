/** The low-level way; see `../pi.ts`. */
export { loop as default } from "./peer.ts";
