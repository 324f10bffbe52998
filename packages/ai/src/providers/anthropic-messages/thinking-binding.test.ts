import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Context, Message, Model, Tool } from "../../messages/messages.ts";
import type { StreamOptions } from "../../client/client.ts";
import { createPrompt, createResult, sse } from "../../testing/fake-service.ts";
import { anthropicMessages } from "./index.ts";
import { fixture } from "./request-check.ts";

const BINDING_BETA = "thinking-binding-controls-2026-08-01";

interface Block {
  type: string;
  signature?: string;
  cache_control?: unknown;
}

interface Body {
  model: string;
  system?: unknown;
  tools?: unknown;
  messages: { role: string; content: Block[] }[];
  thinking?: { type: string; block_binding?: { prefix_mismatch_behavior?: string } };
}

/** All that is before a block: the service does not compare where it keeps a cache. */
function signPrefix({ system, tools }: Body, before: unknown): string {
  const prefix = JSON.stringify([system, tools, before], (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return createHash("sha256").update(prefix).digest("base64");
}

/** What the service says of thinking that came back: the places where it does not fit any more. */
function findMismatches(body: Body): string[] {
  const places: string[] = [];
  for (const [at, { content }] of body.messages.entries()) {
    for (const [index, { type, signature }] of content.entries()) {
      if (type !== "thinking") continue;
      const before = [body.messages.slice(0, at), content.slice(0, index)];
      if (signature !== signPrefix(body, before)) places.push(`messages.${at}.content.${index}`);
    }
  }
  return places;
}

/** A service that signs thinking with all that is before it, and rejects it behind anything else. */
function bindingService(): { fetch: typeof fetch; bodies: Body[]; problems: string[] } {
  const bodies: Body[] = [];
  const problems: string[] = [];
  const answer: typeof fetch = async (_, init) => {
    const body: Body = JSON.parse(typeof init?.body === "string" ? init.body : "{}");
    bodies.push(body);
    problems.push(...fixture.check({ ...body }, body.model));
    const { block_binding, type } = body.thinking ?? {};
    const drops = block_binding?.prefix_mismatch_behavior === "drop_block";
    if (block_binding && type !== "adaptive") return reject("block_binding: not permitted");
    if (drops && !new Headers(init?.headers).get("anthropic-beta")?.includes(BINDING_BETA)) {
      return reject("block_binding: Extra inputs are not permitted");
    }
    const [first] = drops ? [] : findMismatches(body);
    if (first !== undefined) return reject(`${first}: The block is bound to another conversation.`);
    return new Response(sse(...respond(signPrefix(body, [body.messages, []]), bodies.length)), {
      headers: { "content-type": "text/event-stream" },
    });
  };
  return { fetch: answer, bodies, problems };
}

function reject(message: string): Response {
  const error = { type: "invalid_request_error", message };
  return Response.json({ type: "error", error }, { status: 400 });
}

function respond(signature: string, n: number): object[] {
  return [
    { type: "message_start", message: { id: `msg_${n}`, content: [] } },
    ...[
      { type: "thinking", thinking: `Thought ${n}`, signature },
      { type: "tool_use", id: `toolu_${n}`, name: "look", input: {} },
    ].flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
    { type: "message_stop" },
  ];
}

const look: Tool = { name: "look", description: "Looks.", parameters: { type: "object" } };
const find: Tool = { name: "find", description: "Finds.", parameters: { type: "object" } };

function createModel(id: string): Model {
  return { id, name: id, api: "anthropic-messages", provider: "anthropic", maxTokens: 64_000 };
}

/** A conversation that goes on, gets another tool, is compacted, and gets another prompt. */
async function converse(
  id: string,
  options: StreamOptions,
): Promise<ReturnType<typeof bindingService>> {
  const service = bindingService();
  const { stream } = anthropicMessages({ fetch: service.fetch });
  let messages: Message[] = [createPrompt("Look.")];
  const send = async (more: Partial<Context>): Promise<void> => {
    const context = { systemPrompt: "Be brief.", tools: [look], ...more, messages };
    const answer = await stream(createModel(id), context, { apiKey: "key", ...options });
    for await (const _ of answer);
    const message = await answer.result();
    expect([message.stopReason, message.errorMessage]).toEqual(["toolUse", undefined]);
    const [call] = message.content.filter(({ type }) => type === "toolCall");
    if (call?.type !== "toolCall") throw new Error("There is no call.");
    messages = [...messages, message, createResult(call.id, [{ type: "text", text: "Seen." }])];
  };
  await send({});
  await send({});
  await send({ tools: [look, find] });
  await send({ tools: [look, find] });
  messages = [createPrompt("(A summary of what was before.)"), ...messages.slice(-2)];
  await send({ tools: [look, find] });
  await send({ tools: [look, find], systemPrompt: "Be long." });
  return service;
}

describe("thinking that is bound to what was before it", () => {
  it.each([
    ["claude-sonnet-5-5", "high", "adaptive"],
    ["claude-sonnet-5-5", "off", "between_tools"],
    ["claude-haiku-5-5", "off", "disabled"],
    ["claude-opus-5-5", "off", "adaptive"],
    ["claude-fable-5-1", "xhigh", "adaptive"],
    ["claude-new-9", "low", "adaptive"],
  ] as const)(
    "of %s at %s is no error after a compaction or other tools",
    async (id, level, type) => {
      const { bodies, problems } = await converse(id, { thinkingLevel: level });
      expect(bodies.map(({ thinking }) => thinking?.type)).toEqual(Array(6).fill(type));
      expect(problems).toEqual([]);
    },
  );

  it("is sent back where the service can leave it out itself, or nothing before it has changed", async () => {
    const count = ({ messages }: Body): number =>
      messages.flatMap(({ content }) => content).filter((block) => block.type === "thinking")
        .length;
    const on = await converse("claude-sonnet-5-5", { thinkingLevel: "high" });
    expect(on.bodies.map(count)).toEqual([0, 1, 2, 3, 1, 2]);
    const off = await converse("claude-sonnet-5-5", { thinkingLevel: "off" });
    // What the model notes between calls comes as thinking: of the fourth, the third note still fits.
    expect(off.bodies.map(count)).toEqual([0, 1, 0, 1, 0, 0]);
    const none = await converse("claude-haiku-5-5", { thinkingLevel: "off" });
    expect(none.bodies.map(count)).toEqual([0, 0, 0, 0, 0, 0]);
  });
});
