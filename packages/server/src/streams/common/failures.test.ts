import { Agent, RunFailedError } from "@gyre/agent";
import { fail, scriptedModel } from "@gyre/ai/testing";
import { afterEach, expect, it, vi } from "vitest";
import { createAgUiRoute } from "../ag-ui/ag-ui-route.ts";
import { createOpenAIRoute } from "../openai/openai-route.ts";
import { RunLog } from "../events/run-log.ts";
import { toResponse } from "../events/to-response.ts";
import { createChatRoute } from "../ui/chat-route.ts";
import type { OnError } from "./failures.ts";

type Body = Readonly<Record<string, unknown>>;
type MakeRoute = (
  createAgent: (body: Body) => Agent,
  onError?: OnError,
) => (request: Request) => Promise<Response>;

const ROUTES: Readonly<Record<string, MakeRoute>> = {
  createChatRoute: (createAgent, onError) =>
    createChatRoute((_request, _chat, body) => createAgent(body), { onError }),
  createAgUiRoute: (createAgent, onError) =>
    createAgUiRoute((_request, body) => createAgent(body), onError ? { onError } : {}),
  createOpenAIRoute: (createAgent, onError) =>
    createOpenAIRoute((_request, body) => createAgent(body), onError ? { onError } : {}),
};
const CASES = Object.entries(ROUTES);
/** All that writes a run to a page, with a function that gets errors. */
const OUTPUTS: readonly (readonly [string, (onError: OnError) => Promise<string>])[] = [
  ...CASES.map(([name, make]) => {
    const write = (onError: OnError): Promise<string> => ask(make(createFailing, onError));
    return [name, write] as const;
  }),
  ["toResponse", (onError) => toResponse(createFailing().run("Hi"), { onError }).text()],
  [
    "toResponse with a log",
    (onError) => toResponse(createFailing().run("Hi"), { onError, log: new RunLog() }).text(),
  ],
];
const FAILED = "https://up.example: there is no key";

function ask(route: (request: Request) => Promise<Response>): Promise<string> {
  const parts = [{ type: "text", text: "Hi" }];
  const messages = [{ id: "1", role: "user", content: "Hi", parts }];
  const ids = { id: "c", threadId: "t", runId: "r" };
  const body = JSON.stringify({ ...ids, messages, stream: true, tea: "green" });
  const request = new Request("http://page.example", { method: "POST", body });
  return route(request).then((response) => response.text());
}

function createFailing(): Agent {
  const model = scriptedModel([fail(FAILED, { kind: "auth" })]);
  return new Agent({ model: model.model, protocol: model });
}

afterEach(() => {
  vi.restoreAllMocks();
});

it.each(CASES)(
  "%s reports to the server why a run failed, and to its client the kind",
  async (_, make) => {
    const errors: unknown[] = [];
    const text = await ask(make(createFailing, (error) => errors.push(error)));
    expect(text).toContain("auth");
    expect(text).not.toContain("up.example");
    expect(errors).toEqual([expect.any(RunFailedError)]);
    expect(String(errors[0])).toContain(FAILED);
  },
);

it.each(OUTPUTS)("%s gives its function why a run failed, once", async (_, write) => {
  const errors: unknown[] = [];
  expect(await write((error) => errors.push(error))).not.toContain("up.example");
  expect(errors).toEqual([expect.any(RunFailedError)]);
});

it.each(["toResponse", "with a log"])("%s gives it why a run did not start", async (kind) => {
  const errors: unknown[] = [];
  const agent = new Agent({ model: "no-such/model" });
  const log = kind === "toResponse" ? {} : { log: new RunLog() };
  const onError: OnError = (error) => void errors.push(error);
  const text = await toResponse(agent.run("Hi"), { onError, ...log }).text();
  expect(text).toMatch(/event: error\n/);
  expect(String(errors)).toContain("no-such/model");
  expect(errors).toHaveLength(1);
});

const DISK_FULL = new Error("The disk of the log is full.");
/** What a program may give, though the type says that nothing is returned. */
const rejectIt: OnError = () => Promise.reject(DISK_FULL) as unknown as void;
it.each(
  OUTPUTS.flatMap(([name, write]) => [
    [name, "throws", write, throwIt] as const,
    [name, "rejects", write, rejectIt] as const,
  ]),
)(
  "%s: a function that %s does not break the stream, and both errors are reported",
  async (...given) => {
    const [, , write, onError] = given;
    const log = vi.spyOn(console, "error").mockReturnValue();
    const text = await write(() => void 0);
    expect(hideNumbers(await write(onError))).toBe(hideNumbers(text));
    await Promise.resolve();
    expect(log.mock.calls).toEqual([
      ["@gyre/server:", FAILED],
      ["@gyre/server:", DISK_FULL],
    ]);
  },
);

/** Times and ids are of each run. */
function hideNumbers(text: string): string {
  return text.replace(/[0-9a-f-]{8,}/g, "N");
}

function throwIt(): never {
  throw DISK_FULL;
}

it.each(CASES)("%s reports to the server what was thrown", async (_, make) => {
  const errors: unknown[] = [];
  const down = new Error("The database at 10.0.0.7 is down.");
  const createAgent = (): Agent => {
    throw down;
  };
  expect(await ask(make(createAgent, (error) => errors.push(error)))).not.toContain("10.0.0.7");
  await ask(
    make(
      () => new Agent({ model: "no-such/model" }),
      (error) => errors.push(error),
    ),
  );
  expect(errors[0]).toBe(down);
  expect(String(errors[1])).toContain("no-such/model");
  expect(errors).toHaveLength(2);
});

it.each(CASES)("%s writes errors to the console unless the program takes them", async (_, make) => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  await ask(make(createFailing));
  expect(log.mock.calls).toEqual([["@gyre/server:", FAILED]]);
});

it.each(CASES)("%s gives the fields of the body, which it has read", async (_, make) => {
  const bodies: Body[] = [];
  const model = scriptedModel(["Hello."]);
  const createAgent = (body: Body): Agent => {
    bodies.push(body);
    return new Agent({ model: model.model, protocol: model });
  };
  expect(await ask(make(createAgent))).toContain("Hello.");
  expect(bodies).toEqual([expect.objectContaining({ tea: "green" })]);
});
