import type { ToolEntry } from "../../contract/entry.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { looseText } from "../../contract/loose.ts";
import type { FetchOptions } from "./tool.ts";

export const fetchEntry: ToolEntry<{ env: ToolEnv; options: { fetch?: FetchOptions | false } }> = {
  name: "fetch",
  aliases: ["WebFetch"],
  presentation: {
    kind: "fetch",
    verb: "Fetch",
    title: (args, quote) => quote(looseText(args, "url")),
  },
  make: async ({ env, options: { fetch } }) =>
    (await import("./tool.ts")).fetchTool(env, fetch === false ? {} : fetch),
};
