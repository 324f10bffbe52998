import type { Accumulator } from "../../stream/accumulate.ts";
import { readCitations } from "../../messages/citations.ts";
import type { ServiceToolContent, Usage } from "../../messages/messages.ts";
import { ProviderError, ServiceFault } from "../errors/provider-error.ts";
import type { RequestContext, ResponseReader } from "../http/format.ts";
import { formatEach } from "./request.ts";
import { COMPUTER, COMPUTER_CALL, toComputerArguments } from "./computer.ts";
import { computePrefix, readState } from "./state.ts";
import { readTicks } from "../services/ticks.ts";
import { addLogprobs } from "../options/logprobs.ts";
import { parseObject } from "../http/json.ts";
import { toRecord } from "../../common/records.ts";

// Every field is what the documentation says, and checked where it matters.

interface StreamEvent {
  type?: string;
  output_index?: number;
  item_id?: string;
  content_index?: number;
  summary_index?: number;
  delta?: unknown;
  text?: unknown;
  refusal?: unknown;
  logprobs?: unknown;
  arguments?: unknown;
  item?: Item | null;
  response?: ResponseObject | null;
  error?: unknown;
}

interface ResponseObject {
  id?: string;
  model?: string;
  status?: string;
  output?: Item[] | null;
  usage?: RawUsage | null;
  error?: unknown;
  incomplete_details?: { reason?: string } | null;
  service_tier?: string | null;
  store?: boolean | null;
  conversation?: { id?: string } | null;
}

interface Item {
  type?: string;
  id?: string;
  call_id?: string | null;
  name?: string;
  arguments?: unknown;
  phase?: string | null;
  summary?: unknown;
  content?: unknown;
  encrypted_content?: string | null;
  [other: string]: unknown;
}

interface Part {
  type?: string;
  text?: string;
  refusal?: string;
  annotations?: unknown[];
}

type RawUsage = Record<string, unknown>;

/** An item on its way: what the service said of it last, and where it stands in our message. */
interface OpenItem {
  item: Item;
  /** Of a call or a thought. */
  contentIndex: number;
  /** Of the parts of a message, by the service's index. */
  texts: Map<number, number>;
  /** A call's arguments, as far as they came. */
  input: string;
  /** The part of a thought that came last. */
  part?: string;
  done: boolean;
}

/** Progress and parts of items: everything in them comes again with the whole item. */
const REPEATED =
  /^response\.(content_part\.|reasoning_summary_part\.|reasoning(_summary)?_text\.done|output_text\.annotation\.|(web_search|file_search|code_interpreter|image_generation|mcp|custom_tool)_call|mcp_list_tools\.)/;
const DONE_MARK = "[DONE]";
const BETWEEN_PARTS = "\n\n";
const ENDS: ReadonlySet<unknown> = new Set(["completed", "incomplete", "failed", "cancelled"]);

/**
 * Items are known by their place in the output, because some services give them other
 * ids from event to event. Each part of a message that is text becomes a text block of
 * its own; words of refusal are text as well.
 */
