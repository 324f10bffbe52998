import { describe, expect, it } from "vitest";
import type { AssistantMessage, Message, Tool } from "../messages/messages.ts";
import {
  type FakeAnswer,
  fakeService,
  sendRequest,
  inPieces,
  utf8,
} from "../testing/fake-service.ts";
import { FORMATS } from "./testing/formats.ts";

const TOOLS: readonly Tool[] = [
  { name: "read_file", description: "Reads", parameters: { type: "object", properties: {} } },
];

function toBytes({ body = "" }: FakeAnswer): Uint8Array {
  const pieces = typeof body === "string" || body instanceof Uint8Array ? [body] : body;
  return Buffer.concat(pieces.map((piece) => (typeof piece === "string" ? utf8(piece) : piece)));
}

const CASES = FORMATS.flatMap((format) =>
  format.models.map((model) => ({ ...format, id: model.id, model })),
);

describe.each(CASES)("a response of $id over $api", ({ create, model, respond }) => {
  const answer = respond(7, btoa("a seal"), model);
  const bytes = toBytes(answer);
  const ask = async (more: FakeAnswer = {}): Promise<AssistantMessage> => {
    const service = fakeService({ ...answer, ...more });
    const { message } = await sendRequest(create, model, service, { tools: TOOLS });
    return { ...message, timestamp: 0 };
  };

  it("has its text and its call", async () => {
    const { content, stopReason } = await ask();
    expect(stopReason).toBe("toolUse");
    expect(content).toContainEqual(expect.objectContaining({ type: "text", text: "Said #7#" }));
    expect(content).toContainEqual(
      expect.objectContaining({
        type: "toolCall",
        name: "read_file",
        id: expect.stringMatching(/./),
      }),
    );
  });

  it("is the same however the network splits it", async () => {
    const whole = await ask();
    for (const lengths of [[1], [7], [64, 3]]) {
      expect(await ask({ body: [...inPieces(bytes, lengths)] })).toEqual(whole);
    }
  });

  it("is incomplete wherever it is cut, or complete to the letter", async () => {
    const whole = await ask();
    for (let length = 0; length < bytes.length; length += 23) {
      const { content, failure, stopReason } = await ask({ body: bytes.subarray(0, length) });
      if (stopReason === "error") expect(failure).toEqual({ kind: "incomplete", retryable: true });
      else
        expect({ content, stopReason }).toEqual({
          content: whole.content,
          stopReason: whole.stopReason,
        });
    }
  });

  const text = Buffer.from(bytes).toString();
  const isSse = text.startsWith("data:") || text.startsWith("event:");
  const stray = {
    error: { code: 499, message: "The operation was stopped.", status: "STOPPED" },
  };

  it.runIf(isSse).each([
    ["on a line", JSON.stringify(stray)],
    ["on several lines", JSON.stringify(stray, undefined, 2)],
    ["in a list", JSON.stringify([stray])],
    ["with CRLF", JSON.stringify(stray, undefined, 2).replaceAll("\n", "\r\n")],
  ])("is an error where an error object %s stands between its events", async (_, error) => {
    const events = text.split(/(?<=\n\n)/);
    for (let before = 1; before < events.length; before++) {
      const body = [...events.slice(0, before), `${error}\n\n`, ...events.slice(before)].join("");
      for (const lengths of [[body.length], [5]]) {
        const message = await ask({ body: [...inPieces(utf8(body), lengths)] });
        expect(message.stopReason).toBe("error");
        expect(message.errorMessage).toContain("The operation was stopped.");
      }
    }
    const cut = await ask({ body: `${events.slice(0, 2).join("")}${error}` });
    expect(cut.errorMessage).toContain("The operation was stopped.");
  });

  it.each([
    ["user", { role: "user", content: [{ type: "video", data: "" }], timestamp: 0 }],
    [
      "assistant",
      {
        role: "assistant",
        content: [{ type: "video" }],
        api: "",
        provider: "",
        model: "",
        usage: {},
        stopReason: "stop",
        timestamp: 0,
      },
    ],
  ])("is not asked for with content of an unknown type of the %s", async (_, strange) => {
    const { stream } = create({ fetch: () => expect.unreachable() });
    const messages = [strange as unknown as Message];
    const { errorMessage, failure } = await (
      await stream(model, { messages }, { apiKey: "test-key-0123456789:test-key-0123456789" })
    ).result();
    expect(errorMessage).toBe(
      'A message has content of the type "video", which is not known. Take it out, or write it as text.',
    );
    expect(failure).toMatchObject({ kind: "bad_request", retryable: false });
  });

  it.each([
    [401, "auth"],
    [429, "rate_limit"],
    [503, "overloaded"],
  ])("with status %i is a failure of kind %s", async (status, kind) => {
    const { failure } = await ask({ status, body: '{"error":{"message":"No."}}' });
    expect(failure).toMatchObject({ kind, status });
  });
});
