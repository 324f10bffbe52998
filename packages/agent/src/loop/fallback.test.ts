import { type Failure, type Model } from "@gyre/ai";
import { call, fail, say, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Agent } from "../agent/agent.ts";
import { SinkError } from "../run/emitter.ts";
import { DEFAULT_FALLBACK_ON } from "../run/fallbacks.ts";
import { logging, type LogLine } from "../observe/logging.ts";
import { ANSWER_TOOL } from "../agent/output.ts";
import { checkGrammar } from "../testing/grammar.ts";
import { later, play, type Played, type Setup, start, tool, user } from "../testing/play.ts";
import { answer, asks, empty, injected, ran } from "../testing/render.ts";
import { type OpenTelemetryApi, type TelemetryAttributes, tracing } from "../observe/tracing.ts";
import type { AgentEvent, AgentMessage } from "../contract/types.ts";

function model(id: string, more: Partial<Model> = {}): Model {
  return { id, name: id, api: "scripted", provider: `of-${id}`, ...more };
}

const [a, b, c] = [model("a"), model("b"), model("c")];
const busy = fail("Busy", { kind: "overloaded", status: 529 });
const spent = fail("Nothing left", { kind: "quota", status: 429 });
const keyless = fail("No key", { kind: "auth" });
const begin = ["agent_start", "turn_start", ...injected("Go")];
const end = ["turn_end stop", "agent_end done"];
const failed = ["turn_end error", "agent_end error"];

/** Runs on `a` with `b` and `c` to fall back to by default. */
function playOn(
  script: Setup["script"] & {},
  { config, ...more }: Omit<Setup, "script"> = {},
  ms = 0,
): Promise<Played> {
  return play({ ...more, script, config: { model: a, fallbackModels: [b, c], ...config } }, ms);
}

function asked({ model: script }: Played): string[] {
  return script.calls.map((request) => request.model.id);
}

/** Such as a key store rejects with. */
function missingKey(provider: string): Error {
  const failure: Failure = { kind: "auth", retryable: false };
  return Object.assign(new Error(`There is no key for ${provider}.`), { failure });
}

