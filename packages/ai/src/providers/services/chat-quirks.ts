import type { Model, Usage } from "../../messages/messages.ts";
import type { ChatQuirks } from "../../messages/quirks.ts";
import { hasFeature } from "./claude-models.ts";
import type { ServicePreset } from "./preset.ts";
import { readTicks } from "./ticks.ts";
import { toRecord } from "../../common/records.ts";

type Settled =
  | "maxTokensField"
  | "systemRole"
  | "streamUsage"
  | "temperature"
  | "reasoning"
  | "reasoningBack"
  | "callIds"
  | "tools"
  | "toolChoices"
  | "emptyContent";

/** Quirks with every default filled in. */
export type ChatDialect = Omit<ChatQuirks, "byModel"> & Required<Pick<ChatQuirks, Settled>>;

const DEFAULTS: ChatDialect = {
  maxTokensField: "max_tokens",
  systemRole: "system",
  streamUsage: true,
  temperature: true,
  reasoning: "effort",
  reasoningBack: "none",
  callIds: { pattern: "^[\\w.:-]+$", maxLength: 40 },
  tools: true,
  toolChoices: ["none", "required", "named"],
  emptyContent: null,
};

/** What holds for some models wherever they are served. */
const ANYWHERE: NonNullable<ChatQuirks["byModel"]> = [
  {
    ids: "(^|/)(o\\d|gpt-[5-9])",
    quirks: { maxTokensField: "max_completion_tokens", temperature: false },
  },
  { ids: "claude", quirks: { callIds: { pattern: "^[\\w-]+$", maxLength: 40 } } },
];

/** How to speak to a model: what it says itself, then its service, then the defaults. */
export function chatDialect(model: Model, service: ServicePreset): ChatDialect {
  // A list of efforts is for another format, and does no harm here.
  const ofService = (service.quirks ?? {}) as ChatQuirks;
  const ofModel = (model.quirks ?? {}) as ChatQuirks;
  return Object.assign(
    {},
    DEFAULTS,
    ...matching(model, ANYWHERE),
    hasFeature(model, "userLast") && { userLast: true },
    ofService,
    ...matching(model, ofService.byModel),
    ofModel,
    ...matching(model, ofModel.byModel),
  );
}

function matching({ id }: Model, byModel: ChatQuirks["byModel"] = []): ChatQuirks[] {
  return byModel.filter(({ ids }) => new RegExp(ids).test(id)).map(({ quirks }) => quirks);
}

/**
 * The figures of a chat service, wherever it puts them. Input is what was neither read
 * from nor written to a cache; output includes thinking; what was not said is absent.
 */
export function chatUsage(raw: Record<string, unknown>, { usageCost }: ChatDialect): Usage {
  const input = toRecord(raw["prompt_tokens_details"]);
  const output = toRecord(raw["completion_tokens_details"]);
  const all = toNumber(raw["prompt_tokens"]);
  const written = toNumber(raw["completion_tokens"]);
  const totalTokens = toNumber(raw["total_tokens"]);
  const cacheRead = toNumber(
    input["cached_tokens"] ?? raw["cached_tokens"] ?? raw["prompt_cache_hit_tokens"],
  );
  const cacheWrite = toNumber(input["cache_write_tokens"] ?? raw["cache_creation_input_tokens"]);
  const reasoning = toNumber(output["reasoning_tokens"] ?? raw["reasoning_tokens"]);
  const usage: Usage = {};
  if (all !== undefined) usage.input = Math.max(0, all - (cacheRead ?? 0) - (cacheWrite ?? 0));
  if (written !== undefined) {
    // Some count thinking beside the output: the total shows it, or that it would not fit in.
    const thought = reasoning ?? 0;
    const beside = thought > written || (all ?? 0) + written + thought === totalTokens;
    usage.output = beside ? written + thought : written;
  }
  if (cacheRead !== undefined) usage.cacheRead = cacheRead;
  if (cacheWrite !== undefined) usage.cacheWrite = cacheWrite;
  if (reasoning !== undefined) usage.reasoning = reasoning;
  if (totalTokens !== undefined) usage.totalTokens = totalTokens;
  const { web_search_requests: searches } = toRecord(raw["server_tool_use"]);
  if (typeof searches === "number" && searches > 0) usage.webSearches = searches;
  const total = usageCost && raw["is_byok"] !== true ? toNumber(raw["cost"]) : undefined;
  const cost = total === undefined ? readTicks(raw) : { total };
  if (cost) usage.cost = cost;
  return usage;
}

function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