export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #request: RequestContext;
  readonly #items: OpenItem[] = [];
  readonly #places = new Map<number | string, OpenItem>();
  #began = false;

  constructor(out: Accumulator, request: RequestContext) {
    this.#out = out;
    this.#request = request;
  }

  read(data: string, name: string | undefined): void {
    if (data.trim() === DONE_MARK) throw incomplete("ended without saying that it is whole");
    const event = parseObject(data) as StreamEvent;
    const type = event.type ?? name ?? "without a type";
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#out.text(this.#textAt(event), toText(event.delta));
      case "response.function_call_arguments.delta":
        return this.#input(event);
      case "response.reasoning_summary_text.delta":
        return this.#thought(event, `summary ${event.summary_index}`);
      case "response.reasoning_text.delta":
        return this.#thought(event, `content ${event.content_index}`);
      case "response.output_item.added":
        return this.#itemAdded(toPlace(event), event.item ?? {});
      case "response.output_item.done":
        return this.#itemDone(toPlace(event), event.item ?? {});
      case "response.output_text.done":
      case "response.refusal.done":
        addLogprobs(this.#out.report, this.#request.options, event.logprobs);
        return this.#fillText(this.#textAt(event), toText(event.text ?? event.refusal));
      case "response.function_call_arguments.done": {
        const open = this.#places.get(toPlace(event));
        if (open?.item.type === "function_call") this.#fillInput(open, event.arguments);
        return;
      }
      case "response.created":
        if (this.#began) throw incomplete("began a second time before its end");
        this.#began = true;
        return this.#readHead(event.response ?? {});
      case "response.queued":
      case "response.in_progress":
        return this.#readHead(event.response ?? {});
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.done":
        return this.#finish(event.response ?? {}, type);
      case "error":
      case "response.error":
        throw this.#error(event.error ?? event);
      default:
        if (event.error && !type.startsWith("response.")) throw this.#error(event.error);
        if (!REPEATED.test(type)) this.#out.unknown(`event ${type}`);
    }
  }

  /** Only an event that says so makes a response whole. */
  end(): void {}

  /** Of its words, only the code is reported as it is: they may hold more than is good to keep. */
  #error(error: unknown, status = "failed"): ServiceFault {
    this.#detail("status", status);
    const { code, type } = toRecord(error);
    if (code ?? type) this.#detail("code", code ?? type);
    return new ServiceFault(error);
  }

  #detail(name: string, value: unknown): void {
    const { report } = this.#out;
    report.details = { ...report.details, [name]: value };
  }

  #readHead({ id, model, usage, service_tier: tier }: ResponseObject, tools?: Usage): void {
    const { message, report } = this.#out;
    if (id) message.responseId = id;
    if (model) message.servedModel = model;
    if (usage) {
      report.usage = usage;
      const isOther = typeof tier === "string" && tier !== "default" && tier !== "auto";
      this.#out.usage({ ...toUsage(usage), ...(isOther && { serviceTier: tier }), ...tools });
    }
    this.#out.start();
  }

  #start(place: number | string, item: Item): OpenItem {
    const open: OpenItem = { item, contentIndex: -1, texts: new Map(), input: "", done: false };
    this.#places.set(place, open);
    this.#items.push(open);
    if (item.type === "reasoning") {
      open.contentIndex = this.#out.thinkingStart();
    } else if (item.type === "function_call") {
      open.contentIndex = this.#out.toolCallStart(callId(item), item.name ?? "", item.id);
    } else if (item.type === COMPUTER_CALL) {
      open.contentIndex = this.#out.toolCallStart(callId(item), COMPUTER);
    }
    return open;
  }

  /** The item that a delta is of: not every service says first that there is one. */
  #openAt(event: StreamEvent, type: string): OpenItem {
    const place = toPlace(event);
    const here = this.#places.get(place);
    if (here?.item.type === type) return here;
    const { item_id: id } = event;
    return this.#start(place, { type, ...(id && { id }) });
  }

  #textAt(event: StreamEvent): number {
    const { texts } = this.#openAt(event, "message");
    const { content_index: index = 0 } = event;
    const known = texts.get(index);
    if (known !== undefined) return known;
    const contentIndex = this.#out.textStart();
    texts.set(index, contentIndex);
    return contentIndex;
  }

  #thought(event: StreamEvent, part: string): void {
    const open = this.#openAt(event, "reasoning");
    if (open.part !== undefined && open.part !== part) {
      this.#out.thinking(open.contentIndex, BETWEEN_PARTS);
    }
    open.part = part;
    this.#out.thinking(open.contentIndex, toText(event.delta));
  }

  #input(event: StreamEvent): void {
    const open = this.#places.get(toPlace(event));
    // A call without a name does not count yet; it comes whole when it is done.
    if (open?.item.type !== "function_call") return this.#out.unknown("delta of no call");
    const delta = toText(event.delta);
    open.input += delta;
    this.#out.toolCall(open.contentIndex, delta);
  }

  /** Some services announce an item twice. */
  #itemAdded(place: number | string, item: Item): void {
    const known = this.#items.find((open) => isSame(open, item));
    if (known) this.#places.set(place, known);
    else this.#start(place, item);
  }

  #itemDone(place: number | string, item: Item): void {
    const here = this.#places.get(place);
    const open =
      here && !here.done && here.item.type === item.type
        ? here
        : this.#items.find((known) => isSame(known, item));
    if (!open?.done) this.#close(open ?? this.#start(place, item), item);
  }

  /** Ends an item; `item` is the whole of it, if the service sent it. */
  #close(open: OpenItem, item: Item | undefined): void {
    open.done = true;
    const whole = (open.item = item ?? open.item);
    switch (whole.type) {
      case "message":
        return this.#closeMessage(open, whole);
      case "reasoning": {
        const { contentIndex } = open;
        const thought = joinThought(whole);
        this.#out.thinking(contentIndex, this.#missing(this.#written(contentIndex), thought));
        const hidden = this.#written(contentIndex) === "" && !!whole.encrypted_content;
        return this.#out.thinkingEnd(contentIndex, {
          ...(item && { signature: JSON.stringify(item) }),
          ...(hidden && { redacted: true }),
        });
      }
      case "function_call": {
        const { contentIndex } = open;
        this.#fillInput(open, whole.arguments);
        const id = callId(whole);
        const { name = "" } = whole;
        this.#out.identify(contentIndex, { ...(id && { id }), ...(name && { name }) });
        return this.#out.toolCallEnd(contentIndex, whole.id);
      }
      case COMPUTER_CALL: {
        const { contentIndex } = open;
        const id = callId(whole);
        if (id) this.#out.identify(contentIndex, { id });
        this.#out.toolCall(contentIndex, JSON.stringify(toComputerArguments(whole)));
        return this.#out.toolCallEnd(contentIndex, JSON.stringify(whole));
      }
      default:
        if (!isService(whole.type)) this.#out.unknown(`item ${whole.type}`);
        this.#out.serviceTool(serviceTool(whole, this.#items.indexOf(open)));
    }
  }

  /** Parts are matched in their order: the index in deltas is not always their place. */
  #closeMessage(open: OpenItem, item: Item): void {
    const blocks = [...open.texts.values()];
    for (const part of toParts(item.content)) {
      const text = part.text ?? part.refusal;
      if (text === undefined) {
        this.#out.unknown(`part ${part.type}`);
        continue;
      }
      const contentIndex = blocks.shift() ?? this.#out.textStart();
      this.#fillText(contentIndex, text);
      const citations = readCitations(part.annotations ?? []);
      this.#out.textEnd(contentIndex, textProof(item, part), citations);
      if (part.refusal !== undefined) this.#detail("refusal", part.refusal);
    }
    for (const contentIndex of blocks) this.#out.textEnd(contentIndex, textProof(item, {}));
  }

  #fillText(contentIndex: number, whole: string): void {
    this.#out.text(contentIndex, this.#missing(this.#written(contentIndex), whole));
  }

  #written(contentIndex: number): string {
    const block = this.#out.message.content[contentIndex];
    if (block?.type === "text") return block.text;
    return block?.type === "thinking" ? block.thinking : "";
  }

  /** What has not come of a text yet. Where it is another than what came, what came stands. */
  #missing(written: string, whole: string): string {
    if (whole.startsWith(written)) return whole.slice(written.length);
    if (whole !== "") this.#out.unknown("text that is not what its deltas say");
    return "";
  }

  #fillInput(open: OpenItem, whole: unknown): void {
    const input = toInput(whole);
    if (input === "") return;
    if (!input.startsWith(open.input)) {
      if (sameJson(input, open.input)) return;
      throw incomplete(`has two versions of the arguments of "${open.item.name}"`);
    }
    const missing = input.slice(open.input.length);
    open.input = input;
    this.#out.toolCall(open.contentIndex, missing);
  }

  #finish(response: ResponseObject, type: string): void {
    const { error, incomplete_details: cut, output } = response;
    const items = output?.length ? output : this.#items.map(({ item }) => item);
    this.#readHead(response, countTools(items));
    const named = type === "response.done" ? "completed" : type.slice("response.".length);
    const status = ENDS.has(response.status) ? (response.status ?? named) : named;
    this.#out.report.stopReason = cut?.reason ?? status;
    this.#detail("status", status);
    if (cut) this.#detail("incomplete", cut);
    if (status === "failed" || status === "cancelled") throw this.#error(error ?? {}, status);
    this.#settle(output ?? []);
    if (response.store !== false) this.#markStored();
    if (cut?.reason === "content_filter") {
      throw new ProviderError(
        "The service's content filter cut the response off. Rephrase the request, or leave out what it objects to.",
        { kind: "refused", retryable: false },
      );
    }
    if (status === "incomplete") return this.#out.done("length");
    const calls = this.#out.message.content.some((block) => block.type === "toolCall");
    this.#out.done(calls ? "toolUse" : "stop");
  }

  /** What a later request may go on from, as long as the transcript is the same up to here. */
  #markStored(): void {
    const { context, model, options, service } = this.#request;
    const { message } = this.#out;
    const { conversation, isKept } = readState(options, service.id);
    if (!isKept || !message.responseId) return;
    if (conversation !== undefined) this.#detail("conversation", conversation);
    const groups = formatEach([...context.messages, message], model);
    message.prefix = computePrefix(groups, conversation);
  }

  /**
   * The whole output, which the last event repeats: ends what is open, and adds what
   * no event showed. Neither ids nor places need be those of before, so that an item
   * that is not known by its id is taken for one of its kind that was shown.
   */
  #settle(output: readonly Item[]): void {
    const shown = new Set(this.#items);
    const take = (found: OpenItem | undefined): OpenItem | undefined => {
      if (found) shown.delete(found);
      return found;
    };
    const find = (is: typeof isAlike, item: Item): OpenItem | undefined =>
      take([...shown].find((open) => is(open, item)));
    const known = output.map((item) => find(isSame, item));
    for (const [index, item] of output.entries()) {
      const open = known[index] ?? find(isAlike, item);
      if (!open?.done) this.#close(open ?? this.#start(`last ${index}`, item), item);
    }
    for (const open of shown) {
      // A tool of the service that its whole output does not have was announced in another form.
      const isReplaced = output.length > 0 && isService(open.item.type);
      if (!open.done && !isReplaced) this.#close(open, undefined);
    }
  }
}

