import type { nearNames } from "../schema/near-names.ts";
import type { ModelQuirks } from "./quirks.ts";

const NAMES: Readonly<Record<keyof ModelQuirks, true>> = {
  maxTokensField: true,
  alwaysLimit: true,
  systemRole: true,
  streamUsage: true,
  temperature: true,
  reasoning: true,
  efforts: true,
  thinkingOff: true,
  thinkingExtra: true,
  reasoningBack: true,
  reasoningRequired: true,
  callIds: true,
  resultName: true,
  tools: true,
  toolChoices: true,
  emptyContent: true,
  fileParts: true,
  assistantAfterResults: true,
  alternate: true,
  userLast: true,
  cacheControl: true,
  promptCacheKey: true,
  longCache: true,
  sessionHeader: true,
  usageCost: true,
  structuredOutput: true,
  extra: true,
  byModel: true,
  encryptedReasoning: true,
  cacheRetention: true,
  thinking: true,
  numCtx: true,
  region: true,
  family: true,
  cache: true,
  thinkingLevels: true,
  generation: true,
  streamArguments: true,
};

/**
 * Why these are no quirks; nothing if they are. `findNear` is given, so that a page that never loads
 * this has it in one piece with all else.
 */
export function explainQuirks(
  quirks: Readonly<Record<string, unknown>>,
  findNear: typeof nearNames,
): string | undefined {
  for (const name of Object.keys(quirks)) {
    if (Object.hasOwn(NAMES, name)) continue;
    const [near] = findNear(name, Object.keys(NAMES));
    return `There is no quirk "${name}"${near === undefined ? "." : `: did you mean "${near}"?`}`;
  }
  return undefined;
}
