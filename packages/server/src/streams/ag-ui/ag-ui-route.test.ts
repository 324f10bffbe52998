import { Agent, defineTool } from "@gyre/agent";
import { call, fail, say, type ScriptStep, scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { playRandomRun } from "../../testing/random-runs.ts";
import { showTranscript } from "../../testing/shown-run.ts";
import { createAgUiRoute } from "./ag-ui-route.ts";
import { type AgUiEvent, toAgUi } from "./to-ag-ui.ts";

const CASES = countCases(100, 2000, "GYRE_RUNS");

/** Throws where events may not follow each other: what opens closes, and nothing follows the end. */
function checkOrder(events: readonly AgUiEvent[]): void {
  const open = new Set<string>();
  for (const [at, event] of events.entries()) {
    const { type } = event;
    const id = `${type.replace(/_[A-Z]+$/, "")} ${String(event["messageId"] ?? event["toolCallId"] ?? event["stepName"])}`;
    if (type === "RUN_STARTED") expect(at).toBe(0);
    else if (type.startsWith("RUN_")) expect(at).toBe(events.length - 1);
    else if (/_START(?:ED)?$/.test(type)) {
      expect(open.has(id), `${id} is open`).toBe(false);
      open.add(id);
    } else if (/_(?:END|FINISHED)$/.test(type)) expect(open.delete(id), `${id} ends`).toBe(true);
    else if (/_(?:CONTENT|ARGS)$/.test(type)) {
      expect(open.has(id), `${id} grows`).toBe(true);
      expect(event["delta"]).not.toBe("");
    }
  }
  expect([...open]).toEqual([]);
}

it(`has the text, the calls and the results of ${CASES} random runs, in order`, async () => {
  const first = pickSeed();
  for (let seed = first; seed < first + CASES; seed++) {
    const where = `GYRE_SEED=${seed}`;
    await playRandomRun(seed, async ({ run, history }) => {
      const events: AgUiEvent[] = [];
      const stream = toAgUi(run, { threadId: "t", runId: "r", history });
      for await (const event of stream) events.push(JSON.parse(JSON.stringify(event)));
      checkOrder(events);
      const join = (type: string): string =>
        events.flatMap((event) => (event.type === type ? [String(event["delta"])] : [])).join("");
      const { messages } = await run.result();
      const steps = showTranscript(messages);
      expect(join("TEXT_MESSAGE_CONTENT"), where).toBe(steps.map(({ text }) => text).join(""));
      const ids = events.flatMap(({ type, toolCallId }) =>
        type === "TOOL_CALL_START" ? [toolCallId] : [],
      );
      expect(ids, where).toEqual(steps.flatMap(({ calls }) => calls.map(({ id }) => id)));
      const answered = events.filter(({ type }) => type === "TOOL_CALL_RESULT");
      const results = messages.filter(({ role }) => role === "toolResult");
      expect(answered.length, where).toBe(results.length);
      expect(JSON.stringify(events)).not.toContain("up.example");
    });
  }
});

function connect(script: readonly ScriptStep[], secret?: string) {
  const model = scriptedModel(script);
  const paid: number[] = [];
  const refund = defineTool({
    name: "refund",
    description: "Refunds.",
    parameters: { type: "object", properties: { euros: { type: "number" } } },
    needsApproval: true,
    idempotent: true,
    execute: ({ euros = 0 }) => {
      paid.push(euros);
      return "paid";
    },
  });
  const route = createAgUiRoute(
    () => new Agent({ model: model.model, protocol: model, tools: [refund] }),
    secret === undefined ? {} : { secret },
  );
  const ask = async (body: object): Promise<AgUiEvent[]> => {
    const whole = { threadId: "t", runId: "r", ...body };
    const response = await route(
      new Request("http://page.example", { method: "POST", body: JSON.stringify(whole) }),
    );
    if (response.status !== 200) return [{ type: String(response.status) }];
    const events = (await response.text()).trimEnd().split("\n\n");
    return events.map((event): AgUiEvent => JSON.parse(event.slice("data: ".length)));
  };
  return { ask, paid };
}

const SECRET = "a secret made by chance";
const user = { id: "1", role: "user", content: "Give it back." };
const asked = (euros: number) => ({
  id: "2",
  role: "assistant",
  content: "I ask.",
  toolCalls: [
    {
      id: "c1",
      type: "function",
      function: { name: "refund", arguments: JSON.stringify({ euros }) },
    },
  ],
});

async function question(ask: (body: object) => Promise<AgUiEvent[]>): Promise<string> {
  const last: AgUiEvent = (await ask({ messages: [user] })).at(-1) ?? { type: "none" };
  expect(last).toMatchObject({
    type: "RUN_FINISHED",
    outcome: { type: "interrupt", interrupts: [{ reason: "tool_approval", toolCallId: "c1" }] },
  });
  const { interrupts } = last["outcome"] as { interrupts: [{ id: string }] };
  return interrupts[0].id;
}

const script = (): ScriptStep[] => [[say("I ask."), call("refund", { euros: 5 }, "c1")], "Done."];

it("runs what is resolved, and nothing that was not asked", async () => {
  const approved = { status: "resolved", payload: { approved: true } };
  for (const [euros, forge, expected] of [
    [5, (id: string) => id, [5]],
    [5000, (id: string) => id, []],
    [5, () => "c1", []],
  ] as const) {
    const { ask, paid } = connect(script(), SECRET);
    const interruptId = forge(await question(ask));
    const events = await ask({
      messages: [user, asked(euros)],
      resume: [{ interruptId, ...approved }],
    });
    expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
    expect(paid).toEqual(expected);
  }
  const { ask, paid } = connect(script());
  await question(ask);
  await ask({ messages: [user, asked(5)], resume: [{ interruptId: "c1", ...approved }] });
  expect(paid).toEqual([]);
});

it("denies what is not approved", async () => {
  for (const answer of [
    { status: "cancelled" },
    { status: "resolved", payload: { approved: false } },
  ]) {
    const { ask, paid } = connect(script(), SECRET);
    const interruptId = await question(ask);
    const events = await ask({ messages: [user, asked(5)], resume: [{ interruptId, ...answer }] });
    expect(events).toContainEqual(
      expect.objectContaining({
        name: "gyre.outcome",
        value: { toolCallId: "c1", outcome: "denied" },
      }),
    );
    expect(paid).toEqual([]);
  }
});

it("reports failures by their kind, and refuses what it cannot answer", async () => {
  const { ask } = connect([fail("https://up.example is down", { kind: "auth" })]);
  const events = await ask({ messages: [user] });
  expect(events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "auth" });
  expect(JSON.stringify(events)).not.toContain("up.example");
  expect(await ask({ messages: [] })).toEqual([{ type: "400" }]);
  expect(await ask({ messages: [user], threadId: 7 })).toEqual([{ type: "400" }]);
  expect(await ask({ messages: [user, { role: "assistant", content: "Hi" }] })).toEqual([
    { type: "409" },
  ]);
});
