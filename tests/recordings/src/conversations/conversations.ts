import { Agent, type AgentEvent, isLlmMessage } from "@gyre/agent";
import { createInProcessClient, type Model } from "@gyre/ai";
import { createProviders, SERVICES } from "@gyre/ai/providers";
import { findApi, createModel } from "../responses/ask.ts";
import { headerProblems, nestingProblems, transcriptProblems } from "./checks.ts";
import { ALLOWED, type Difference, findDifferences, GAP, NO_START } from "./differences.ts";
import { type ReplayServer, replayServer, type Sent } from "./server.ts";
import { recordedTools, restoreTranscript, userContent } from "./transcript.ts";
import { type Case, type Recordings, readRecordedRequest } from "../responses/manifest.ts";
import { readRequest, type ModelRequest, type RequestResult } from "./request-transcript.ts";

/** What came of one conversation. */
export interface ConversationResult {
  name: string;
  problems: string[];
  /** Names of the allowed differences that it needed, one for each time. */
  used: string[];
  /** Requests of ours that were compared with recorded ones. */
  requests: number;
}

/** One request of a conversation with its answer, as recorded. */
interface Step {
  one: Case;
  request: ModelRequest;
  path: string;
}

const API_KEY = "test-key-of-the-replay";
const ROUNDS_OF_ONE_RECORDING = 1_000;

/**
 * Drives the agent through every recorded conversation whose name or cases contain
 * `only`, over loopback, and compares each request of ours with the recorded one. One
 * that has no request recorded is left out.
 */
export async function playConversations(
  recordings: Recordings,
  only: string,
): Promise<ConversationResult[]> {
  const server = await replayServer(recordings);
  const results: ConversationResult[] = [];
  try {
    for (const [name, cases] of groupConversations(recordings)) {
      if (!name.includes(only) && !cases.some(({ id }) => id.includes(only))) continue;
      const result: ConversationResult = { name, problems: [], used: [], requests: 0 };
      try {
        const steps = cases.map((one) => readStep(recordings, one));
        for (const [index, stretch] of splitStretches(steps).entries()) {
          if (index > 0) result.used.push(GAP);
          await playStretch(stretch, server, result);
        }
      } catch (error) {
        result.problems.push(`threw ${String(error)}`);
      }
      results.push(result);
    }
  } finally {
    await server.close();
  }
  return results;
}

/** Conversations by name, their requests in order. A case of no conversation is one by itself. */
function groupConversations({ cases }: Recordings): Map<string, Case[]> {
  const conversations = new Map<string, Case[]>();
  for (const one of cases) {
    if (one.request === null || !isAnswered(one)) continue;
    const name = one.conversation ?? one.id;
    conversations.set(name, [...(conversations.get(name) ?? []), one]);
  }
  for (const inOrder of conversations.values()) {
    inOrder.sort((a, b) => a.source.interaction - b.source.interaction);
  }
  return conversations;
}

function readStep(recordings: Recordings, one: Case): Step {
  const path = parsePath(one.source.url ?? "");
  return {
    one,
    request: readRequest(findApi(one), readRecordedRequest(recordings, one) ?? {}, path),
    path,
  };
}

/** Errors and streams that no model made are played elsewhere. */
function isAnswered({ api, http_status }: Case): boolean {
  return api !== "mcp" && api !== "http-error" && http_status === 200;
}

