import {
  Agent,
  type AgentMessage,
  type AgentRun,
  type Decision,
  defineTool,
  DeniedError,
  type PendingCall,
} from "@gyre/agent";
import {
  call,
  fail,
  say,
  type ScriptAnswer,
  scriptedModel,
  type ScriptPart,
  serviceTool,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** One run of a conversation, and what its reader has to know. */
export interface RandomSegment {
  run: AgentRun;
  /** The transcript before it. */
  history: readonly AgentMessage[];
  /** Whether it goes on after questions were answered. */
  isContinued: boolean;
  /** The answers, by the ids of the calls. */
  decisions: Readonly<Record<string, Decision>>;
}

/** What a random conversation came to. */
export interface RandomOutcome {
  messages: readonly AgentMessage[];
  pending: readonly PendingCall[];
  /** How the last run ended. */
  stop: string;
}

/** Runs of a conversation at most: a person who never decides ends it. */
const MAX_SEGMENTS = 6;
const TEXTS = ["Green.", "It costs 3 euros.", 'äöü 🍵 "quoted"\nline', "", " ", '{"a":'];
const VALUES = [null, 0, -1.5, "text", true, [1, [2]], { a: { b: "ü" } }, [], {}];

/**
 * Plays a random conversation with a real agent: parallel calls, denied, edited and failing ones, responses that
 * are cut off in the middle of arguments, retries, steering, sub-agents. `read` gets every run of
 * it and reads it to its end.
 */
export async function playRandomRun(
  seed: number,
  read: (segment: RandomSegment) => Promise<void>,
): Promise<RandomOutcome> {
  const random = makeRandom(seed);
  const isLikely = (chance: number): boolean => random() < chance;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const agent = makeAgent(random, isLikely, pick);
  let run: AgentRun = agent.run("Go");
  let segment: RandomSegment = { run, history: [], isContinued: false, decisions: {} };
  for (let count = 1; ; count++) {
    await read(segment);
    const { stop } = await run.result();
    const { messages, pending } = agent.state;
    if (stop !== "suspended" || count === MAX_SEGMENTS) return { messages, pending, stop };
    const decisions: Record<string, Decision> = {};
    for (const { toolCall } of pending) {
      const decision = pick<Decision | undefined>([
        { type: "approve" },
        { type: "approve" },
        { type: "approve", args: { value: pick(VALUES) } },
        { type: "deny", reason: "not today" },
        { type: "deny" },
        undefined,
      ]);
      if (decision) decisions[toolCall.id] = decision;
    }
    run = agent.continueRun({ decisions });
    segment = { run, history: messages, isContinued: true, decisions };
  }
}

function makeAgent(
  random: () => number,
  isLikely: (chance: number) => boolean,
  pick: <T>(list: readonly T[]) => T,
): Agent {
  const parameters = { type: "object", properties: { value: {} } } as const;
  const tool = (name: string, more: object, execute: (value: unknown) => unknown) =>
    defineTool({
      name,
      description: name,
      parameters,
      concurrent: true,
      ...more,
      execute: async ({ value }, { update, signal }) => {
        if (isLikely(0.2)) update({ content: [{ type: "text", text: "half" }] });
        if (isLikely(0.3)) await new Promise((resolve) => setImmediate(resolve));
        signal.throwIfAborted();
        return execute(value) as string;
      },
    });
  const helperScript = scriptedModel(() => (isLikely(0.8) ? pick(["Help.", "More."]) : fail("no")));
  const helper = new Agent({
    model: helperScript.model,
    protocol: helperScript,
    retry: { maxRetries: 0 },
  });
  const tools = [
    tool("echo", {}, (value) => value ?? "nothing"),
    tool("content", { concurrent: false }, (value) => ({
      content: [
        { type: "text", text: JSON.stringify(value) ?? "" },
        {
          type: "text",
          text: "two",
          source: { kind: "page", name: "https://tea.example/", mark: "m" },
        },
      ],
      details: { value: value ?? null },
    })),
    tool("fails", {}, () => {
      throw new Error("It is broken.");
    }),
    tool("ask", { needsApproval: true }, (value) => ({ asked: value ?? null })),
    tool("rule", {}, () => "never"),
    helper.asTool({ name: "helper", description: "Helps." }),
  ];
  let ids = 0;
  const makeCall = (): ScriptPart => {
    const name = pick(["echo", "content", "fails", "ask", "rule", "helper", "echo", "missing"]);
    const id = isLikely(0.1) ? "same" : `call_${ids++}`;
    if (isLikely(0.06)) return call(name, '{"value": [1,', id);
    return call(name, name === "helper" ? { prompt: "Do." } : { value: pick(VALUES) }, id);
  };
  const makeParts = (): ScriptPart[] => [
    ...(isLikely(0.3) ? [think(pick(["Hm.", "ä"]), isLikely(0.5) ? { signature: "s" } : {})] : []),
    ...(isLikely(0.1) ? [think("", { signature: "hidden", redacted: true })] : []),
    ...(isLikely(0.6) ? [say(pick(TEXTS))] : []),
    ...(isLikely(0.05) ? [serviceTool("web_search", { input: { q: "tea" }, output: ["a"] })] : []),
    ...Array.from({ length: Math.floor(random() * 4) }, makeCall),
    ...(isLikely(0.1) ? [say("After.")] : []),
  ];
  let turns = 0;
  const script = scriptedModel(
    (): ScriptAnswer => {
      if (turns++ > 5 || isLikely(0.15)) return pick(["The end.", [think("So."), say("End.")]]);
      if (isLikely(0.08))
        return fail("Service at https://up.example/ is full", { kind: "overloaded" });
      if (isLikely(0.06))
        return [...makeParts(), fail("No key for https://up.example/", { kind: "auth" })];
      if (isLikely(0.1)) return [say("Cut"), unfinished(makeCall()), stall()];
      if (isLikely(0.05)) return { parts: makeParts(), stopReason: "length" };
      return [
        ...makeParts(),
        ...(isLikely(0.9) ? [] : [unfinished(makeCall()), fail("Broken.", { kind: "incomplete" })]),
      ];
    },
    { chunkSize: 1 + Math.floor(random() * 9) },
  );
  const agent = new Agent({
    model: script.model,
    protocol: script,
    tools,
    steering: pick(["skip-remaining", "after-batch", "redirect"] as const),
    toolExecution: pick(["auto", "sequential", "parallel"] as const),
    retry: { maxRetries: 2, baseDelayMs: 1, maxDelayMs: 1 },
    limits: { maxTurns: 8 },
    maxContinuations: isLikely(0.5) ? 1 : 0,
    middleware: [
      {
        async tool(invocation, next) {
          if (invocation.toolCall.name === "rule") throw new DeniedError("a rule says so");
          return next(invocation);
        },
      },
    ],
  });
  const [steersAt, abortsAt] = [
    isLikely(0.3) ? 5 + random() * 40 : Infinity,
    isLikely(0.1) ? random() * 60 : Infinity,
  ];
  let count = 0;
  agent.subscribe((event) => {
    count++;
    if (count > steersAt && count < steersAt + 2)
      agent.steer(pick(["Rather black tea.", "Stop that."]));
    if (count > abortsAt && count < abortsAt + 2) agent.abort();
    // A response that stalls is cut off by a person, in the middle of the arguments.
    const isInCall =
      event.type === "message_update" && event.assistantMessageEvent.type === "toolcall_delta";
    if (
      isInCall &&
      event.message.content.some((block) => block.type === "text" && block.text === "Cut")
    ) {
      agent.abort();
    }
  });
  return agent;
}
