// The entry of the browser's bundle. In a page it leaves the outcome on the window;
// a worker sends it to the page.
import { tour } from "./tour.mjs";

/** @typedef {{ stops: string[] } | { error: string }} Outcome */

/** @type {Promise<Outcome>} */
const outcome = tour().then(
  (stops) => ({ stops }),
  (error) => ({ error: String(error) }),
);

if (typeof document === "undefined") globalThis.postMessage(await outcome);
else Object.assign(globalThis, { outcome });
