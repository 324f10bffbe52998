import { listCalls } from "@gyre/agent";
import {
  type AssistantMessage,
  type AssistantMessageEvent,
  describeFile,
  type FileContent,
  type ImageContent,
  type ServiceToolContent,
  type TextContent,
} from "@gyre/ai";
import { CitedSources } from "@gyre/ai/service-tools";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import { listCitedSources, serviceToolText } from "../../../text/service-tool-text.ts";
import type { Args } from "../../../text/tool-text.ts";
import { AnswerBlock } from "./answer-block.ts";
import type { Block } from "../ui/block.ts";
import type { Format } from "../markdown/formatters.ts";
import { createNoticeBlock, ThinkingBlock } from "./message-blocks.ts";
import { span } from "../terminal/row.ts";
import type { FindLinks } from "../terminal/hyperlinks.ts";
import type { Theme } from "../terminal/theme.ts";
import { ToolBlock } from "./tool-block.ts";

type Part = AnswerBlock | ThinkingBlock | ToolBlock;

export interface TranscriptOptions {
  theme: Theme;
  /** Paths below it are shown relative to it. */
  cwd: string;
  /** Milliseconds. */
  now: () => number;
  /** What shows a result in full; empty: nothing does. Default: Ctrl+O. */
  expandKey?: string | undefined;
  /** Finds links in a text as it is shown. Default: nothing is a link. */
  links?: FindLinks | undefined;
  /** Formats code with the tool of its language. */
  format?: Format;
  /** Called when something has to be drawn. */
  changed: () => void;
}

export interface PartsOptions extends TranscriptOptions {
  /** Adds a block below the others. */
  add: (block: Block) => void;
  isExpanded: () => boolean;
}

/** The blocks of the message that the model is writing, by their index in its content. */
export class MessageParts {
  readonly #options: PartsOptions;
  readonly #parts = new Map<number, Part>();
  /** Calls with complete arguments. */
  readonly #written = new Set<Part>();
  #sources = new CitedSources();
  #isOpen = false;
  /** Paths below it are shown relative to it. */
  cwd: string;

  constructor(options: PartsOptions) {
    this.#options = options;
    this.cwd = options.cwd;
  }

  /** Whether a message has begun and not ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Handles a piece. Returns the activity of the model that it shows, if any. */
  take(event: AssistantMessageEvent): string | undefined {
    this.#isOpen = true;
    switch (event.type) {
      case "text_start":
      case "text_delta":
        this.#answerAt(event.contentIndex)?.feed("delta" in event ? event.delta : "");
        return "writing";
      case "thinking_start":
      case "thinking_delta":
        this.#thoughtAt(event.contentIndex)?.feed("delta" in event ? event.delta : "");
        return "thinking";
      case "text_end":
      case "thinking_end": {
        const part = this.#parts.get(event.contentIndex);
        const block = event.partial.content[event.contentIndex];
        if (part instanceof AnswerBlock && block?.type === "text") this.#note(part, block);
        if (part && !(part instanceof ToolBlock)) part.end();
        return undefined;
      }
      case "toolcall_start":
      case "toolcall_delta": {
        const block = event.partial.content[event.contentIndex];
        if (block?.type !== "toolCall") return undefined;
        const delta = "delta" in event ? event.delta : "";
        this.#callAt(event.contentIndex, block.name)?.arrive(block.name, block.arguments, delta);
        return "writing";
      }
      case "toolcall_end": {
        const { name, arguments: args } = event.toolCall;
        const part = this.#callAt(event.contentIndex, name);
        part?.arrive(name, args, "");
        if (part) this.#written.add(part);
        return undefined;
      }
      case "service_tool":
        this.#serviceTool(event.content);
        return undefined;
      case "image":
      case "file":
        this.#file(event.content);
        return undefined;
      default:
        return undefined;
    }
  }

  /** Ends the message. Returns the blocks of its complete calls by their ids. */
  finish(message: AssistantMessage): Map<string, ToolBlock> {
    const calls = this.#isOpen ? this.#matchCalls(message) : this.#addAll(message);
    this.#listSources(message);
    this.close(new Set(calls.values()));
    return calls;
  }