/** Path and query of a recorded address, parts of which may have been made unreadable. */
function parsePath(url: string): string {
  return /^(?:\w+:\/\/[^/]*|<[^>]*>)?(\/[^#]*)/.exec(url)?.[1] ?? "";
}

/** Parts of a conversation within which each request goes on from the one before. */
function splitStretches(steps: readonly Step[]): Step[][] {
  const stretches: Step[][] = [];
  let last: Step | undefined;
  for (const step of steps) {
    if (last && goesOn(last, step)) stretches.at(-1)?.push(step);
    else stretches.push([step]);
    last = step;
  }
  return stretches;
}

function goesOn({ one, request }: Step, next: Step): boolean {
  if (!one.expected.ok || next.one.source.interaction !== one.source.interaction + 1) return false;
  return next.request.turns.length > request.turns.length;
}

/** Plays requests that follow each other with one agent, and puts what it finds into `result`. */
async function playStretch(
  stretch: readonly Step[],
  server: ReplayServer,
  result: ConversationResult,
): Promise<void> {
  const [first] = stretch;
  if (!first) return;
  const model = modelFor(first, server.origin);
  const { messages, prompt } = restoreTranscript(first.request, model);
  if (!prompt && messages.at(-1)?.role !== "toolResult") {
    const last = first.request.turns.at(-1);
    const wordless = last?.role === "assistant" || (last && last.other.length > 0);
    if (!wordless) throw new Error("Nothing could be read in the first request.");
    result.used.push(NO_START);
    return;
  }
  const sent = server.play(stretch.map(({ one }) => one));
  const next = (): Step | undefined => stretch[sent.length];
  const answers = new Answers(next);
  const { toolChoice } = first.request;
  const agent = new Agent({
    model,
    messages,
    instructions: first.request.system,
    tools: recordedTools(first.request, (id, name) => answers.take(id, name)),
    thinkingLevel: first.request.thinks ? "high" : "off",
    protocol: createInProcessClient(createProviders()),
    apiKey: API_KEY,
    ...(toolChoice && { toolChoice }),
    retry: { maxRetries: 0 },
    limits: { maxIdenticalCalls: ROUNDS_OF_ONE_RECORDING },
    // The loop goes on by itself only where no prompt came in between.
    shouldStopAfterTurn: () => {
      const { request } = next() ?? {};
      return !request || newContent(request).length > 0;
    },
  });
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(event));
  await (prompt ? agent.prompt(prompt) : agent.continue());
  for (let step = next(); step && agent.state.error === undefined; step = next()) {
    const content = newContent(step.request);
    if (content.length === 0) break;
    await agent.prompt({ role: "user", content, timestamp: 0 });
  }
  if (sent.length !== stretch.length) {
    result.problems.push(`${sent.length} requests were made of the ${stretch.length} recorded`);
  }
  const last = agent.state.messages.at(-1);
  const refused = last?.role === "assistant" && last.failure?.kind === "refused";
  const { error } = agent.state;
  if (error !== undefined && !refused && stretch.every(({ one }) => one.expected.ok)) {
    result.problems.push(error);
  }
  result.problems.push(
    ...splitRuns(events).flatMap(nestingProblems),
    ...transcriptProblems(agent.state.messages.filter(isLlmMessage)),
  );
  for (const [index, step] of stretch.entries()) {
    const request = sent[index];
    if (request) compare(step, request, model, stretch.slice(0, index), result);
  }
}

/** What the user says at the end of a request. */
function newContent({ turns }: ModelRequest): ReturnType<typeof userContent> {
  const last = turns.at(-1);
  return last?.role === "user" ? userContent(last) : [];
}

function splitRuns(events: readonly AgentEvent[]): AgentEvent[][] {
  const runs: AgentEvent[][] = [];
  for (const event of events) {
    if (event.type === "agent_start") runs.push([]);
    runs.at(-1)?.push(event);
  }
  return runs;
}

/** Results that the next request of a recording holds: by id, else by name, else in order. */
class Answers {
  readonly #next: () => Step | undefined;
  #step: Step | undefined;
  #left: RequestResult[] = [];

  constructor(next: () => Step | undefined) {
    this.#next = next;
  }

  take(id: string, name: string): RequestResult | undefined {
    const step = this.#next();
    if (step !== this.#step) this.#left = [...(step?.request.turns.at(-1)?.results ?? [])];
    this.#step = step;
    const found =
      this.#left.find((result) => result.id === id) ??
      this.#left.find((result) => result.name === name) ??
      this.#left[0];
    this.#left = this.#left.filter((result) => result !== found);
    return found;
  }
}

/** What follows the base in the addresses of each format. */
const ENDPOINTS: Readonly<Record<string, RegExp>> = {
  "anthropic-messages": /\/v1\/messages$/,
  "openai-completions": /\/(chat\/)?completions$/,
  "openai-responses": /\/responses$/,
  "google-generative-ai": /\/models\/[^/]*$/,
  "bedrock-converse-stream": /\/model\/.*$/,
  "bedrock-invoke-stream": /\/model\/.*$/,
  ollama: /\/api\/chat$/,
};

/** The model that was asked, at its service's place on the replay server. */
function modelFor({ one, path, request }: Step, origin: string): Model {
  const known = createModel(one, origin);
  const [place = "", query] = path.split("?");
  const endpoint = ENDPOINTS[known.api];
  const base = endpoint ? place.replace(endpoint, "") : place;
  // Versions that are part of the address stay there; what a format adds itself does not.
  const kept = query !== undefined && known.api.startsWith("openai") ? `?${query}` : "";
  return {
    ...known,
    id: request.model,
    name: request.model,
    provider: findProvider(one) ?? known.provider,
    baseUrl: `${origin}${base}${kept}`,
    reasoning: request.thinks || request.turns.some(({ thinking }) => thinking.length > 0),
  };
}

/** The service that a recorded address belongs to. */
function findProvider(one: Case): string | undefined {
  const host = /^\w+:\/\/([^/]+)/.exec(one.source.url ?? "")?.[1] ?? "";
  if (host.endsWith(".openai.azure.com")) {
    return one.api === "openai-responses" ? "azure-openai-responses" : "azure-openai";
  }
  if (host.endsWith("aiplatform.googleapis.com")) return "google-vertex";
  return SERVICES.find(({ baseUrl }) => baseUrl !== undefined && new URL(baseUrl).host === host)
    ?.id;
}

/** Compares one request of ours with the recorded one. */
function compare(
  step: Step,
  sent: Sent,
  model: Model,
  before: readonly Step[],
  result: ConversationResult,
): void {
  const { one, path, request } = step;
  const ours = readRequest(model.api, sent.body, sent.path);
  const at = `request ${one.source.interaction}`;
  result.requests++;
  const found = [
    ...findDifferences("address", decodeURIComponent(path), decodeURIComponent(sent.path)),
    ...findDifferences("", request, ours),
  ];
  for (const difference of found) {
    const answers = before.map((past) => past.one);
    const situation = { ...difference, one, request, ourRequest: ours, model, answers };
    const allowed = ALLOWED.find(({ applies }) => applies(situation));
    if (allowed) result.used.push(allowed.name);
    else result.problems.push(`${at}: ${shown(difference)}`);
  }
  for (const problem of headerProblems(sent.headers, model, API_KEY)) {
    result.problems.push(`${at}: ${problem}`);
  }
}

const SHOWN_CHARS = 200;

function shown({ path, recorded, ours }: Difference): string {
  const brief = (value: unknown): string =>
    (JSON.stringify(value) ?? "nothing").slice(0, SHOWN_CHARS);
  return `${path}: recorded ${brief(recorded)}, ours ${brief(ours)}`;
}

/** The printout: how much was compared, and which differences were allowed how often. */
export function conversationReport(results: readonly ConversationResult[]): string[] {
  const requests = results.reduce((sum, result) => sum + result.requests, 0);
  const used = results.flatMap((result) => result.used);
  const counts = ALLOWED.map(({ name, why }) => ({
    line: `${name}: ${why}`,
    count: used.filter((other) => other === name).length,
  }));
  return [
    `${results.length} conversations, ${requests} requests compared, differences allowed:`,
    ...counts.flatMap(({ count, line }) =>
      count > 0 ? [`${count}`.padStart(6) + ` ${line}`] : [],
    ),
  ];
}

/** Allowed differences that no conversation needs: to be taken out of the list. */
export function unusedDifferences(results: readonly ConversationResult[]): string[] {
  const used = new Set(results.flatMap((result) => result.used));
  return ALLOWED.map(({ name }) => name).filter((name) => !used.has(name));
}
