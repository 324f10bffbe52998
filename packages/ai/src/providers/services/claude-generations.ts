/** What the API expects of requests to a Claude model. Absent: it does not. */
export interface ClaudeFeatures {
  /** Streams arguments as they are written; other models withhold each until it is whole. */
  eagerInput?: true;
  /** Thinks between calls, if a beta header asks for it. */
  interleavedThinking?: true;
  /** Has a cache on Amazon Bedrock. */
  bedrockCache?: true;
  /** The cache on Amazon Bedrock can last an hour. */
  longBedrockCache?: true;
  /** Takes a thinking level; the models before take a number of tokens. */
  adaptiveThinking?: true;
  /** The last message has to be the user's. */
  userLast?: true;
  /** Takes the effort `xhigh`. */
  xhighEffort?: true;
  /** Thinks without showing anything, unless a summary is requested. */
  hiddenThinking?: true;
  /** Rejects a temperature. */
  fixedTemperature?: true;
  /** Thinks unless it is switched off. */
  thinksByDefault?: true;
  /** Rejects a request that forces a call. */
  noForcedCalls?: true;
  /** Rejects its own thinking if something before it has changed since. */
  bindsThinking?: true;
  /** How thinking is switched off. Absent: the lowest effort is the least there is. */
  thinkingOff?: "disabled" | "between_tools";
}

/** Each generation has the features of those before it, too. */
const GENERATIONS: readonly { since: string; features: ClaudeFeatures }[] = [
  { since: "4", features: { interleavedThinking: true, bedrockCache: true } },
  { since: "4.5", features: { longBedrockCache: true, eagerInput: true } },
  { since: "4.6", features: { adaptiveThinking: true, userLast: true } },
  { since: "4.7", features: { xhighEffort: true, hiddenThinking: true, fixedTemperature: true } },
  { since: "5", features: { thinksByDefault: true } },
  { since: "5.1", features: { noForcedCalls: true, bindsThinking: true } },
];

/** Features of single models. */
const MODELS: Readonly<Record<string, ClaudeFeatures>> = {
  "opus 5": { thinkingOff: "disabled" },
  "sonnet 5": { thinkingOff: "disabled" },
  "sonnet 5.5": { thinkingOff: "between_tools" },
  "haiku 5.5": { thinkingOff: "disabled" },
};

/** Models before the fourth generation that have a cache on Amazon Bedrock. */
const OLD_WITH_CACHE = /claude-3-(?:7-sonnet|5-haiku|5-sonnet-20241022)/;

/** The features of a Claude model by its id, whatever region or vendor the id has around its name. */
export function findClaudeFeatures(id: string): ClaudeFeatures {
  const [, family = "", major, minor = "0"] =
    /claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(id) ?? [];
  if (major === undefined) return OLD_WITH_CACHE.test(id) ? { bedrockCache: true } : {};
  const version = [Number(major), Number(minor)] as const;
  const reached = GENERATIONS.filter(({ since }) => isAtLeast(version, since));
  const name = version[1] === 0 ? `${family} ${version[0]}` : `${family} ${version.join(".")}`;
  return Object.assign({}, ...reached.map(({ features }) => features), MODELS[name]);
}

function isAtLeast([major, minor]: readonly [number, number], since: string): boolean {
  const [sinceMajor = 0, sinceMinor = 0] = since.split(".").map(Number);
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}
