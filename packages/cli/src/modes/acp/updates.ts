import { randomUUID } from "node:crypto";
import type {
  ContentBlock,
  PlanEntry,
  SessionUpdate,
  ToolCallStatus,
} from "@agentclientprotocol/sdk";
import type { AgentEvent, AgentMessage, AgentToolResult } from "@gyre/agent";
import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type FileContent,
  type ImageContent,
  type ServiceToolContent,
  toFile,
} from "@gyre/ai";
import type { Todo, Toolset } from "@gyre/tools";
import { listCitedSources } from "../../text/service-tool-text.ts";
import {
  announcedView,
  createBlock,
  createFileBlock,
  changedLocations,
  changedPaths,
  type CallView,
  createContent,
  type TextNow,
  createCallView,
} from "./tool-call.ts";

/** A file that is longer is sent as its changed places. */
const MAX_DIFFED_BYTES = 1024 * 1024;

type Files = Pick<Toolset["env"], "seen" | "workspace">;

export interface UpdatesOptions {
  cwd: string;
  files: Files;
  /** Settles when it is written. Updates are written in the order of the calls. */
  send: (update: SessionUpdate) => Promise<void>;
}

/** A call that has not ended. */
interface OpenCall {
  /** Begun in this process: what the files hold now is its doing. */
  isLive: boolean;
  /** What the files that it would change held when it began. */
  before: Map<string, string>;
}

/** Reports to an editor what an agent does, and what was done before. */
export class Updates {
  readonly #options: UpdatesOptions;
  readonly #open = new Map<string, OpenCall>();
  /** Every call that the editor knows: an id means one call for good. */
  readonly #known = new Set<string>();
  #messageId = randomUUID();
  #thoughtId = randomUUID();

  constructor(options: UpdatesOptions) {
    this.#options = options;
  }

