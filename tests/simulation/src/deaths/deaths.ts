import { Agent, type AgentEndEvent, type AgentMessage, isLlmMessage, listCalls } from "@gyre/agent";
import { validateTranscript } from "@gyre/ai";
import { manualClock, scriptedModel, type ScriptedModel } from "@gyre/ai/testing";
import { createJournal, type Journal, MemorySessions } from "@gyre/sessions/memory";
import { IDEMPOTENT, makePlan, makeTools, type Plan } from "./plan.ts";

type Session = Awaited<ReturnType<MemorySessions["create"]>>;
type EntryBody = Parameters<Session["append"]>[0];

/** A tool had its effect, when the session had so many entries. */
interface Effect {
  id: string;
  entries: number;
}

/** A world in which the program dies before and after each of its commits, and what broke in it. */
export interface DeathsResult {
  seed: number;
  deaths: number;
  /** Those after which nothing was lost: their transcripts and last requests are compared. */
  compared: number;
  broken: readonly string[];
}

/** What the second life does not know: the checks have to notice. */
export type Forgotten = "unfinished" | "interrupted" | "queued";

/** More lives than decisions that a plan can have. */
const MOST_ROUNDS = 30;

interface Life {
  agent: Agent;
  model: ScriptedModel;
  journal: Journal;
  /** The last run was cut off. */
  isCutOff: boolean;
  /** Whether the user's message waits, or is in the transcript. */
  hasMessage: (text: unknown) => boolean;
}

/** Runs a plan undisturbed, then once for each death. Deterministic. */
export async function runDeaths(seed: number, forgotten?: Forgotten): Promise<DeathsResult> {
  const plan = makePlan(seed);
  const commits = new Set<number>([0]);
  const session = await newSession();
  const whole: Effect[] = [];
  const life = await live(watchCommits(session, commits), plan, whole);
  await goOn(life);
  const { messages } = life.agent.state;
  const last = JSON.stringify(life.model.calls.at(-1)?.messages);
  const broken: string[] = check(plan, messages, whole, []).map((what) => `undisturbed: ${what}`);
  const bodies = await Promise.all(session.entries.map(({ id }) => session.read(id)));
  let deaths = 0;
  let compared = 0;
  for (const count of commits) {
    const entries = bodies.slice(0, count);
    // The effects that came after the commit have happened when it dies before the next one.
    for (const when of ["after", "before the one after"] as const) {
      const isDone = ({ entries: at }: Effect): boolean =>
        when === "after" ? at < count : at <= count;
      const effects = whole.filter(isDone);
      const next = await newSession();
      for (const body of entries) await next.append(body);
      deaths++;
      const second = await live(next, plan, effects, forgotten);
      await goOn(second);
      const problems = check(plan, second.agent.state.messages, effects, entries);
      const acknowledged = entries.flatMap((entry) =>
        entry.type === "queue" ? (entry.messages ?? []) : [],
      );
      for (const { message } of acknowledged) {
        if (!second.hasMessage(textIn(message))) problems.push("a queued message is lost");
      }
      if (isComparable(messages, second.agent.state.messages)) {
        compared++;
        const { calls } = second.model;
        if (JSON.stringify(second.agent.state.messages) !== JSON.stringify(messages)) {
          problems.push("the transcript is not that of an undisturbed run");
        }
        if (calls.length > 0 && JSON.stringify(calls.at(-1)?.messages) !== last) {
          problems.push("the last request is not that of an undisturbed run");
        }
      }
      for (const what of problems) broken.push(`dies ${when} commit of entry ${count}: ${what}`);
    }
  }
  return { seed, deaths, compared, broken };
}

function newSession(): Promise<Session> {
  return new MemorySessions({ clock: manualClock() }).create({ cwd: "/", id: "s" });
}