describe("when the next model is asked", () => {
  it.each([
    ["overloaded", busy, "Busy"],
    ["quota", spent, "Nothing left"],
    ["auth", keyless, "No key"],
  ])("on %s, at once, with an event and nothing else", async (kind, failure, words) => {
    const played = await playOn([failure, "Hello"]);
    expect(played.lines).toEqual([
      ...begin,
      `fallback of-a/a to of-b/b: ${kind} "${words}"`,
      ...answer("Hello"),
      ...end,
    ]);
    expect(played.events).toContainEqual({
      type: "fallback",
      from: { provider: "of-a", id: "a" },
      to: { provider: "of-b", id: "b" },
      kind,
      errorMessage: words,
    });
    expect(asked(played)).toEqual(["a", "b"]);
  });

  it("in the order of the list", async () => {
    const played = await playOn([busy, spent, "Hello"]);
    expect(played.recorder.only("fallback", "retry")).toEqual([
      'fallback of-a/a to of-b/b: overloaded "Busy"',
      'fallback of-b/b to of-c/c: quota "Nothing left"',
    ]);
    expect(asked(played)).toEqual(["a", "b", "c"]);
  });

  it("also when the stream function throws, or its stream breaks", async () => {
    const error = Object.assign(new Error("Full"), { failure: { kind: "overloaded" } });
    const played = await playOn([{ throws: error }, { breaks: error }, "Hello"]);
    expect(asked(played)).toEqual(["a", "b", "c"]);
  });

  it.each<Failure>([
    { kind: "auth", status: 401 },
    { kind: "auth", status: 403 },
    { kind: "bad_request", status: 404 },
    { kind: "unknown" },
    { kind: "rate_limit", retryable: false },
    { kind: "overloaded", retryAfterMs: 1 },
  ])("on %o, without a retry", async (failure) => {
    const played = await playOn([fail("No", failure), "Hello"]);
    expect(played.recorder.only("fallback", "retry")).toEqual([
      `fallback of-a/a to of-b/b: ${failure.kind} "No"`,
    ]);
    expect(asked(played)).toEqual(["a", "b"]);
  });

  it.each<Failure>([
    { kind: "bad_request", status: 400 },
    { kind: "overflow" },
    { kind: "refused" },
    { kind: "hook" },
    { kind: "invalid_transcript" },
  ])("not on %o", async (failure) => {
    const played = await playOn([fail("No", failure)]);
    expect(played.lines).toEqual([...begin, ...empty("error", "No"), ...failed]);
  });

  it.each(["rate_limit", "network", "timeout", "stalled", "incomplete", "empty"] as const)(
    "on %s after two retries",
    async (kind) => {
      const failure = fail("No", { kind });
      const played = await playOn([failure, failure, failure, "Hello"], {}, 3_000);
      expect(played.recorder.only("fallback", "retry")).toEqual([
        `retry 1 after 1000 ms: ${kind} "No"`,
        `retry 2 after 2000 ms: ${kind} "No"`,
        `fallback of-a/a to of-b/b: ${kind} "No"`,
      ]);
      expect(played.end.stop).toBe("done");
    },
  );

  it("as many retries as maxRetries says, where it says so", async () => {
    const slow = fail("Slow down", { kind: "rate_limit" });
    const config = { retry: { maxRetries: 3 } };
    const played = await playOn([slow, slow, slow, slow, "Hello"], { config }, 7_000);
    expect(asked(played)).toEqual(["a", "a", "a", "a", "b"]);
  });

  it.each([11_000, 120_000])("on a limit that asks to wait %i ms, at once", async (ms) => {
    const slow = fail("Slow down.", { kind: "rate_limit", retryAfterMs: ms });
    const played = await playOn([slow, "Hello"]);
    expect(asked(played)).toEqual(["a", "b"]);
    expect(played.recorder.only("retry")).toEqual([]);
  });

  it("a model that was silent for long is not asked again", async () => {
    const playing = start({
      script: [stall(), "Hello"],
      config: { model: a, fallbackModels: [b], watchdog: { contentMs: 30_000 } },
    });
    await playing.clock.advance(30_000);
    const played = await playing.done;
    expect(asked(played)).toEqual(["a", "b"]);
    expect(played.end.stop).toBe("done");
  });

  it("R21: an abort during the wait for a retry asks no other model", async () => {
    const playing = start({
      script: [fail("Slow down", { kind: "rate_limit" })],
      config: { model: a, fallbackModels: [b] },
      onEvent: (event) => {
        if (event.type === "retry") queueMicrotask(() => playing.abort());
      },
    });
    const { end: ended, recorder } = await playing.done;
    expect(ended.stop).toBe("aborted");
    expect(recorder.only("fallback")).toEqual([]);
  });

  it("not while the same model may be retried for another reason", async () => {
    const slow = fail("Slow down", { kind: "rate_limit", status: 429 });
    const played = await playOn([slow, { end: true }, busy, "Hello"], {}, 3_000);
    expect(played.recorder.only("fallback", "retry")).toEqual([
      'retry 1 after 1000 ms: rate_limit "Slow down"',
      'retry 2 after 2000 ms: incomplete "The response ended early."',
      'fallback of-a/a to of-b/b: overloaded "Busy"',
    ]);
    expect(asked(played)).toEqual(["a", "a", "a", "b"]);
  });

  it("the last of the list is retried with waits, and has all of its retries", async () => {
    const slow = fail("Slow down", { kind: "rate_limit" });
    const script = [slow, slow, busy, busy, busy, "Hello"];
    const played = await playOn(script, { config: { fallbackModels: [b] } }, 9_000);
    expect(played.recorder.only("fallback", "retry")).toEqual([
      'retry 1 after 1000 ms: rate_limit "Slow down"',
      'retry 2 after 2000 ms: rate_limit "Slow down"',
      'fallback of-a/a to of-b/b: overloaded "Busy"',
      'retry 1 after 1000 ms: overloaded "Busy"',
      'retry 2 after 2000 ms: overloaded "Busy"',
    ]);
    expect(asked(played)).toEqual(["a", "a", "a", "b", "b", "b"]);
  });

  it("a service that asks for a long wait is not waited for", async () => {
    const long = fail("Busy", { kind: "overloaded", retryAfterMs: 86_400_000 });
    const played = await playOn([long, "Hello"]);
    expect(played.recorder.only("fallback")).toEqual([
      'fallback of-a/a to of-b/b: overloaded "Busy"',
    ]);
  });

  it("R26: not after content was shown; what had arrived is kept", async () => {
    const played = await playOn([[say("Half"), busy]]);
    expect(played.recorder.only("fallback", "retry")).toEqual([]);
    expect(asked(played)).toEqual(["a"]);
    expect(played.end.finalMessage).toMatchObject({
      stopReason: "error",
      errorMessage: "Busy",
      content: [{ type: "text", text: "Half" }],
    });
  });

  it("a model that was tried is not asked again, wherever it is in the list", async () => {
    const elsewhere = model("a", { baseUrl: "https://elsewhere.test" });
    const fallbackModels = [model("a"), b, a, elsewhere, model("b")];
    const played = await playOn([spent, spent, spent], { config: { fallbackModels } });
    expect(played.model.calls.map((request) => request.model)).toEqual([a, b, elsewhere]);
    expect(played.end.stop).toBe("error");
  });

  it("with no list, and with an empty one, all is as it was", async () => {
    for (const config of [{ fallbackModels: [] }, { fallbackModels: [a] }]) {
      const { lines } = await playOn([spent], { config });
      expect(lines).toEqual([...begin, ...empty("error", "Nothing left"), ...failed]);
    }
    const { lines } = await play({ script: [spent] });
    expect(lines).toEqual([...begin, ...empty("error", "Nothing left"), ...failed]);
  });
});

