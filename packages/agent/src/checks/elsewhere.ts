import type { Agent } from "../agent/agent.ts";
import type { AgentEvent } from "../contract/types.ts";
import { NAMES, type Place } from "./names.ts";

/** What to write in place of a name that is not one here. */
export interface Advice {
  /** Options, as "retry.maxRetries": of the place itself, or else of the first that has them. */
  readonly options: readonly string[];
  /** What stands before them. */
  readonly before?: string;
  /** What they do, where their names do not say it. */
  readonly why?: string;
  /** What changes the same later, for a place that has none of the options. */
  readonly method?: keyof Agent;
}

/** A listener has it. */
export interface EventAdvice {
  readonly event: AgentEvent["type"];
}

type Advices = Readonly<Record<string, Advice | EventAdvice | string>>;

const IN_SERVICE: Advice = {
  options: ["providerOptions"],
  why: "under the id of the service",
};
const IN_BODY: Advice = { options: ["onPayload"], why: "which can add it to the request" };
const INSTRUCTIONS: Advice = { options: ["instructions"], method: "setSystemPrompt" };
const GUARD: Advice = { options: ["middleware"], why: "with [{ tool }] or [{ model }]" };
const AROUND_TOOL: Advice = { options: ["middleware.tool"] };

/** Names of an agent and its runs: of the AI SDK, OpenAI Agents, pi, and of the wrong place here. */
const OF_AGENT: Advices = {
  initialState: {
    options: ["model", "instructions", "tools", "messages", "thinkingLevel"],
    before: "its parts beside it: ",
  },
  systemPrompt: INSTRUCTIONS,
  system: INSTRUCTIONS,
  instructions: INSTRUCTIONS,
  model: { options: ["model"], method: "setModel" },
  signal: "signal",
  abortSignal: "signal",
  output: "output",
  schema: "output",
  outputType: "output",
  experimental_output: "output",
  maxTurns: "limits.maxTurns",
  maxSteps: "limits.maxTurns",
  stopWhen: "limits.maxTurns",
  maxOutputTokens: "maxTokens",
  logitBias: IN_SERVICE,
  serviceTier: IN_SERVICE,
  safetySettings: IN_SERVICE,
  stop: "stopSequences",
  n: IN_BODY,
  extraBody: IN_BODY,
  modelSettings: { options: ["temperature", "maxTokens", "toolChoice"] },
  reasoningEffort: { options: ["thinkingLevel"], method: "setThinkingLevel" },
  activeTools: { options: ["tools"] },
  maxRetries: "retry.maxRetries",
  prepareStep: "prepareTurn",
  prepareNextTurn: "prepareTurn",
  beforeToolCall: AROUND_TOOL,
  afterToolCall: AROUND_TOOL,
  inputGuardrails: GUARD,
  outputGuardrails: GUARD,
  onFinish: { event: "agent_end" },
  onStepFinish: { event: "turn_end" },
  onChunk: { event: "message_update" },
};

/** Names that are not here, by where they are written. */
export const ELSEWHERE: Readonly<Partial<Record<Place, Advices>>> = {
  "new Agent": OF_AGENT,
  prompt: OF_AGENT,
  continue: OF_AGENT,
  generate: OF_AGENT,
  tool: { timeout: "timeoutMs", requireApproval: "needsApproval" },
  asTool: {
    schema: { options: ["input", "output"] },
    inputSchema: "input",
    parameters: "input",
    outputSchema: "output",
    toolName: "name",
    toolDescription: "description",
  },
  retry: {
    attempts: "maxRetries",
    maxRetry: "maxRetries",
    maxAttempts: "maxRetries",
    retries: "maxRetries",
    delay: "baseDelayMs",
    delayMs: "baseDelayMs",
    initialDelayMs: "baseDelayMs",
  },
  context: {
    trigger: "triggerTokens",
    target: "targetTokens",
    maxTokens: "triggerTokens",
    keepRecentTokens: "keepTurns",
    keepRecent: "keepTurns",
  },
  middleware: {
    wrapGenerate: "model",
    wrapStream: "model",
    transformParams: "model",
    wrapModelCall: "model",
    wrapToolCall: "tool",
    beforeToolCall: "tool",
    afterToolCall: "tool",
  },
};

/** Where an option is looked for that the place itself does not have. */
const HOMES = ["prompt", "new Agent"] as const;

/** What to write for a name that `place` does not have; nothing where the name is not known. */
export function explainName(place: Place, name: string): string | undefined {
  const known = ELSEWHERE[place];
  const entry = known && Object.hasOwn(known, name) ? known[name] : undefined;
  if (entry === undefined) return undefined;
  if (typeof entry === "object" && "event" in entry) {
    return `There is no option "${name}": write agent.subscribe((event) => ...), for ${entry.event}.`;
  }
  const advice: Advice = typeof entry === "string" ? { options: [entry] } : entry;
  const home = findHome(place, advice);
  const isHere = home === place;
  const write = `${advice.before ?? ""}${advice.options.map(formatOption).join(", ")}`;
  const where = isHere ? "" : `, of ${home}()`;
  const method = isHere || !advice.method ? "" : `, or call ${advice.method}()`;
  const why = advice.why === undefined ? "" : `, ${advice.why}`;
  const owner = isHere && ELSEWHERE[place] === OF_AGENT ? "" : ` of ${place}`;
  return `There is no option "${name}"${owner}: write ${write}${where}${method}${why}.`;
}

/** The place whose options are advised: the one where the name was written, if it has them. */
export function findHome(place: Place, { options }: Advice): Place {
  const has = (one: Place): boolean =>
    options.every((path) => (path.split(".")[0] ?? "") in NAMES[one]);
  const home = [place, ...HOMES].find(has);
  if (home === undefined) throw new Error(`No place has ${options.join(", ")}.`);
  return home;
}

/** "retry.maxRetries" as it is written. */
function formatOption(path: string): string {
  const [option = "", part] = path.split(".");
  if (part === undefined) return option;
  return option === "middleware" ? `middleware: [{ ${part} }]` : `${option}: { ${part} }`;
}
