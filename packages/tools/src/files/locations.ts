import type { ToolLocation } from "@gyre/agent";
import { type Loose, looseNumber, looseText } from "../contract/loose.ts";

/** The file or folder that the argument `path` names, with the line of `offset`. */
export function locatePath(args: Loose): ToolLocation[] {
  const path = looseText(args, "path");
  const line = looseNumber(args, "offset");
  return path === "" ? [] : [{ path, ...(line !== undefined && { line }) }];
}

/** A pattern, and where it is looked for. */
export function titleSearch(args: Loose, quote: (text: string) => string): string {
  const path = looseText(args, "path");
  return quote(looseText(args, "pattern")) + (path === "" ? "" : ` in ${quote(path)}`);
}
