import { describe, expect, it } from "vitest";
import { complete } from "./client.ts";
import { ApiRegistry, createInProcessClient } from "./registry.ts";
import { scriptedModel, scriptedModelInfo as model } from "../testing/scripted.ts";
import { manualClock } from "../testing/manual-clock.ts";

const { stream } = scriptedModel(() => "Hello");
const context = { messages: [{ role: "user" as const, content: "Go", timestamp: 0 }] };

function createRegistry(...apis: string[]): ApiRegistry {
  const registry = new ApiRegistry();
  for (const api of apis) registry.register({ api, stream });
  return registry;
}

describe("ApiRegistry", () => {
  it("gives back what was registered, by name and in order", () => {
    const registry = createRegistry("b", "a");
    expect(registry.get("a")).toEqual({ api: "a", stream });
    expect(registry.get("c")).toBeUndefined();
    expect(registry.list().map(({ api }) => api)).toEqual(["b", "a"]);
  });

  it("a name that is taken is an error, and the first one stays", () => {
    const registry = createRegistry("a");
    expect(() => registry.register({ api: "a", stream: () => Promise.reject() })).toThrow(
      'The api "a" is registered already.',
    );
    expect(registry.get("a")?.stream).toBe(stream);
  });
});

describe("createInProcessClient", () => {
  it("asks the wire that the model names", async () => {
    const client = createInProcessClient(createRegistry("other", "scripted"));
    expect((await complete(client, model, context)).stopReason).toBe("stop");
  });

  it("knows a wire that was registered later", async () => {
    const registry = new ApiRegistry();
    const client = createInProcessClient(registry);
    registry.register({ api: "scripted", stream });
    expect((await complete(client, model, context)).stopReason).toBe("stop");
  });

  it("a wire that is not there is an error event with a near name, or all names", async () => {
    const failed = async (...apis: string[]): Promise<unknown> =>
      complete(createInProcessClient(createRegistry(...apis)), model, context, {
        clock: manualClock(5),
      });
    const message = {
      role: "assistant",
      content: [],
      api: "scripted",
      provider: "scripted",
      model: "scripted",
      usage: {},
      stopReason: "error",
      failure: { kind: "bad_request", retryable: false },
      timestamp: 5,
    };
    const text = 'No api "scripted" is registered, which model "scripted" needs.';
    expect(await failed("scriptet", "zzz")).toEqual({
      ...message,
      errorMessage: `${text} Did you mean scriptet?`,
    });
    expect(await failed("anthropic-messages", "zzz")).toEqual({
      ...message,
      errorMessage: `${text} Registered: anthropic-messages, zzz.`,
    });
    expect(await failed()).toEqual({ ...message, errorMessage: `${text} Registered: none.` });
  });
});