describe("fallbackOn", () => {
  const declined = fail("I will not", { kind: "refused" });

  it("lists kinds and statuses, in place of the default", async () => {
    const config = { fallbackOn: ["refused", 418] as const };
    const teapot = fail("Teapot", { kind: "bad_request", status: 418 });
    const played = await playOn([declined, teapot, "Hello"], { config });
    expect(asked(played)).toEqual(["a", "b", "c"]);
    expect((await playOn([spent], { config })).end.stop).toBe("error");
  });

  it("builds on the default", async () => {
    const config = { fallbackOn: [...DEFAULT_FALLBACK_ON, "refused"] as const };
    const played = await playOn([declined, spent, "Hello"], { config });
    expect(asked(played)).toEqual(["a", "b", "c"]);
  });

  it("a refusal after text was shown stays, whatever it lists", async () => {
    const config = { fallbackOn: ["refused"] as const };
    const played = await playOn([[say("Half"), declined]], { config });
    expect(asked(played)).toEqual(["a"]);
  });

  it("is a function of the failure and the model", async () => {
    const seen: string[] = [];
    const fallbackOn = (failure: Failure, { id }: Model): boolean => {
      seen.push(`${id} ${failure.kind} ${failure.status}`);
      return id === "a";
    };
    const played = await playOn([spent, spent], { config: { fallbackOn } });
    expect(asked(played)).toEqual(["a", "b"]);
    expect(seen).toEqual(["a quota 429", "b quota 429"]);
    expect(played.end.stop).toBe("error");
  });

  it("of nothing: no other model is asked", async () => {
    const played = await playOn([spent], { config: { fallbackOn: [] } });
    expect(played.lines).toEqual([...begin, ...empty("error", "Nothing left"), ...failed]);
  });

  it("R5: one that throws ends the run with its error", async () => {
    const fallbackOn = (): boolean => {
      throw new Error("The rule is broken");
    };
    const played = await playOn([spent], { config: { fallbackOn } });
    expect(played.end.finalMessage?.errorMessage).toBe("The rule is broken");
    expect(played.end.stop).toBe("error");
  });
});