  /** Reports an event; the loop may wait for it. */
  async event(event: AgentEvent): Promise<void> {
    switch (event.type) {
      case "message_start":
        if (event.message.role === "assistant") this.#nextMessage();
        return;
      case "message_update":
        return this.#delta(event.assistantMessageEvent);
      case "message_end":
        return event.message.role === "assistant" ? this.#sources(event.message) : undefined;
      case "tool_execution_start":
        return this.#started(event.toolCallId, event.toolName, event.args);
      case "tool_execution_update":
        return this.#update(event.toolCallId, {
          content: createContent(event.toolName, event.partialResult, this.#options.cwd),
        });
      case "tool_execution_end":
        return this.#ended(event.toolCallId, event.toolName, event.result, event.isError);
      case "agent_end":
        return this.closeCalls();
      default:
        return undefined;
    }
  }

  /** Reports a message of an earlier run. */
  async past(message: AgentMessage): Promise<void> {
    if (message.role === "user") {
      const messageId = randomUUID();
      const { content } = message;
      const blocks =
        typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
      for (const block of blocks) await this.#chunk("user_message", createBlock(block), messageId);
    } else if (message.role === "userCommand") {
      const text = `! ${message.command}`;
      await this.#chunk("user_message", { type: "text", text }, randomUUID());
    } else if (message.role === "assistant") await this.#pastAnswer(message);
    else if (message.role === "toolResult") {
      const { toolCallId, toolName, isError } = message;
      await this.#ended(toolCallId, toolName, message, isError);
    }
  }

  /** Ends what was begun and will not go on: an editor would show it as running for ever. */
  async closeCalls(): Promise<void> {
    for (const id of this.#open.keys()) await this.#update(id, { status: "failed" });
    this.#open.clear();
  }

  /** Some text of the agent itself, as a message of its own. */
  async say(text: string): Promise<void> {
    this.#nextMessage();
    await this.#text(text);
    this.#nextMessage();
  }

  /** Makes sure that the editor knows of a call; whether it did not before. */
  async announce(id: string, tool: string, args: Record<string, unknown>): Promise<boolean> {
    if (this.#known.has(id)) return false;
    await this.#announce(id, tool, createCallView(tool, args, this.#options.cwd), "pending", args);
    return true;
  }

  async setStatus(id: string, status: ToolCallStatus): Promise<void> {
    await this.#update(id, { status });
    if (status === "completed" || status === "failed") this.#open.delete(id);
  }

  /** What a file held before a call that has begun. */
  before(id: string): TextNow {
    return (path) => this.#open.get(id)?.before.get(path);
  }

  #nextMessage(): void {
    this.#messageId = randomUUID();
    this.#thoughtId = randomUUID();
  }

  #text(text: string): Promise<void> {
    return this.#chunk("agent_message", { type: "text", text }, this.#messageId);
  }

  #thought(text: string): Promise<void> {
    return this.#chunk("agent_thought", { type: "text", text }, this.#thoughtId);
  }

  #file(block: ImageContent | FileContent): Promise<void> {
    return this.#chunk("agent_message", createFileBlock(toFile(block)), this.#messageId);
  }

  #chunk(
    kind: "user_message" | "agent_message" | "agent_thought",
    content: ContentBlock,
    messageId: string,
  ): Promise<void> {
    return this.#options.send({ sessionUpdate: `${kind}_chunk`, messageId, content });
  }

  async #delta(event: AssistantMessageEvent): Promise<void> {
    switch (event.type) {
      case "text_delta":
        return this.#text(event.delta);
      case "thinking_delta":
        return this.#thought(event.delta);
      case "toolcall_start": {
        const call = event.partial.content[event.contentIndex];
        // One whose id was used before gets another when it is run.
        if (call?.type !== "toolCall" || this.#known.has(call.id)) return undefined;
        return this.#announce(call.id, call.name, announcedView(call.name), "pending");
      }
      case "toolcall_end": {
        const { id, name, arguments: args } = event.toolCall;
        if (!this.#open.has(id)) return undefined;
        return this.#update(id, {
          ...createCallView(name, args, this.#options.cwd),
          rawInput: args,
        });
      }
      case "service_tool":
        return this.#serviceTool(event.content);
      case "image":
      case "file":
        return this.#file(event.content);
      default:
        return undefined;
    }
  }

  /** One that the service ran itself: nothing of it is left to come. */
  async #serviceTool({ id, name, input, output }: ServiceToolContent): Promise<void> {
    if (this.#known.has(id)) return;
    this.#known.add(id);
    await this.#options.send({
      sessionUpdate: "tool_call",
      toolCallId: id,
      title: name,
      name,
      kind: "other",
      status: "completed",
      ...(input !== undefined && { rawInput: input }),
      ...(output !== undefined && { rawOutput: output }),
    });
  }

  async #announce(
    id: string,
    tool: string,
    view: CallView,
    status: ToolCallStatus,
    rawInput?: Record<string, unknown>,
  ): Promise<void> {
    this.#known.add(id);
    this.#open.set(id, { isLive: false, before: new Map() });
    await this.#options.send({
      sessionUpdate: "tool_call",
      toolCallId: id,
      name: tool,
      ...view,
      status,
      ...(rawInput && { rawInput }),
    });
  }

  #update(
    id: string,
    change: Omit<
      Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>,
      "sessionUpdate" | "toolCallId"
    >,
  ): Promise<void> {
    return this.#options.send({ sessionUpdate: "tool_call_update", toolCallId: id, ...change });
  }

  async #started(id: string, tool: string, args: Record<string, unknown>): Promise<void> {
    if (this.#open.has(id)) await this.#update(id, { status: "in_progress" });
    else {
      const view = createCallView(tool, args, this.#options.cwd);
      await this.#announce(id, tool, view, "in_progress", args);
    }
    const call = this.#open.get(id);
    if (!call) return;
    call.isLive = true;
    for (const path of changedPaths(tool, args)) {
      const file = await readText(this.#options.files, path);
      if (file) call.before.set(path, file.text).set(file.path, file.text);
    }
  }

  async #ended(
    id: string,
    tool: string,
    result: Pick<AgentToolResult, "content" | "details">,
    isError: boolean,
  ): Promise<void> {
    const { cwd, files } = this.#options;
    const isLive = this.#open.get(id)?.isLive ?? false;
    const content = createContent(
      tool,
      isError ? { content: result.content } : result,
      cwd,
      this.before(id),
      (path) => (isLive ? files.seen.get(path)?.text : undefined),
    );
    const locations = isError ? [] : changedLocations(tool, result, cwd);
    this.#open.delete(id);
    await this.#update(id, {
      status: isError ? "failed" : "completed",
      content,
      ...(locations.length > 0 && { locations }),
    });
  }

  async #pastAnswer(message: AssistantMessage): Promise<void> {
    this.#nextMessage();
    for (const block of message.content) {
      switch (block.type) {
        case "text":
          if (block.text !== "") await this.#text(block.text);
          break;
        case "thinking":
          if (block.thinking !== "") await this.#thought(block.thinking);
          break;
        case "toolCall":
          await this.announce(block.id, block.name, block.arguments);
          break;
        case "serviceTool":
          await this.#serviceTool(block);
          break;
        case "image":
        case "file":
          await this.#file(block);
          break;
      }
    }
    await this.#sources(message);
  }

  /** What an answer cites: an editor knows no citations, and shows them as a list below it. */
  async #sources({ content }: AssistantMessage): Promise<void> {
    const lines = listCitedSources(content).map((line) => `\n- ${line}`);
    if (lines.length > 0) await this.#text(`\n\nSources:${lines.join("")}`);
  }
}

/** A plan as editors know it. */
export function createPlan(todos: readonly Todo[]): SessionUpdate {
  const entries = todos.map(({ content, status }): PlanEntry => ({
    content,
    priority: "medium",
    status: status === "done" ? "completed" : status,
  }));
  return { sessionUpdate: "plan", entries };
}

async function readText(
  { workspace }: Files,
  path: string,
): Promise<{ path: string; text: string } | undefined> {
  try {
    const { bytes, info } = await workspace.read(path, MAX_DIFFED_BYTES);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { path: info.path, text };
  } catch {
    // Not there, not text, too long, or not allowed: the tool will say so itself.
    return undefined;
  }
}
