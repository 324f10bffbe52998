import type { ToolEntry } from "../../contract/entry.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { looseNumber, looseRecord, looseText } from "../../contract/loose.ts";
import { counted } from "../../text/text.ts";
import type { WebSearchOptions } from "./tool.ts";

export const webSearchEntry: ToolEntry<{
  env: ToolEnv;
  options: { web_search?: WebSearchOptions };
}> = {
  name: "web_search",
  aliases: ["WebSearch"],
  presentation: {
    kind: "fetch",
    verb: "Search",
    title: (args, quote) => quote(looseText(args, "query")),
    summarize({ details }) {
      const found = looseNumber(looseRecord(details), "found");
      return found === undefined ? {} : { summary: counted(found, "result") };
    },
  },
  needsOptions: true,
  async make({ env, options: { web_search: options } }) {
    if (!options) throw new Error("web_search needs a model, or the address of a search engine.");
    return (await import("./tool.ts")).webSearchTool(env, options);
  },
};
