import type { AgentEvent, AgentMessage } from "@gyre/agent";
import {
  type AssistantMessage,
  type AssistantMessageEvent,
  describeFile,
  type ServiceToolContent,
} from "@gyre/ai";
import {
  fallbackText,
  MIN_REPORTED_SILENCE_MS,
  retryText,
  waitingText,
} from "../print/progress.ts";
import { shownLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { listCitedSources, serviceToolText } from "../../text/service-tool-text.ts";
import { type CallText, callText, counted, grouped } from "../../text/tool-text.ts";
import { userText } from "@gyre/coding/internal/conversation/prompt-text";
import { exitText, type UserCommandMessage } from "@gyre/coding/internal/conversation/user-command";
import { createErrorBlock } from "../tui/transcript/message-blocks.ts";
import { NO_COLORS } from "../tui/terminal/theme.ts";
import { Paragraphs } from "./paragraphs.ts";
import { endLines, startText } from "./tool.ts";
import { blockText } from "./format.ts";

/** Messages of a session that are shown when it is resumed. */
export const MAX_REPLAYED_MESSAGES = 6;
const AGENT = "Agent: ";

type LimitEvent = Extract<AgentEvent, { type: "limit" }>;

/**
 * Writes what happens, a line after the other: pass it each event, in order. An answer comes
 * paragraph by paragraph. Whatever a tool or a model says is stripped of what a terminal
 * would obey.
 */
export class ScreenReaderEvents {
  readonly #say: (text: string) => void;
  readonly #answer: Paragraphs;
  readonly #running = new Map<string, CallText>();
  /** How long calls have waited for the user, by id. */
  readonly #waited = new Map<string, number>();
  /** Whether one of the calls that run has not run alone. */
  #areSeveral = false;
  /** Whether something of the message was shown as it came. */
  #isShown = false;
  /** Whether the model has answered in this run: what the user says from then on is news. */
  #isAnswered = false;
  #isBroken = false;

  constructor(say: (text: string) => void) {
    this.#say = say;
    this.#answer = new Paragraphs((text) => say(shownText(text)));
  }

  handle(event: AgentEvent): void {
    switch (event.type) {
      case "agent_start":
        this.#isAnswered = false;
        this.#isBroken = false;
        break;
      case "turn_start":
        if (this.#isBroken) this.#say("Asking again.");
        this.#isBroken = false;
        break;
      case "message_start":
        this.#begin(event.message);
        break;
      case "message_update":
        this.#isShown = true;
        this.#update(event.assistantMessageEvent);
        break;
      case "message_end":
        if (event.message.role === "assistant") this.#finish(event.message);
        break;
      case "tool_execution_start": {
        const call = callText(event.toolName, event.args);
        this.#running.set(event.toolCallId, call);
        this.#areSeveral ||= this.#running.size > 1;
        this.#say(startText(call));
        break;
      }
      case "tool_execution_end": {
        const { durationMs, toolCallId, toolName } = event;
        const called = this.#called(toolCallId, toolName);
        const ownMs = durationMs - (this.#waited.get(toolCallId) ?? 0);
        this.#running.delete(toolCallId);
        this.#waited.delete(toolCallId);
        this.#areSeveral &&= this.#running.size > 0;
        const call = { ...event, tool: toolName, durationMs: Math.max(0, ownMs) };
        for (const line of endLines(called, call)) this.#say(line);
        break;
      }
      case "waiting":
        if (event.silentMs >= MIN_REPORTED_SILENCE_MS) this.#say(shownLine(waitingText(event)));
        break;
      case "retry":
        this.#say(shownLine(retryText(event)));
        break;
      case "fallback":
        this.#say(shownLine(fallbackText(event)));
        break;
      case "compaction":
        this.#say(
          `The context was made smaller: from ${grouped(event.before)} to ${grouped(event.after)} tokens.`,
        );
        break;
      case "limit":
        this.#say(limitText(event));
        break;
      case "agent_end":
        this.#answer.end();
        this.#running.clear();
        this.#waited.clear();
        this.#areSeveral = false;
        break;
      case "turn_end":
      case "tool_execution_update":
        break;
      default:
        event satisfies never;
    }
  }

  /** The user runs a command of their own. */
  startUserCommand(command: string): void {
    this.#say(startText(callText("shell", { command })));
  }

  endUserCommand({ output, exitCode, durationMs }: UserCommandMessage): void {
    const result = {
      content: [{ type: "text" as const, text: output }],
      details: { stdout: output, stderr: "", exitCode },
    };
    const outcome = exitCode === 0 ? ("ok" as const) : ("error" as const);
    const call = { tool: "shell", result, outcome, durationMs };
    for (const line of endLines("shell", call)) this.#say(line);
  }

  /** A call has waited for the user: such time is not its own. */
  waited(toolCallId: string, ms: number): void {
    this.#waited.set(toolCallId, (this.#waited.get(toolCallId) ?? 0) + ms);
  }

  /** Shows the end of a conversation that was had before. */
  replay(messages: readonly AgentMessage[]): void {
    const shown = messages.filter(({ role }) => role !== "toolResult");
    if (shown.length === 0) return;
    const last = shown.slice(-MAX_REPLAYED_MESSAGES);
    const before = shown.length - last.length;
    this.#say(
      before > 0
        ? `The conversation so far has ${counted(shown.length, "message")}. The last ${last.length}:`
        : "The conversation so far:",
    );
    for (const message of last) {
      if (message.role === "userCommand") {
        this.#say(`You ran ${shownLine(message.command)}: ${exitText(message)}.`);
      } else if (message.role === "user") this.#say(`You: ${shownText(userText(message.content))}`);
      else if (message.role === "assistant") this.#whole(message, "Ran");
    }
  }

  #begin(message: AgentMessage): void {
    if (message.role === "assistant") {
      this.#isShown = false;
      this.#isAnswered = true;
    } else if (message.role === "user" && this.#isAnswered) {
      this.#say(`It reads: ${shownLine(userText(message.content))}`);
    }
  }

  #update(event: AssistantMessageEvent): void {
    switch (event.type) {
      case "text_start":
        this.#answer.begin(AGENT);
        break;
      case "text_delta":
        this.#answer.feed(event.delta);
        break;
      case "text_end":
        this.#answer.end();
        break;
      case "thinking_start":
        this.#say("Thinking.");
        break;
      case "service_tool":
        this.#serviceTool(event.content);
        break;
      case "image":
        this.#say("The agent made an image, which is not shown here.");
        break;
      case "file":
        this.#say(
          `The agent made a file, which is not shown here: ${describeFile(event.content)}.`,
        );
        break;
      default:
        break;
    }
  }

  #finish(message: AssistantMessage): void {
    this.#answer.end();
    if (!this.#isShown) this.#whole(message);
    const sources = listCitedSources(message.content);
    if (sources.length > 0) this.#say(`Sources: ${sources.join("; ")}`);
    this.#isShown = false;
    if (message.stopReason === "error") {
      this.#isBroken = true;
      const text = message.errorMessage ?? "The model failed.";
      const block = createErrorBlock(NO_COLORS, text, message.failure?.kind);
      this.#say(`Error: ${unwrapped(blockText(block))}`);
    } else if (message.stopReason === "length") {
      this.#say("The answer is cut short: the model may write no more at once.");
    }
  }

  /** One that came all at once. Its calls are shown as they run, but for those of `verb`. */
  #whole({ content }: AssistantMessage, verb?: string): void {
    for (const block of content) {
      if (block.type === "text") {
        this.#answer.begin(AGENT);
        this.#answer.feed(block.text);
        this.#answer.end();
      } else if (block.type === "toolCall" && verb !== undefined) {
        const { name, about } = callText(block.name, block.arguments);
        this.#say(`${verb} ${name}${about === "" ? "." : `: ${about}`}`);
      } else if (block.type === "serviceTool") this.#serviceTool(block);
    }
  }

  #serviceTool(block: ServiceToolContent): void {
    const { title, lines } = serviceToolText(block);
    this.#say(`The service ran ${[title, ...lines].join("; ")}.`);
  }

  /** Its name; of several that run at once, what it is for too. */
  #called(id: string, tool: string): string {
    const { name, about } = this.#running.get(id) ?? callText(tool, {});
    return this.#areSeveral && about !== "" ? `${name} ${about}` : name;
  }
}

/** Rows of a notice as one line, without its sign. */
function unwrapped(text: string): string {
  return text.replace(/^✗ /, "").replace(/\s*\n\s*/g, " ");
}

function limitText({ limit, value }: LimitEvent): string {
  return `It is stopped by a limit: ${LIMITS[limit] ?? limit}, ${grouped(value)}.`;
}

const LIMITS: Partial<Record<LimitEvent["limit"], string>> = {
  maxTurns: "turns",
  maxCostUsd: "cost in US dollars",
  maxDurationMs: "time in milliseconds",
  maxTotalTokens: "tokens",
  maxIdenticalCalls: "the same call with the same result",
};