describe("names of models", () => {
  it("an agent looks them up, as it does its own", async () => {
    const script = scriptedModel([busy, "Hello", busy, "Again"]);
    const agent = new Agent({
      protocol: script,
      model: a,
      fallbackModels: ["openai/gpt-5-mini", b],
    });
    await agent.prompt("Go");
    await agent.prompt("Go");
    expect(script.calls.map(({ model: { provider, id } }) => `${provider}/${id}`)).toEqual([
      "of-a/a",
      "openai/gpt-5-mini",
      "of-a/a",
      "openai/gpt-5-mini",
    ]);
  });

  it("a name that fits no model fails before anything is asked", async () => {
    const script = scriptedModel([]);
    const agent = new Agent({ protocol: script, model: a, fallbackModels: ["openai/mini-5"] });
    await expect(agent.prompt("Go")).rejects.toThrow("openai/mini-5");
    expect(script.requests).toBe(0);
  });
});

describe("keys", () => {
  it("getApiKey is asked again for the provider of the next model", async () => {
    const played = await playOn([busy, "Hello"], {
      config: { getApiKey: (provider) => Promise.resolve(`key ${provider}`) },
    });
    expect(played.model.calls.map(({ options }) => options.apiKey)).toEqual([
      "key of-a",
      "key of-b",
    ]);
  });

  it.each(["throws", "rejects"])(
    "where it %s for want of a key, nothing is sent and the next model is asked",
    async (how) => {
      const refuse = (provider: string): Promise<never> => {
        const error = missingKey(provider);
        if (how === "throws") throw error;
        return Promise.reject(error);
      };
      const played = await playOn(["Hello"], {
        config: {
          getApiKey: (provider) => (provider === "of-c" ? "secret" : refuse(provider)),
        },
      });
      expect(played.lines).toEqual([
        ...begin,
        'fallback of-a/a to of-b/b: auth "There is no key for of-a."',
        'fallback of-b/b to of-c/c: auth "There is no key for of-b."',
        ...answer("Hello"),
        ...end,
      ]);
      expect(asked(played)).toEqual(["c"]);
    },
  );

  it("where there is a key for none, the error says so", async () => {
    const played = await playOn([], {
      config: {
        getApiKey: (provider) => {
          throw missingKey(provider);
        },
      },
    });
    expect(played.end.finalMessage).toMatchObject({
      provider: "of-c",
      model: "c",
      failure: { kind: "auth" },
      errorMessage: "There is no key for of-c. Tried before: of-a/a (auth), of-b/b (auth).",
    });
    expect(asked(played)).toEqual([]);
  });

  it("R5: any other throw of getApiKey ends the run", async () => {
    const played = await playOn([], {
      config: {
        getApiKey: () => {
          throw new Error("The key ring is broken");
        },
      },
    });
    expect(played.lines).toEqual([
      ...begin,
      ...empty("error", "The key ring is broken"),
      ...failed,
    ]);
  });

  it("apiKey is not given to another provider", async () => {
    const near = model("near", { provider: "of-a" });
    const config = { apiKey: "secret of a", fallbackModels: [near, b] };
    const played = await playOn([busy, busy, "Hello"], { config });
    expect(played.model.calls.map(({ options }) => options.apiKey)).toEqual([
      "secret of a",
      "secret of a",
      undefined,
    ]);
  });
});

