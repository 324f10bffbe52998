import { OPTIONS as ANTHROPIC } from "../anthropic-messages/options.ts";
import { OPTIONS as CONVERSE } from "../bedrock-converse-stream/options.ts";
import type { CommonName, Draft, FormatOptions } from "../options/table.ts";

/** What both formats have that this one passes on. */
const NAMES = ["topP", "topK", "stopSequences"] as const satisfies readonly CommonName[];
/** What only Claude has there. */
const OF_CLAUDE = ["parallelToolCalls", "strictTools", "cacheBreakpoints"] as const;

/** The options of InvokeModelWithResponseStream: those of the format of the model. */
export const OPTIONS: FormatOptions = {
  common: {
    topP: (value, draft) => pick(draft).topP?.(value, draft) ?? {},
    topK: (topK, draft) =>
      isClaude(draft.request.model.id)
        ? (ANTHROPIC.common.topK?.(topK, draft) ?? {})
        : { inferenceConfig: { topK } },
    stopSequences: (value, draft) => pick(draft).stopSequences?.(value, draft) ?? {},
    parallelToolCalls: (value, draft) => ANTHROPIC.common.parallelToolCalls?.(value, draft) ?? {},
    strictTools: (value, draft) => ANTHROPIC.common.strictTools?.(value, draft) ?? {},
    cacheBreakpoints: (value, draft) => ANTHROPIC.common.cacheBreakpoints?.(value, draft) ?? {},
  },
  ...(ANTHROPIC.output && {
    output: {
      ...ANTHROPIC.output,
      supports: (target) => isClaude(target.model.id) && CONVERSE.output?.supports(target) === true,
    },
  }),
  services: {},
  refuse(name, target) {
    const { id } = target.model;
    if (isClaude(id)) return ANTHROPIC.refuse?.(name, target);
    if (OF_CLAUDE.some((one) => one === name))
      return "only models of Anthropic take it with this format. Use bedrock-converse-stream, or leave it out.";
    return NAMES.some((one) => one === name) ? CONVERSE.refuse?.(name, target) : undefined;
  },
};

type Common = FormatOptions["common"];

function isClaude(id: string): boolean {
  return id.includes("claude");
}

function pick({ request }: Draft): Common {
  return (isClaude(request.model.id) ? ANTHROPIC : CONVERSE).common;
}
