import {
  floorLoop,
  type FloorMessage,
  type FloorTool,
  type RawEvent,
} from "../../src/library/floor.ts";
import { createParser } from "eventsource-parser";
import { type HttpWork, type Outcome, type Peer, type Plain, type Work } from "../peer.ts";

/** Not a library: the least that the job costs. See `../../src/library/floor.ts` for what it lacks. */
const floor: Peer = {
  name: "floor",
  imports: [],
  run: async (work) => (await converse(work)).outcome,
  idle: async (work) => (await converse(work)).messages,
  anthropic: (work) =>
    read(work, "/v1/messages", (event: { delta?: { text?: string } }) => event.delta?.text),
  openai: (work) =>
    read(
      work,
      "/chat/completions",
      (event: { choices?: { delta?: { content?: string } }[] }) =>
        event.choices?.[0]?.delta?.content,
    ),
};
export default floor;

async function converse(work: Work): Promise<{ messages: FloorMessage[]; outcome: Outcome }> {
  const messages = [...(work.history ?? []).map(toFloor), toFloor({ role: "user", text: "go" })];
  const tools = Object.fromEntries(
    (work.tools ?? []).map(({ name, run }): [string, FloorTool] => [name, (input) => run(input)]),
  );
  let asked = 0;
  const model = (): AsyncIterable<RawEvent> => answer(work, asked++);
  let [textDeltas, textChars, argumentDeltas] = [0, 0, 0];
  for await (const event of floorLoop(messages, model, tools)) {
    if (event.type === "message_update" && event.kind === "delta") {
      if (event.message.content[event.contentIndex]?.type === "text") {
        textDeltas++;
        textChars += event.delta.length;
      } else argumentDeltas++;
    }
    const wait = work.event?.();
    if (wait) await wait;
  }
  const outcome = {
    textDeltas,
    textChars,
    argumentDeltas,
    get messages() {
      return messages.map(toPlain);
    },
  };
  return { messages, outcome };
}

async function* answer(work: Work, nth: number): AsyncGenerator<RawEvent> {
  for await (const parts of work.answer(nth)) {
    for (const part of parts) yield part;
  }
  yield { type: "end" };
}

function toFloor({ role, text, calls = [], answers }: Plain): FloorMessage {
  return {
    role: role === "tool" ? "toolResult" : role,
    content: [
      { type: "text", text },
      ...calls.map(({ id, name, input }) => ({
        type: "toolCall" as const,
        id,
        name,
        json: JSON.stringify(input),
        arguments: input,
      })),
    ],
    ...(answers === undefined ? {} : { toolCallId: answers }),
  };
}

function toPlain({ role, content, toolCallId }: FloorMessage): Plain {
  const calls = content.filter((block) => block.type === "toolCall");
  return {
    role: role === "toolResult" ? "tool" : role,
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    ...(calls.length === 0
      ? {}
      : { calls: calls.map(({ id, name, arguments: input }) => ({ id, name, input })) }),
    ...(toolCallId === undefined ? {} : { answers: toolCallId }),
  };
}

/** What reading a stream takes at the least: fetch, a parser of the format, and JSON. */
async function read(
  { baseUrl, signal, text }: HttpWork,
  path: string,
  textOf: (event: never) => string | undefined,
): Promise<void> {
  const parser = createParser({
    onEvent({ data }) {
      const delta = data === "[DONE]" ? undefined : textOf(JSON.parse(data) as never);
      if (delta !== undefined) text(delta);
    },
  });
  const response = await fetch(`${baseUrl}${path}`, {
    method: "POST",
    body: "{}",
    ...(signal ? { signal } : {}),
  });
  if (!response.body) throw new Error("The server sent no body.");
  const decoder = new TextDecoder();
  for await (const piece of response.body) parser.feed(decoder.decode(piece, { stream: true }));
}