describe("how long the choice holds", () => {
  const twice: ScriptStep[] = [spent, call("x", {}, "1"), call("x", {}, "2"), "Hello"];

  it("for the rest of the run, and the messages carry the model that answered", async () => {
    const played = await playOn(twice, { tools: [tool("x")] });
    expect(asked(played)).toEqual(["a", "b", "b", "b"]);
    expect(played.recorder.only("fallback")).toHaveLength(1);
    const answers = played.transcript.filter((message) => message.role === "assistant");
    expect(answers.map((message) => `${message.provider}/${message.model}`)).toEqual([
      "of-b/b",
      "of-b/b",
      "of-b/b",
    ]);
  });

  it("from there it goes on down the list in a later turn", async () => {
    const script = [spent, call("x", {}, "1"), busy, "Hello"];
    const played = await playOn(script, { tools: [tool("x")] });
    expect(asked(played)).toEqual(["a", "b", "b", "c"]);
    expect(played.lines).toEqual([
      ...begin,
      'fallback of-a/a to of-b/b: quota "Nothing left"',
      ...asks(["x#1"]),
      ...ran("x#1", 'ok "x"'),
      "turn_end toolUse x#1",
      "turn_start",
      'fallback of-b/b to of-c/c: overloaded "Busy"',
      ...answer("Hello"),
      ...end,
    ]);
  });

  it("not for the next run, and the agent's model stays what it was", async () => {
    const script = scriptedModel([spent, "One", spent, "Two"]);
    const agent = new Agent({
      protocol: script,
      model: a,
      fallbackModels: [b],
    });
    await agent.prompt("Go");
    expect(agent.state.model).toBe(a);
    await agent.prompt("Again");
    expect(script.calls.map((request) => request.model.id)).toEqual(["a", "b", "a", "b"]);
    expect(agent.state.error).toBeUndefined();
  });

  it("a prepareTurn that sets a model starts over with it", async () => {
    const script = [spent, spent, call("x", {}, "1"), spent, "Hello"];
    const played = await playOn(script, {
      tools: [tool("x")],
      config: { prepareTurn: () => ({ model: model("d") }) },
    });
    expect(asked(played)).toEqual(["a", "b", "c", "d", "b"]);
  });

  it("one that sets none does not", async () => {
    const played = await playOn(twice, {
      tools: [tool("x")],
      config: { prepareTurn: () => ({ thinkingLevel: "low" }) },
    });
    expect(asked(played)).toEqual(["a", "b", "b", "b"]);
  });

  it("setModel in a run starts over with that model", async () => {
    const script = scriptedModel([spent, call("x", {}, "1"), spent, "Hello"]);
    const swap = tool("x", () => {
      agent.setModel(c);
      return "ok";
    });
    const agent = new Agent({
      protocol: script,
      model: a,
      tools: [swap],
      fallbackModels: [b],
    });
    await agent.prompt("Go");
    expect(script.calls.map((request) => request.model.id)).toEqual(["a", "b", "c", "b"]);
  });
});

describe("when all fail", () => {
  it("the error is that of the last, and names which were tried", async () => {
    const played = await playOn([busy, spent, keyless]);
    expect(played.end.finalMessage).toMatchObject({
      provider: "of-c",
      model: "c",
      stopReason: "error",
      failure: { kind: "auth" },
      errorMessage: "No key Tried before: of-a/a (overloaded), of-b/b (quota).",
    });
    expect(played.end.stop).toBe("error");
    expect(played.transcript).toHaveLength(2);
  });

  it("also after the retries of the last", async () => {
    const played = await playOn(
      [spent, busy, busy],
      {
        config: { fallbackModels: [b], retry: { maxRetries: 1 } },
      },
      1_000,
    );
    expect(played.end.finalMessage?.errorMessage).toBe("Busy Tried before: of-a/a (quota).");
  });

  it("an error after content was shown is left as it is", async () => {
    const played = await playOn([spent, [say("Half"), busy]]);
    expect(played.end.finalMessage?.errorMessage).toBe("Busy");
  });
});