  /** Ends all open parts but some calls. */
  close(but: ReadonlySet<ToolBlock> = new Set()): void {
    for (const part of this.#parts.values()) {
      if (!(part instanceof ToolBlock)) part.end();
      else if (!but.has(part)) part.leave();
    }
    this.#parts.clear();
    this.#written.clear();
    this.#isOpen = false;
  }

  newCall(name: string, args: Args, userCommand?: { aside: boolean }): ToolBlock {
    const isExpanded = this.#options.isExpanded();
    const options = { ...this.#options, cwd: this.cwd, isExpanded, userCommand };
    return this.#add(new ToolBlock(name, args, options));
  }

  #answerAt(index: number): AnswerBlock | undefined {
    const part = this.#partAt(index, () => this.#add(new AnswerBlock(this.#options)));
    return part instanceof AnswerBlock ? part : undefined;
  }

  #thoughtAt(index: number): ThinkingBlock | undefined {
    const isExpanded = this.#options.isExpanded();
    const part = this.#partAt(index, () =>
      this.#add(new ThinkingBlock({ ...this.#options, isExpanded })),
    );
    return part instanceof ThinkingBlock ? part : undefined;
  }

  #callAt(index: number, name: string): ToolBlock | undefined {
    const part = this.#partAt(index, () => this.newCall(name, {}));
    return part instanceof ToolBlock ? part : undefined;
  }

  #partAt(index: number, create: () => Part): Part {
    const part = this.#parts.get(index) ?? create();
    this.#parts.set(index, part);
    return part;
  }

  #add<T extends Block>(block: T): T {
    this.#options.add(block);
    return block;
  }

  #serviceTool(block: ServiceToolContent): void {
    const { theme, add } = this.#options;
    const { title, lines } = serviceToolText(block);
    const text = [title, ...lines].join("\n");
    add(createNoticeBlock(text, theme.dim, [span("● ", theme.good)]));
  }

  /** The numbers of what a text cites, after it. */
  #note(part: AnswerBlock, { citations = [] }: TextContent): void {
    const numbers = new Set(citations.map((citation) => this.#sources.add(citation)));
    if (numbers.size > 0) part.feed(` [${[...numbers].join(", ")}]`);
  }

  /** What the texts cite, by number; as text of the model, so that addresses are links. */
  #listSources({ content }: AssistantMessage): void {
    this.#sources = new CitedSources();
    const sources = listCitedSources(content);
    if (sources.length === 0) return;
    const block = this.#add(new AnswerBlock(this.#options));
    // Two spaces before its end make a line of each.
    block.feed(sources.map((source) => source.replaceAll(/[\\*_`<>]/g, "\\$&")).join("  \n"));
    block.end();
  }

  #file(block: ImageContent | FileContent): void {
    const { theme, add } = this.#options;
    const text = block.type === "image" ? "image" : shownLine(`file: ${describeFile(block)}`);
    add(createNoticeBlock(`[${text}]`, theme.dim));
  }

  /** Adds a message that arrived as a whole. */
  #addAll({ content }: AssistantMessage): Map<string, ToolBlock> {
    const calls = new Map<string, ToolBlock>();
    for (const [index, block] of content.entries()) {
      if (block.type === "text") {
        const answer = this.#answerAt(index);
        answer?.feed(block.text);
        if (answer) this.#note(answer, block);
      } else if (block.type === "thinking") {
        const thought = this.#thoughtAt(index);
        thought?.feed(block.thinking);
        thought?.end(null);
      } else if (block.type === "toolCall") {
        calls.set(block.id, this.newCall(block.name, block.arguments));
      } else if (block.type === "serviceTool") this.#serviceTool(block);
      else this.#file(block);
    }
    return calls;
  }

  #matchCalls(message: AssistantMessage): Map<string, ToolBlock> {
    const hasFailed = ["error", "aborted", "redirected"].includes(message.stopReason);
    const inOrder = [...this.#parts].sort(([a], [b]) => a - b).map(([, part]) => part);
    const named = new Map<string, ToolBlock>();
    const calls = listCalls(message).values();
    for (const part of inOrder) {
      if (!(part instanceof ToolBlock) || (hasFailed && !this.#written.has(part))) continue;
      const call = calls.next();
      if (!call.done) named.set(call.value.id, part);
    }
    return named;
  }
}