/** Notes how many entries there are after each commit: what is appended together is one. */
function watchCommits(session: Session, commits: Set<number>): Session {
  return new Proxy(session, {
    get(target, name) {
      if (name === "append") {
        return async (body: EntryBody) => {
          const entry = await target.append(body);
          commits.add(target.entries.length);
          return entry;
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function live(
  session: Session,
  plan: Plan,
  effects: Effect[],
  forgotten?: Forgotten,
): Promise<Life> {
  const context = await session.context();
  const { messages, pending, queued, unfinished, interrupted } = context;
  const journal = createJournal(session, context);
  const model = scriptedModel(({ messages: sent }) => {
    const answers = sent.filter(({ role }) => role === "assistant").length;
    return plan.turns[answers] ?? `Text ${answers}.`;
  });
  const agent = new Agent({
    clock: manualClock(),
    protocol: model,
    model: model.model,
    sessionId: "s",
    tools: makeTools((id) => void effects.push({ id, entries: session.entries.length })),
    sink: journal,
    middleware: [journal.middleware],
    onQueueChange: journal.onQueueChange,
    ...(forgotten !== "unfinished" && { unfinished }),
    messages,
    pending,
    ...(forgotten !== "queued" && { queued }),
    ...(interrupted && forgotten !== "interrupted" && { interrupted }),
    ...(plan.maxTurns !== undefined && { limits: { maxTurns: plan.maxTurns } }),
  });
  const hasMessage = (text: unknown): boolean =>
    [...agent.queued("steering"), ...agent.queued("followUp")].some(
      ({ message }) => textIn(message) === text,
    ) || agent.state.messages.some((message) => textIn(message) === text);
  agent.subscribe((event) => {
    if (event.type !== "tool_execution_end") return;
    if (event.toolCallId === plan.steersAt && !hasMessage("Steer.")) agent.steer("Steer.");
    if (event.toolCallId === plan.followsAt && !hasMessage("Follow.")) agent.followUp("Follow.");
  });
  // A decision that was not acted on leaves a call open, too.
  const isCutOff =
    interrupted !== undefined ||
    validateTranscript(agent.state.messages.filter(isLlmMessage)).length > 0;
  return { agent, model, journal, isCutOff, hasMessage };
}

function textIn(message: AgentMessage): unknown {
  return message.role === "user" ? message.content : undefined;
}

/** As a program does that starts again: prompts, decides, and continues what was cut off. */
async function goOn({ agent, journal, isCutOff }: Life): Promise<AgentEndEvent | undefined> {
  let end: AgentEndEvent | undefined;
  let mustContinue = isCutOff;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { messages, pending } = agent.state;
    if (pending.length > 0) {
      const decisions = Object.fromEntries(
        pending.map(({ toolCall }) => [toolCall.id, { type: "approve" } as const]),
      );
      await journal.decide(decisions);
      end = await agent.continue({ decisions });
    } else if (messages.length === 0) end = await agent.prompt("Go.");
    else if (mustContinue && (!isAnswered(messages) || agent.hasQueuedMessages())) {
      end = await agent.continue();
    } else return end;
    mustContinue = false;
  }
  throw new Error("The agent does not come to its end.");
}

function isAnswered(messages: readonly AgentMessage[]): boolean {
  const last = messages.at(-1);
  return last?.role === "assistant" && last.stopReason === "stop";
}

function listResults(messages: readonly AgentMessage[], text: string): string[] {
  return messages.flatMap((message) =>
    message.role === "toolResult" && JSON.stringify(message.content).includes(text)
      ? [message.toolCallId]
      : [],
  );
}

/** Nothing was interrupted, the same calls were skipped, and the user said the same. */
function isComparable(one: readonly AgentMessage[], other: readonly AgentMessage[]): boolean {
  const facts = (messages: readonly AgentMessage[]): string =>
    JSON.stringify([
      listResults(messages, "Skipped"),
      ["Steer.", "Follow."].map((text) => messages.some((message) => textIn(message) === text)),
    ]);
  return listResults(other, "Interrupted").length === 0 && facts(one) === facts(other);
}

/** What does not hold of a transcript and of the effects; `entries`: what was written before the death. */
function check(
  plan: Plan,
  messages: readonly AgentMessage[],
  effects: readonly Effect[],
  entries: readonly EntryBody[],
): string[] {
  const problems = validateTranscript(messages.filter(isLlmMessage)).map(
    (problem) => `R8: ${JSON.stringify(problem)}`,
  );
  const nameOf = new Map(plan.calls.map(({ id, name }) => [id, name]));
  const once = effects.map(({ id }) => id).filter((id) => !IDEMPOTENT.has(nameOf.get(id) ?? ""));
  if (new Set(once).size < once.length) problems.push(`a call began twice: ${once.join(" ")}`);
  const results = new Set(entries.flatMap((e) => (e.type === "result" ? [e.toolCallId] : [])));
  const begun = entries.flatMap((entry) =>
    entry.type === "begin" && !results.has(entry.toolCallId) ? [entry.toolCallId] : [],
  );
  const reported = listResults(messages, "Interrupted");
  if (reported.sort().join() !== begun.sort().join()) {
    problems.push(`${reported.join()} are reported as interrupted, ${begun.join()} had begun`);
  }
  const skipped = listResults(messages, "Skipped");
  if (skipped.length > 0 && plan.steersAt === undefined) problems.push("a call was skipped");
  const acted = new Set(effects.map(({ id }) => id));
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const { id } of listCalls(message)) {
      const isExplained = acted.has(id) || skipped.includes(id) || begun.includes(id);
      if (!isExplained) problems.push(`the call ${id} was neither run nor skipped`);
    }
  }
  const turns = messages.filter(({ role }) => role === "assistant").length;
  const isOneRun = !plan.calls.some(({ name }) => name === "sign");
  if (isOneRun && turns > (plan.maxTurns ?? Infinity)) problems.push(`R23: ${turns} turns`);
  return problems;
}