function incomplete(what: string): ProviderError {
  return new ProviderError(`The response ${what}. Try again.`, { kind: "incomplete" });
}

function toPlace({ item_id, output_index }: StreamEvent): number | string {
  return output_index ?? item_id ?? "";
}

function callId({ call_id, id }: Item): string {
  return call_id || (id ?? "");
}

function isSame({ item: one }: OpenItem, other: Item): boolean {
  if (one.type !== other.type) return false;
  return (!!one.id && one.id === other.id) || (!!one.call_id && one.call_id === other.call_id);
}

/** Of calls it takes more than their kind: none may be lost, and none be made twice. */
function isAlike({ done, input, item: one }: OpenItem, other: Item): boolean {
  if (one.type !== other.type) return false;
  if (one.type === COMPUTER_CALL) {
    return !done || toComputerJson(one) === toComputerJson(other);
  }
  if (one.type !== "function_call") return true;
  const value = toInput(other.arguments);
  return one.name === other.name && (done ? value === input : value.startsWith(input));
}

function toComputerJson(item: Item): string {
  return JSON.stringify(toComputerArguments(item));
}

/** The JSON of a call's arguments; some services send the object itself. */
function toInput(value: unknown): string {
  if (typeof value === "string") return value;
  return value ? JSON.stringify(value) : "";
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A list of parts; some services send a single text instead. */
function toParts(value: unknown): Part[] {
  if (typeof value === "string") return [{ type: "output_text", text: value }];
  return Array.isArray(value) ? (value as Part[]) : [];
}

/** Summaries first, then the whole thought, if the service sends it. */
function joinThought({ content, summary }: Item): string {
  const texts = [...toParts(summary), ...toParts(content)].map(({ text }) => toText(text));
  return texts.filter((text) => text !== "").join(BETWEEN_PARTS);
}

function textProof({ id, phase }: Item, { annotations }: Part): string | undefined {
  const proof = {
    ...(id && { id }),
    ...(phase && { phase }),
    ...(annotations && annotations.length > 0 && { annotations }),
  };
  return Object.keys(proof).length > 0 ? JSON.stringify(proof) : undefined;
}

function isService(type: string | undefined): boolean {
  return /_call(_output)?$|^(mcp|program|tool_search|compaction)/.test(type ?? "");
}

/** Where the items of the service's tools have what went in, and what came out. */
const INPUTS = ["action", "queries", "code", "operation", "input", "arguments"];
const OUTPUTS = ["output", "results", "outputs"];

function serviceTool(item: Item, index: number): ServiceToolContent {
  const { id, name, type = "item" } = item;
  const findField = (names: readonly string[]): unknown =>
    names.map((field) => item[field] ?? undefined).find((value) => value !== undefined);
  const input = findField(INPUTS);
  const output = findField(OUTPUTS);
  return {
    type: "serviceTool",
    id: id ?? `${type}_${index}`,
    name: name ?? type.replace(/_call$/, ""),
    ...(input !== undefined && { input }),
    ...(output !== undefined && { output }),
    raw: item,
  };
}

function sameJson(one: string, other: string): boolean {
  try {
    return JSON.stringify(JSON.parse(one)) === JSON.stringify(JSON.parse(other));
  } catch {
    return false;
  }
}

/** Tools whose calls the service bills by other measures than their number. */
const UNPRICED: Readonly<Record<string, string>> = {
  code_interpreter_call: "codeExecution",
  file_search_call: "fileSearch",
  image_generation_call: "imageGeneration",
};

/** What the service bills beside tokens: of a search the looks into pages that it found are free. */
function countTools(items: readonly Item[]): Usage {
  const searches = items.filter(({ action, status, type }) => {
    const { type: kind = "search" } = toRecord(action);
    return type === "web_search_call" && kind === "search" && status !== "failed";
  });
  const unpriced = new Set(items.flatMap(({ type = "" }) => UNPRICED[type] ?? []));
  return {
    ...(searches.length > 0 && { webSearches: searches.length }),
    ...(unpriced.size > 0 && { unpricedTools: [...unpriced] }),
  };
}

function toUsage(raw: RawUsage): Usage {
  const usage: Usage = {};
  type Count = Exclude<keyof Usage, "cost" | "serviceTier" | "unpricedTools">;
  const put = (name: Count, value: unknown): void => {
    if (typeof value === "number") usage[name] = value;
  };
  const { cache_write_tokens, cached_tokens } = toRecord(raw["input_tokens_details"]);
  put("cacheRead", cached_tokens);
  put("cacheWrite", cache_write_tokens);
  const { input_tokens: input } = raw;
  // The service counts them in.
  const cached = (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  if (typeof input === "number") usage.input = Math.max(0, input - cached);
  put("output", raw["output_tokens"]);
  put("reasoning", toRecord(raw["output_tokens_details"])["reasoning_tokens"]);
  put("totalTokens", raw["total_tokens"]);
  const cost = readTicks(raw);
  if (cost) usage.cost = cost;
  return usage;
}
