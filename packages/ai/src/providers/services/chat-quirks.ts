import type { Model, ThinkingLevel, Usage } from "../../messages/messages.ts";
import { hasFeature } from "./claude-models.ts";
import type { ServicePreset } from "./presets.ts";
import { toRecord } from "../../common/records.ts";

/**
 * How a service, or a model there, differs from the chat format as OpenAI defined it.
 * All are optional; names that are not here are ignored. The quirks of a model take
 * precedence over those of its service.
 */
export interface ChatQuirks {
  /** Where the limit of the output goes. Default `max_tokens`. */
  maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** Its own limit is too small for an agent: one is sent also where the caller gives none. */
  alwaysLimit?: boolean;
  /** The role of the system prompt. Default `system`. */
  systemRole?: "system" | "developer";
  /** Usage has to be asked for with `stream_options`. Default true. */
  streamUsage?: boolean;
  /** False: a temperature is refused. Default true. */
  temperature?: boolean;
  /**
   * How a thinking level is said. `effort`: `reasoning_effort`. `openrouter`: an object
   * with an effort or a budget. `thinking`: `thinking.type`, and an effort where `efforts`
   * says which. `switch`: `reasoning.enabled` for models that can be switched off, and an effort. `enable_thinking`: a flag and a budget. `template`: a flag for the chat
   * template of a server of one's own. `none`: not at all. Default `effort`.
   */
  reasoning?:
    | "effort"
    | "openrouter"
    | "thinking"
    | "switch"
    | "enable_thinking"
    | "template"
    | "none";
  /**
   * The word for each level, where it is another than the level's own (`xhigh`: `high`). What a model
   * has in `thinkingLevels` and `efforts` takes precedence over it.
   */
  efforts?: Partial<Record<Exclude<ThinkingLevel, "off">, string>>;
  /** Thinking can be switched off; else nothing is sent at level `off`. Default false. */
  thinkingOff?: boolean;
  /** Put beside `thinking.type`: that earlier thinking is to be kept, for instance. */
  thinkingExtra?: Readonly<Record<string, unknown>>;
  /**
   * The field in which a model's own thinking is sent back to it. `parts`: among the parts
   * of the content. `none`: left out. Default `none`; what came as `reasoning_details`
   * always goes back as that.
   */
  reasoningBack?: "reasoning_content" | "reasoning" | "reasoning_details" | "parts" | "none";
  /** Messages with calls are refused without the field that `reasoningBack` names. */
  reasoningRequired?: boolean;
  /** What the id of a call may look like. Default: at most 40 letters, digits and `_.:-`. */
  callIds?: { pattern: string; maxLength: number };
  /** Results of tools carry the tool's name. */
  resultName?: boolean;
  /** False: the service knows no tools; calls and results are sent as text. Default true. */
  tools?: boolean;
  /** Which choices of a tool it takes beside `auto`. Default `none`, `required` and `named`. */
  toolChoices?: readonly ("none" | "required" | "any" | "named")[];
  /** What stands for the text of a message that only has calls. Default null. */
  emptyContent?: "" | null;
  /** A user may not speak right after a tool's result: a short word of the assistant goes between. */
  assistantAfterResults?: boolean;
  /** User and assistant have to take turns, the user first. */
  alternate?: boolean;
  /** The assistant may not have the last word. */
  userLast?: boolean;
  /** Takes breakpoints for its cache in the way of Anthropic. */
  cacheControl?: boolean;
  /** Takes `prompt_cache_key`, which groups requests of one conversation. */
  promptCacheKey?: boolean;
  /** Can keep its cache for a day (`prompt_cache_retention`). */
  longCache?: boolean;
  /** A header that keeps a conversation on the machine that has its cache. */
  sessionHeader?: string;
  /** `usage.cost` is what the request cost in US dollars. */
  usageCost?: boolean;
  /** Further fields of each request. */
  extra?: Readonly<Record<string, unknown>>;
  /** Differences of some models: those whose id matches the pattern. Later ones go before earlier. */
  byModel?: readonly { ids: string; quirks: Omit<ChatQuirks, "byModel"> }[];
}

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
  const ofService: ChatQuirks = service.quirks ?? {};
  const ofModel: ChatQuirks = model.quirks ?? {};
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
  const total = usageCost && raw["is_byok"] !== true ? toNumber(raw["cost"]) : undefined;
  if (total !== undefined) usage.cost = { total };
  return usage;
}

function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