describe("what goes by the model in use", () => {
  const usage = { input: 1_000_000 };
  const cheap = { price: { input: 1, output: 1 } };
  const dear = { price: { input: 9, output: 9 } };

  it("the cost of an answer", async () => {
    const played = await playOn([spent, { parts: ["Hello"], usage }], {
      config: { model: model("a", cheap), fallbackModels: [model("b", dear)] },
    });
    expect(played.end.usage.cost?.total).toBe(9);
  });

  it("R23: maxCostUsd", async () => {
    const costly = { parts: [call("x")], usage };
    const played = await playOn([spent, costly, costly], {
      tools: [tool("x")],
      config: {
        model: model("a", cheap),
        fallbackModels: [model("b", dear)],
        limits: { maxCostUsd: 5 },
      },
    });
    expect(played.end).toMatchObject({ stop: "limit", limit: "maxCostUsd", turns: 1 });
  });

  it("R23: with maxCostUsd, a model of unknown price is not asked, and the error says so", async () => {
    const played = await playOn([spent], {
      config: { model: model("a", cheap), fallbackModels: [b], limits: { maxCostUsd: 5 } },
    });
    expect(asked(played)).toEqual(["a"]);
    expect(played.end.finalMessage?.errorMessage).toMatch(
      /the price of model "b" is not known.*Tried before: of-a\/a \(quota\)\.$/,
    );
  });

  it("R24: a smaller window: the context is compacted for it", async () => {
    const long: AgentMessage[] = Array.from({ length: 6 }, (_, i) => [
      user("word ".repeat(300)),
      answered(`${i}`),
    ]).flat();
    const played = await playOn([busy, "Hello"], {
      messages: long,
      config: {
        model: model("a", { contextWindow: 100_000 }),
        fallbackModels: [model("b", { contextWindow: 1_500 })],
        context: { keepTurns: 1 },
      },
    });
    expect(played.events.map(({ type }) => type).slice(4, 7)).toEqual([
      "fallback",
      "compaction",
      "message_start",
    ]);
    const [first, second] = played.model.calls;
    expect(second?.messages.length).toBeLessThan(first?.messages.length ?? 0);
  });

  it("R24: what one model counts as a token says nothing of the next", async () => {
    const messages = Array.from({ length: 6 }, () => [
      user("word ".repeat(4_000)),
      answered("Yes"),
    ]).flat();
    // Counted much higher than by us: with that, it would be too much for `b`.
    const many = { parts: [call("x", {}, "1")], usage: { input: 72_000 } };
    const played = await playOn([many, many, many, spent, "Hello"], {
      messages,
      tools: [tool("x")],
      config: {
        model: model("a", { contextWindow: 1_000_000 }),
        fallbackModels: [model("b", { contextWindow: 40_000 })],
        context: {},
      },
    });
    expect(asked(played)).toEqual(["a", "a", "a", "a", "b"]);
    expect(played.recorder.only("compaction")).toEqual([]);
  });

  it("the model layer of a middleware, with the retries of each", async () => {
    const seen: string[] = [];
    await playOn(
      [busy, fail("Slow", { kind: "network" }), "Hello"],
      {
        config: {
          middleware: [
            {
              model: (invocation, next) => {
                seen.push(`${invocation.model.id} of ${invocation.run.model.id}`);
                return next();
              },
            },
          ],
        },
      },
      1_000,
    );
    expect(seen).toEqual(["a of a", "b of a", "b of a"]);
  });
});

