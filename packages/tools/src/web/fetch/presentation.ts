import type { ToolPresentation } from "@gyre/agent";
import { looseText } from "../../contract/loose.ts";

export const fetchPresentation: ToolPresentation = {
  kind: "fetch",
  verb: "Fetch",
  title: (args, quote) => quote(looseText(args, "url")),
};
