import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { once } from "../once.ts";
import type { Tool } from "../peer.ts";

/** A tool is made once, as it would be at the top of a module. */
export const toTool = once(makeTool);

function makeTool({ name, description, parameters, run }: Tool) {
  const fields = Object.entries(parameters).map(([key, type]) => [
    key,
    type === "string" ? z.string() : z.number(),
  ]);
  return createTool({
    id: name,
    description,
    inputSchema: z.object(Object.fromEntries(fields)),
    execute: (input, { abortSignal }) => run(input, abortSignal),
  });
}
