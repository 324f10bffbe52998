import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Random } from "@gyre/durable/testing";

/** A model service whose answers follow from the conversation: every server gets the same. */
export interface ModelService {
  readonly url: string;
  /** Requests so far. */
  readonly requests: number;
  close(): Promise<void>;
}

interface SentMessage {
  role: string;
  content: string | readonly { type: string; text?: string }[];
}

/** What a prompt asks for. */
export interface Task {
  /** Identifies it, and its effect. */
  readonly id: string;
  readonly words: number;
  /** The tool that it is done with: one of the server, or one of the client. */
  readonly tool?: TaskTool;
}

export type TaskTool = "shell" | "note";

export function formatTask({ id, words, tool }: Task): string {
  return `Task ${id}: ${words} words${tool ? `, with the ${tool}` : ""}.`;
}

function parseTask(text: string): Task | undefined {
  const [, id, words, tool] = /^Task (\S+): (\d+) words(?:, with the (\w+))?\.$/m.exec(text) ?? [];
  if (id === undefined) return undefined;
  const known = tool === "shell" || tool === "note";
  return { id, words: Number(words), ...(known && { tool }) };
}

/** The text of the answer to a task, the same every time. */
export function composeAnswer({ id, words }: Task): string {
  const random = new Random(`words-${id}`);
  const pick = (): string =>
    random.pick(["tea", "leaf", "Wasser", "кипяток", "急須", "🍵", '"cup"']);
  return Array.from({ length: words }, (_, nth) => `${nth}:${pick()}`).join(" ");
}

/** Speaks the Messages API; a delta every few milliseconds. */
export async function startModelService(seed: number): Promise<ModelService> {
  let requests = 0;
  const random = new Random(`pace-${seed}`);
  const server = createServer((request, response) => {
    requests++;
    answer(request, response, random).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  random: Random,
): Promise<void> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  const { messages = [] }: { messages?: readonly SentMessage[] } = JSON.parse(body || "{}");
  const at = messages.findLastIndex(({ role, content }) => role === "user" && readTask(content));
  const task = at < 0 ? undefined : readTask(messages[at]?.content ?? "");
  const isCalled = messages.slice(at + 1).some(({ role }) => role === "assistant");
  response.writeHead(200, { "content-type": "text/event-stream" });
  const put = (event: { type: string; [field: string]: unknown }): void =>
    void response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  const usage = { input_tokens: 10, output_tokens: 1 };
  put({
    type: "message_start",
    message: {
      ...{ id: "msg", type: "message", role: "assistant", model: "claude", content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage },
    },
  });
  const usesTool = task?.tool !== undefined && !isCalled;
  const [block, deltas] = usesTool ? describeCall(task.id, task.tool) : describeText(task);
  put({ type: "content_block_start", index: 0, content_block: block });
  for (const delta of deltas) {
    if (response.destroyed) return;
    put({ type: "content_block_delta", index: 0, delta });
    const pauseMs = random.below(8);
    if (pauseMs > 0) await once(AbortSignal.timeout(pauseMs), "abort");
  }
  put({ type: "content_block_stop", index: 0 });
  const stop_reason = usesTool ? "tool_use" : "end_turn";
  put({
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 },
  });
  put({ type: "message_stop" });
  response.end();
}

function readTask(content: SentMessage["content"]): Task | undefined {
  if (typeof content === "string") return parseTask(content);
  return content.map(({ text = "" }) => parseTask(text)).find((task) => task !== undefined);
}

function describeText(task: Task | undefined): [object, object[]] {
  const text = task ? composeAnswer(task) : "What is the task?";
  const pieces = text.match(/[\s\S]{1,12}/gu) ?? [];
  return [{ type: "text", text: "" }, pieces.map((piece) => ({ type: "text_delta", text: piece }))];
}

/** The effect is a line of a file, or a note of the client: whether it was made twice shows. */
function describeCall(id: string, tool: TaskTool): [object, object[]] {
  const args = tool === "note" ? { id } : { command: `echo ${id} >> effects.txt; echo done ${id}` };
  const input = JSON.stringify(args);
  const pieces = input.match(/[\s\S]{1,12}/g) ?? [];
  return [
    { type: "tool_use", id: `call_${id.replaceAll(/\W/g, "_")}`, name: tool, input: {} },
    pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  ];
}
