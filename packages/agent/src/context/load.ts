import { loadPart } from "@gyre/ai";
import type { Compactor } from "./compactor.ts";
import type { capResult } from "./long-results.ts";

/** What keeps a context small: for runs that compact theirs, and for no others. */
export interface ContextParts {
  Compactor: typeof Compactor;
  capResult: typeof capResult;
}

let loaded: ContextParts | undefined;

/** Called by the module of the parts: where it is loaded already, as in Node, no run waits for it. */
export function provideContextParts(parts: ContextParts): void {
  loaded = parts;
}

/** The parts; a promise only where a page has left them out of its first bundle. */
export function loadContextParts(): ContextParts | Promise<ContextParts> {
  return loaded ?? loadPart(import("./compactor.ts")).then(({ parts }) => parts);
}
