import {
  floorLoop,
  type FloorMessage,
  type FloorTool,
  type RawEvent,
} from "../../src/library/floor.ts";
import { readBare } from "../../src/library/bare-read.ts";
import { type HttpWork, type Outcome, type Peer, type Plain, type Work } from "../peer.ts";
import { Tally } from "../tally.ts";

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
  const tally = new Tally();
  const messages = [...(work.history ?? []).map(toFloor), toFloor({ role: "user", text: "go" })];
  const tools = Object.fromEntries(
    (work.tools ?? []).map(({ name, run }): [string, FloorTool] => [name, (input) => run(input)]),
  );
  let asked = 0;
  const model = (): AsyncIterable<RawEvent> => answer(work, asked++);
  for await (const event of floorLoop(messages, model, tools)) {
    if (event.type === "message_update" && event.kind === "delta") {
      if (event.message.content[event.contentIndex]?.type === "text") tally.text(event.delta);
      else tally.argument();
    }
    const wait = work.event?.();
    if (wait) await wait;
  }
  return { messages, outcome: tally.outcome(() => messages.map(toPlain)) };
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

function read(
  { baseUrl, signal, text }: HttpWork,
  path: string,
  textOf: (event: never) => string | undefined,
): Promise<void> {
  const onEvent = (event: never): void => {
    const delta = textOf(event);
    if (delta !== undefined) text(delta);
  };
  return readBare(`${baseUrl}${path}`, onEvent, signal);
}
