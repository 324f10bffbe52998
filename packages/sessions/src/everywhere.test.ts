import {
  Agent,
  type AgentEndEvent,
  type AgentMessage,
  type AgentTool,
  approval,
  defineTool,
  isLlmMessage,
  listCalls,
  type Middleware,
} from "@gyre/agent";
import { validateTranscript } from "@gyre/ai";
import {
  callAll,
  manualClock,
  scriptedModel,
  type ScriptedModel,
  type ScriptStep,
} from "@gyre/ai/testing";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, describe, expect, it } from "vitest";
import { createSession, openSession } from "./file/session-file.ts";
import type { Session } from "./format/types.ts";
import { createJournal, type Journal } from "./journal.ts";
import { temporaryPaths } from "./testing/folder.ts";

// A run with three parallel calls, an approval and steering. The process dies after each entry of
// its file, another one goes on from there.

const newPath = temporaryPaths("everywhere", afterAll);

const FIRST = callAll([
  ["pay", { to: "a" }],
  ["pay", { to: "b" }],
  ["pay", { to: "c" }],
]);
const SECOND = callAll([
  ["sign", { what: "contract" }],
  ["pay", { to: "d" }],
]);
const LAST = "All is done.";

/** What happened outside of the file, over all lives: it is not undone by a crash. */
interface Outside {
  /** The calls whose tool ran, with the number of lines that the file had by then. */
  effects: { id: string; lines: number }[];
  /** Counts the lines of the file. */
  countLines: () => number;
}

function makeOutside(path: string): Outside {
  return { effects: [], countLines: () => readFileSync(path, "utf8").split("\n").length - 1 };
}

interface Life {
  agent: Agent;
  model: ScriptedModel;
  journal: Journal;
}

function tools(outside: Outside): AgentTool[] {
  const effect = (name: string, field: string, concurrent: boolean): AgentTool => ({
    ...defineTool({
      name,
      description: name,
      parameters: { type: "object", properties: { [field]: { type: "string" } } },
      execute: (_args, { id }) => {
        outside.effects.push({ id, lines: outside.countLines() });
        return `${name} done`;
      },
    }),
    concurrent,
  });
  return [effect("pay", "to", true), effect("sign", "what", false)];
}

const asks: Middleware = approval(({ tool }) => (tool.name === "sign" ? "suspend" : "allow"));

async function live(
  session: Session,
  outside: Outside,
  script: readonly ScriptStep[],
): Promise<Life> {
  const context = await session.context();
  const { messages, pending, queued, unfinished } = context;
  const journal = createJournal(session, context);
  const model = scriptedModel(script);
  const agent = new Agent({
    clock: manualClock(),
    protocol: model,
    sink: journal,
    middleware: [asks, journal.middleware],
    onQueueChange: journal.onQueueChange,
    unfinished,
    model: model.model,
    tools: tools(outside),
    messages,
    pending,
    queued,
  });
  return { agent, model, journal };
}

/** The calls whose result has this in its text. */
function findReported(messages: readonly AgentMessage[], text: string): string[] {
  return messages.flatMap((message) =>
    message.role === "toolResult" && JSON.stringify(message.content).includes(text)
      ? [message.toolCallId]
      : [],
  );
}

/** The whole run in one life, as a person drives it. Returns the lines of its file. */
async function undisturbed(): Promise<{ path: string; outside: Outside }> {
  const path = newPath();
  const session = await createSession(path, { cwd: "/w" }, { clock: manualClock() });
  const outside = makeOutside(path);
  const life = await live(session, outside, [FIRST, SECOND, "Signed.", LAST]);
  const { agent, model } = life;
  let isSteered = false;
  agent.subscribe((event) => {
    if (event.type !== "tool_execution_end" || isSteered) return;
    isSteered = true;
    agent.steer("Be quick.");
    agent.followUp("Then rest.");
  });
  expect((await agent.prompt("Pay them, then sign.")).stop).toBe("suspended");
  const end = await decide(life);
  expect(end.stop).toBe("done");
  model.assertComplete();
  await session.close();
  return { path, outside };
}

/** Approves what waits, as a journal's owner does: saved first, then acted on. */
async function decide({ agent, journal }: Life): Promise<AgentEndEvent> {
  const decisions = Object.fromEntries(
    agent.state.pending.map(({ toolCall }) => [toolCall.id, { type: "approve" } as const]),
  );
  await journal.decide(decisions);
  return agent.continue({ decisions });
}

/** Goes on to the end: decides what waits, and says what the model would say next. */
async function goOn(life: Life): Promise<AgentEndEvent | undefined> {
  const { agent } = life;
  let end: AgentEndEvent | undefined;
  for (let rounds = 0; rounds < 4; rounds++) {
    if (agent.state.pending.length > 0) end = await decide(life);
    else if (agent.hasQueuedMessages() || !isDone(agent)) end = await agent.continue();
    else return end;
  }
  return end;
}

