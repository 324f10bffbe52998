import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import type { Tool } from "../peer.ts";

const tools = new WeakMap<Tool, ReturnType<typeof makeTool>>();

/** A tool is made once, as it would be at the top of a module. */
export function toTool(tool: Tool): ReturnType<typeof makeTool> {
  const made = tools.get(tool) ?? makeTool(tool);
  tools.set(tool, made);
  return made;
}

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
