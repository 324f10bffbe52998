import type { ThinkingLevel } from "./messages.ts";

/**
 * How a service, or a model there, differs from the chat format as OpenAI defined it.
 * All are optional. The quirks of a model take precedence over those of its service.
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
  /**
   * How documents and sound are written. `openai`: `file` and `input_audio`. `mistral`: `document_url`,
   * and `input_audio` as a text. `file_url`: an address, or the contents. Default `openai`.
   */
  fileParts?: "openai" | "mistral" | "file_url";
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
  /**
   * Whether the service makes text fit a schema (`outputFormat`): `true`, also beside tools. `alone`:
   * only in requests without any. Default: as is known of the service and the model.
   */
  structuredOutput?: boolean | "alone";
  /** Further fields of each request. */
  extra?: Readonly<Record<string, unknown>>;
  /** Differences of some models: those whose id matches the pattern. Later ones go before earlier. */
  byModel?: readonly { ids: string; quirks: Omit<ChatQuirks, "byModel"> }[];
}

/** Differences of a model from others with its API format, for all formats. */
export interface ModelQuirks extends Omit<ChatQuirks, "efforts"> {
  /** The word for each level; for `openai-responses` the efforts that the model takes. */
  efforts?: ChatQuirks["efforts"] | readonly string[];
  /** `openai-responses`: false where the service gives no encrypted thinking. Default true. */
  encryptedReasoning?: boolean;
  /** `openai-responses`: the service can keep its cache for a day. */
  cacheRetention?: boolean;
  /**
   * How thinking is asked for: by a level or by a number of tokens (Claude), by a level or by a
   * switch (`ollama`). Default: as is known of the model.
   */
  thinking?: "adaptive" | "budget" | "levels" | "switch";
  /** `bedrock-converse-stream`: the region that requests are signed for. Default: of the address. */
  region?: string;
  /** `bedrock-converse-stream`: whose model it is, where the id does not say it. */
  family?: "claude" | "nova" | "openai" | "other";
  /** `bedrock-converse-stream`: whether the model has a cache. */
  cache?: boolean;
  /** `google-generative-ai`: the levels of thinking that the model takes. */
  thinkingLevels?: readonly string[];
  /** `google-generative-ai`: the generation of the model, such as 2.5. */
  generation?: number;
  /** `google-generative-ai`: the service streams the arguments of calls. */
  streamArguments?: boolean;
  /** `ollama`: the window with which the server loads the model. Default: the model's window. */
  numCtx?: number;
}