function isDone({ state: { messages } }: Agent): boolean {
  const last = messages.at(-1);
  return last === undefined || (last.role === "assistant" && last.stopReason === "stop");
}

/** The answers that a model gives to what it has not answered yet, whatever was answered before. */
function rest(messages: readonly AgentMessage[]): ScriptStep[] {
  const answers = messages.filter(({ role }) => role === "assistant").length;
  return [...[FIRST, SECOND].slice(answers), "Signed.", "One.", "Two.", LAST];
}

describe("a process that dies after each entry", async () => {
  const { path, outside: before } = await undisturbed();
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  const types = lines.map((line) => (JSON.parse(line) as { type: string }).type);

  it("has written what it did, in order", () => {
    expect(types.filter((type) => type === "begin")).toHaveLength(5);
    expect(types.indexOf("pending")).toBeGreaterThan(types.indexOf("begin"));
    expect(types.lastIndexOf("begin")).toBeGreaterThan(types.indexOf("decision"));
    expect(types.filter((type) => type === "queue")).toHaveLength(4);
  });

  it("has a file in which readers that do not know these entries find the same messages", async () => {
    const unknown = newPath();
    // A line without a checksum is as good as one with a right one.
    const renamed = lines.map((line) =>
      line
        .replace(
          /"type":"(?:begin|pending|decision|queue|start|end)"/,
          '"type":"of-a-newer-version"',
        )
        .replace(/,"crc":"[0-9a-f]{8}"}$/, "}"),
    );
    await writeFile(unknown, `${renamed.join("\n")}\n`);
    const [older, known] = await Promise.all(
      [unknown, path].map((each) => openSession(each, { readOnly: true })),
    );
    expect(older?.problems).toEqual([]);
    expect((await older?.context())?.messages).toEqual((await known?.context())?.messages);
    await Promise.all([older?.close(), known?.close()]);
  });

  it.each(lines.map((_, index) => [index + 1, types[index]] as const))(
    "%i lines, the last a %s: goes on, runs no call twice, and runs what was not begun",
    async (count) => {
      const cut = newPath();
      const kept = lines.slice(0, count);
      await writeFile(cut, `${kept.join("\n")}\n`);
      const outside = makeOutside(cut);
      const entries = kept.map((line) => JSON.parse(line) as Record<string, unknown>);
      // What the dead process had done by then.
      const done = before.effects.filter((effect) => effect.lines <= count);
      outside.effects.push(...done);
      const waiting = new Set(
        entries
          .flatMap(({ type, messages }) =>
            type === "queue" ? ((messages ?? []) as { message: AgentMessage }[]) : [],
          )
          .map(({ message }) => JSON.stringify(message)),
      );
      const session = await openSession(cut, { clock: manualClock() });
      const { messages } = await session.context();
      const second = await live(session, outside, rest(messages));
      const end = await goOn(second);
      const { state } = second.agent;
      // Nothing twice.
      const ids = outside.effects.map(({ id }) => id);
      expect(ids).toEqual([...new Set(ids)]);
      // The transcript is one that a service takes.
      expect(validateTranscript(state.messages.filter(isLlmMessage))).toEqual([]);
      if (messages.length > 0) expect(end?.stop ?? "done").toBe("done");
      expect(state.pending).toEqual([]);
      expect(second.agent.hasQueuedMessages()).toBe(false);
      // What was acknowledged is in the transcript, once.
      for (const message of waiting) {
        expect(state.messages.filter((each) => JSON.stringify(each) === message)).toHaveLength(1);
      }
      // What is reported of a call without a result is true: unknown where it had begun, and had or
      // had not its effect. What had not begun runs, unless steering skips it.
      const answered = entries.flatMap(({ type, toolCallId }) =>
        type === "result" ? [toolCallId] : [],
      );
      const begun = entries.flatMap(({ type, toolCallId }) =>
        type === "begin" && !answered.includes(toolCallId) ? [toolCallId] : [],
      );
      expect(findReported(state.messages, "not known")).toEqual(begun);
      expect(findReported(state.messages, "Not started")).toEqual([]);
      const skipped = findReported(state.messages, "Skipped");
      const calls = state.messages.flatMap((message) =>
        message.role === "assistant" ? listCalls(message) : [],
      );
      const without = calls.filter(({ id }) => !ids.includes(id) && !begun.includes(id));
      expect(without.map(({ id }) => id)).toEqual(skipped);
      const open = done.filter(({ id }) => !answered.includes(id));
      expect(begun).toEqual(expect.arrayContaining(open.map(({ id }) => id)));
      await session.close();
      // The file says the same.
      const again = await openSession(cut, { readOnly: true });
      const context = await again.context();
      expect(context.messages).toEqual(state.messages);
      expect(context.pending).toEqual([]);
      expect([...context.queued.steering, ...context.queued.followUp]).toEqual([]);
      await again.close();
    },
  );
});
