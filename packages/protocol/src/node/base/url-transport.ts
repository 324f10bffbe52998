import type { Opener } from "../../client/connect-url.ts";
import type { Listener, ListenOptions } from "./listen.ts";

/** A transport that addresses of one scheme stand for. */
export interface UrlTransport {
  /** Opens connections to an address. */
  connect: Opener;
  /** Accepts connections at an address; absent where that is another transport's part. */
  listen?: (address: URL, options: ListenOptions) => Promise<Listener>;
}
