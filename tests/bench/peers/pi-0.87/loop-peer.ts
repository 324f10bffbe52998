/** The low-level way; see `../pi/pi.ts`. */
export { loop as default } from "./peer.ts";
