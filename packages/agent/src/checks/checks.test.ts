import { scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent, generate } from "../index.ts";

const make = (options: object): Agent => new Agent(options);

describe("a name from another library", () => {
  it.each<[object, RegExp]>([
    [{ maxOutputTokens: 9 }, /no option "maxOutputTokens": write maxTokens\.$/],
    [
      { extraBody: {} },
      /no option "extraBody": write onPayload, which can add it to the request\.$/,
    ],
    [{ stop: ["."] }, /no option "stop": write stopSequences\.$/],
    [
      { serviceTier: "flex" },
      /no option "serviceTier": write providerOptions, under the id of the service/,
    ],
    [
      { onFinish: () => {} },
      /no option "onFinish": write agent\.subscribe\(\(event\) => \.\.\.\), for agent_end\.$/,
    ],
    [{ prepareStep: () => {} }, /no option "prepareStep": write prepareTurn/],
    [{ maxRetries: 2 }, /no option "maxRetries": write retry: \{ maxRetries \}\.$/],
    [{ modelSettings: {} }, /no option "modelSettings": write temperature, maxTokens, toolChoice/],
    [{ beforeToolCall: () => {} }, /no option "beforeToolCall": write middleware: \[\{ tool \}\]/],
    [{ retry: { attempts: 2 } }, /no option "attempts" of retry: write maxRetries\.$/],
    [{ retry: { maxRetry: 2 } }, /no option "maxRetry" of retry/],
    [{ context: { trigger: 9 } }, /no option "trigger" of context: write triggerTokens\.$/],
    [{ middleware: [{ tol: () => {} }] }, /no option "tol" of middleware. Did you mean tool\?$/],
    [{ middleware: [{ wrapStream: () => {} }] }, /"wrapStream" of middleware: write model\.$/],
  ])("in new Agent(%j) is answered with what to write", (options, text) => {
    expect(() => make(options)).toThrow(text);
  });

  it("in asTool() is answered with what to write", () => {
    const options = { name: "a", description: "A.", schema: {} };
    expect(() => new Agent().asTool(options)).toThrow(
      /no option "schema" of asTool: write input, output\.$/,
    );
  });
});

describe("what is advised is what has an effect", () => {
  it.each<[object, RegExp]>([
    [{ abortSignal: 1 }, /no option "abortSignal" of new Agent: write signal, of prompt\(\)\.$/],
    [{ signal: 1 }, /no option "signal" of new Agent: write signal, of prompt\(\)\.$/],
    [{ schema: {} }, /no option "schema" of new Agent: write output, of prompt\(\)\.$/],
    [{ output: {} }, /no option "output" of new Agent: write output, of prompt\(\)\.$/],
  ])("new Agent(%j) leads to prompt()", (options, text) => {
    expect(() => make(options)).toThrow(text);
  });

  it.each<[object, RegExp]>([
    [
      { systemPrompt: "Be brief." },
      /"systemPrompt" of prompt: write instructions, of new Agent\(\), or call setSystemPrompt\(\)\.$/,
    ],
    [{ instructions: "Be brief." }, /"instructions" of prompt: .* or call setSystemPrompt\(\)\.$/],
    [{ model: "openai/gpt-5" }, /"model" of prompt: .* or call setModel\(\)\.$/],
    [
      { maxRetries: 1 },
      /"maxRetries" of prompt: write retry: \{ maxRetries \}, of new Agent\(\)\.$/,
    ],
    [{ output: { schema: {} } }, /`output` is the schema itself: write output: schema\.$/],
  ])("prompt() with %j leads to where it belongs", async (options, text) => {
    const script = scriptedModel(["Hi"]);
    const agent = new Agent({ model: script.model, protocol: script });
    await expect(agent.prompt("Hi", options as never)).rejects.toThrow(text);
    expect(() => agent.continueRun(options as never)).toThrow(/no option|`output` is/);
    expect(script.calls).toEqual([]);
  });

  it("generate() has the options of both", async () => {
    const script = scriptedModel([]);
    const start = { model: script.model, protocol: script, prompt: "Hi" };
    await expect(generate({ ...start, abortSignal: 1 } as never)).rejects.toThrow(
      /no option "abortSignal": write signal\.$/,
    );
    await expect(generate({ ...start, output: { schema: {} } } as never)).rejects.toThrow(
      /write output: schema/,
    );
  });
});

it("names that are near to none, and fields of a middleware, are left alone", () => {
  class Counter {
    readonly mode = "fast";
    tool(_call: unknown, next: () => Promise<never>): Promise<never> {
      return next();
    }
  }
  const more = { retry: { why: "x" }, context: { page: 1 } };
  expect(() => make({ ...more, middleware: [new Counter()] })).not.toThrow();
});
