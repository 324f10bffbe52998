/**
 * The floor: a bare async-generator loop that does the same job and nothing more.
 * The same events about the same messages, and the tools run; but no validation, no
 * abort, no timeouts, no containment, no queues, no limits: what a careful person
 * would write in an afternoon, and the least that the job costs.
 */

/** What a model sends, before anybody makes messages of it. */
export type RawEvent =
  | { type: "text"; delta: string }
  | { type: "call"; id: string; name: string }
  | { type: "arguments"; delta: string }
  | { type: "end" };

export type RawModel = (messages: readonly FloorMessage[]) => AsyncIterable<RawEvent>;
export type FloorTool = (args: Record<string, unknown>) => Promise<string>;

export type FloorBlock =
  | { type: "text"; text: string }
  | {
      type: "toolCall";
      id: string;
      name: string;
      json: string;
      arguments: Record<string, unknown>;
    };

export interface FloorMessage {
  role: "user" | "assistant" | "toolResult";
  content: FloorBlock[];
  toolCallId?: string;
}

export type FloorEvent =
  | { type: "agent_start" | "turn_start" }
  | { type: "message_start" | "message_end"; message: FloorMessage }
  | {
      type: "message_update";
      kind: "start" | "delta" | "end";
      contentIndex: number;
      delta: string;
      message: FloorMessage;
    }
  | { type: "tool_execution_start"; toolCallId: string; toolName: string }
  | { type: "tool_execution_end"; toolCallId: string; toolName: string; result: string }
  | { type: "turn_end"; message: FloorMessage; toolResults: FloorMessage[] }
  | { type: "agent_end"; messages: FloorMessage[] };

export async function* floorLoop(
  messages: FloorMessage[],
  model: RawModel,
  tools: Readonly<Record<string, FloorTool>>,
): AsyncGenerator<FloorEvent> {
  yield { type: "agent_start" };
  for (;;) {
    yield { type: "turn_start" };
    const message: FloorMessage = { role: "assistant", content: [] };
    yield { type: "message_start", message };
    for await (const event of model(messages)) {
      let contentIndex = message.content.length - 1;
      let open = message.content[contentIndex];
      if (event.type === "text") {
        if (open?.type !== "text") {
          open = { type: "text", text: "" };
          contentIndex = message.content.push(open) - 1;
          yield { type: "message_update", kind: "start", contentIndex, delta: "", message };
        }
        open.text += event.delta;
        yield { type: "message_update", kind: "delta", contentIndex, delta: event.delta, message };
      } else if (event.type === "call") {
        open = { type: "toolCall", id: event.id, name: event.name, json: "", arguments: {} };
        contentIndex = message.content.push(open) - 1;
        yield { type: "message_update", kind: "start", contentIndex, delta: "", message };
      } else if (event.type === "arguments" && open?.type === "toolCall") {
        open.json += event.delta;
        yield { type: "message_update", kind: "delta", contentIndex, delta: event.delta, message };
      }
    }
    for (const [contentIndex, block] of message.content.entries()) {
      if (block.type === "toolCall") {
        block.arguments = JSON.parse(block.json) as Record<string, unknown>;
      }
      yield { type: "message_update", kind: "end", contentIndex, delta: "", message };
    }
    messages.push(message);
    yield { type: "message_end", message };
    const calls = message.content.filter((block) => block.type === "toolCall");
    for (const { id, name } of calls) {
      yield { type: "tool_execution_start", toolCallId: id, toolName: name };
    }
    const results = await Promise.all(
      calls.map((call) => tools[call.name]?.(call.arguments) ?? Promise.resolve("not found")),
    );
    const toolResults: FloorMessage[] = [];
    for (const [index, { id, name }] of calls.entries()) {
      const result = results[index] ?? "";
      yield { type: "tool_execution_end", toolCallId: id, toolName: name, result };
      const answer: FloorMessage = {
        role: "toolResult",
        toolCallId: id,
        content: [{ type: "text", text: result }],
      };
      toolResults.push(answer);
      messages.push(answer);
      yield { type: "message_start", message: answer };
      yield { type: "message_end", message: answer };
    }
    yield { type: "turn_end", message, toolResults };
    if (calls.length === 0) break;
  }
  yield { type: "agent_end", messages };
}
