import type { ToolEntry } from "../contract/entry.ts";
import type { ToolEnv } from "../contract/env.ts";
import { looseText } from "../contract/loose.ts";
import type { GitOptions } from "./program.ts";

export const gitEntry: ToolEntry<{ env: ToolEnv; options: { git?: GitOptions } }> = {
  name: "git",
  presentation: {
    kind: "execute",
    paged: true,
    verb: "git",
    literal: true,
    title: (args) => looseText(args, "action"),
  },
  make: async ({ env, options }) => (await import("./tool.ts")).gitTool(env, options.git),
};