describe("around it", () => {
  it("typed output comes from the model that answers", async () => {
    const script = scriptedModel([busy, call(ANSWER_TOOL, { city: "Bern" })]);
    const agent = new Agent({
      protocol: script,
      model: a,
      fallbackModels: [b],
    });
    const run = agent.run("Where?", { output: z.object({ city: z.string() }) });
    expect(await run.output()).toEqual({ city: "Bern" });
    expect((await run.result()).finalMessage?.model).toBe("b");
  });

  it("R21: an abort while the event is taken: nothing more is asked", async () => {
    const keys: string[] = [];
    const playing = start({
      script: [busy],
      config: {
        model: a,
        fallbackModels: [b],
        getApiKey: (provider) => {
          keys.push(provider);
          return "key";
        },
      },
      onEvent: (event) => {
        if (event.type === "fallback") playing.abort();
      },
    });
    const { end: ended, model: script } = await playing.done;
    expect(ended.stop).toBe("aborted");
    expect(script.requests).toBe(1);
    expect(keys).toEqual(["of-a"]);
  });

  it("R21: an abort while the answer is awaited is no reason to fall back", async () => {
    const held = later<string>();
    const playing = start({
      script: [() => held.promise],
      config: { model: a, fallbackModels: [b] },
    });
    await playing.clock.advance(1);
    playing.abort();
    const { end: ended, recorder } = await playing.done;
    expect(ended.stop).toBe("aborted");
    expect(recorder.only("fallback")).toEqual([]);
  });

  it("R15: steering that redirects does not wait for the next model's answer", async () => {
    const script = scriptedModel([busy, "Ok"]);
    const agent = new Agent({
      protocol: script,
      model: a,
      fallbackModels: [b],
      steering: "redirect",
    });
    agent.subscribe((event) => {
      if (event.type === "fallback") agent.steer("Rather this");
    });
    await agent.prompt("Go");
    expect(script.calls.map((request) => request.model.id)).toEqual(["a", "b"]);
    expect(script.calls[1]?.messages.at(-1)).toMatchObject({ content: "Rather this" });
  });

  it("R25: a sink that throws on the event ends the run, and nothing more is asked", async () => {
    const playing = start({
      script: [busy],
      config: { model: a, fallbackModels: [b] },
      onEvent: (event) => {
        if (event.type === "fallback") throw new Error("The disk is full");
      },
    });
    await expect(playing.done).rejects.toThrow(SinkError);
    expect(playing.model.requests).toBe(1);
  });

  it("a log says in whose place a model was asked, and why", async () => {
    const lines: LogLine[] = [];
    await playOn([spent, "Hello"], {
      config: { middleware: [logging((line) => lines.push(line))] },
    });
    expect(lines.filter(({ event }) => event === "model_call")).toMatchObject([
      { provider: "of-a", model: "a", is_error: true, error: { kind: "quota" } },
      {
        provider: "of-b",
        model: "b",
        is_error: false,
        fallback: { provider: "of-a", model: "a", kind: "quota" },
      },
    ]);
    expect(lines.some((line) => "fallback" in line && line.model === "a")).toBe(false);
  });

  it("so does a trace", async () => {
    const spans: [string, TelemetryAttributes | undefined][] = [];
    const context = { getValue: () => undefined };
    const span = { setAttributes: () => {}, setStatus: () => {}, end: () => {} };
    const api: OpenTelemetryApi = {
      SpanKind: { INTERNAL: 0, CLIENT: 2 },
      SpanStatusCode: { ERROR: 2 },
      trace: {
        getTracer: () => ({
          startSpan: (name, options) => {
            spans.push([name, options?.attributes]);
            return span;
          },
        }),
        setSpan: () => context,
      },
      context: { active: () => context, with: (_context, run) => run() },
    };
    await playOn([spent, "Hello"], { config: { middleware: [tracing(api)] } });
    expect(spans.map(([name]) => name)).toEqual(["invoke_agent", "chat a", "chat b"]);
    expect(spans[1]?.[1]).not.toHaveProperty("gyre.fallback.from");
    expect(spans[2]?.[1]).toMatchObject({
      "gyre.fallback.from": "of-a/a",
      "gyre.fallback.kind": "quota",
    });
  });

  it("R2: the event stands where a retry does", async () => {
    const { events } = await playOn([busy, "Hello"]);
    const fallback = events.find(({ type }) => type === "fallback");
    const without = events.filter((event) => event !== fallback);
    const allowed = without.map((_, place) => {
      const moved = fallback ? without.toSpliced(place, 0, fallback) : without;
      return isInOrder(moved);
    });
    const types = without.map(({ type }) => type);
    // After the prompt, or before it where a turn has none; never once the answer has begun.
    const answerAt = types.lastIndexOf("message_start");
    expect(allowed.indexOf(true)).toBeGreaterThan(types.indexOf("message_start"));
    expect(allowed.lastIndexOf(true)).toBe(answerAt);
  });
});

function isInOrder(events: readonly AgentEvent[]): boolean {
  try {
    checkGrammar(events);
    return true;
  } catch {
    return false;
  }
}

function answered(text: string): AgentMessage {
  return {
    role: "assistant",
    api: "scripted",
    provider: "of-a",
    model: "a",
    usage: {},
    timestamp: 0,
    stopReason: "stop",
    content: [{ type: "text", text }],
  };
}
