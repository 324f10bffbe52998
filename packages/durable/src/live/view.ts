import type { AgentEvent } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import { type CompactEvent, CompactEventReader, toCompactEvent } from "@gyre/ai/stream";
import type { RunEvent } from "../contract/types.ts";
import type { LiveEvent } from "./hub.ts";
import { MessageSoFar } from "./message-so-far.ts";

/** A reader that is slower than the model gets what it missed at once. */
const MAX_WAITING = 4_096;

/** The message that a reader sees grow. */
interface Shown {
  readonly message: MessageSoFar;
  readonly activation: number;
  readonly base: number;
}

interface ViewOptions {
  /** Calls the listener with what goes on now, and with what follows. */
  listen(listener: (event: LiveEvent) => void): () => void;
  /** Calls it with all of what goes on now. */
  catchUp(listener: (event: LiveEvent) => void): void;
  /** The last answer behind an entry that the reader has not read itself; 0: none. */
  findAnswer(base: number): Promise<number>;
}

/**
 * Puts live events between those of the log, for one reader: never one behind the end of its message
 * or call, none twice, and all of a message before its end.
 */
export class LiveView {
  readonly close: () => void;
  readonly #options: ViewOptions;
  /** The last answer whose end the reader knows. */
  #answered: number | undefined;
  #waiting: LiveEvent[] = [];
  #isBehind = false;
  #activation = 0;
  #shown: Shown | undefined;
  /** Calls that have begun for the reader by a live event, and calls that have ended. */
  readonly #begun = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(options: ViewOptions) {
    this.#options = options;
    this.close = options.listen(this.#add);
  }

  readonly #add = (event: LiveEvent): void => {
    this.#activation = Math.max(this.#activation, event.activation);
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(event);
    else this.#isBehind = true;
  };

  /** Live events that come before the entry behind `seq`. */
  async *take(seq: number): AsyncGenerator<RunEvent, void, void> {
    if (this.#isBehind) {
      this.#isBehind = false;
      this.#waiting = [];
      this.#options.catchUp(this.#add);
    }
    for (;;) {
      const [event] = this.#waiting;
      if (!event || (event.base > seq && event.activation >= this.#activation)) return;
      this.#waiting.shift();
      this.#answered ??= await this.#options.findAnswer(event.base);
      if (!this.#isOver(event)) yield* this.#show(event, seq);
    }
  }

  /** An answer is stored: what the reader has not seen of it, if it has seen its beginning. */
  *finish(
    message: AssistantMessage,
    { id, token, seq }: { id: number; token: number; seq: number },
  ): Generator<RunEvent, void, void> {
    const shown = this.#shown;
    this.#shown = undefined;
    this.#answered = id;
    this.#activation = Math.max(this.#activation, token);
    if (!shown) return;
    const rest = shown.activation === token ? shown.message.listRest(message) : undefined;
    if (rest) {
      yield* build(shown, rest, seq);
      return;
    }
    const { content: _, ...head } = message;
    const again = { message: new MessageSoFar(head), activation: token, base: shown.base };
    yield { seq, activation: token, event: { type: "message_start", message } };
    yield* build(again, again.message.listRest(message) ?? [], seq);
  }

  /** The log has the end of a call. */
  endCall(toolCallId: string): void {
    this.#ended.add(toolCallId);
  }

  #isOver({ activation, base, ...live }: LiveEvent): boolean {
    if (activation < this.#activation) return true;
    if ("event" in live && "toolCallId" in live.event)
      return this.#ended.has(live.event.toolCallId);
    return base < (this.#answered ?? 0);
  }

  *#show(live: LiveEvent, seq: number): Generator<RunEvent, void, void> {
    const { activation, base } = live;
    if ("whole" in live) {
      yield* this.#showWhole(live.whole, { activation, base }, seq);
      return;
    }
    const { event } = live;
    if (event.type === "message_start" && event.message.role === "assistant") {
      this.#shown = { message: new MessageSoFar(event.message), activation, base };
    } else if (event.type === "message_update") {
      // Without its beginning it means nothing; the end of the message has all of it.
      if (!this.#isShown({ activation, base })) return;
      this.#shown?.message.take(toCompactEvent(event.assistantMessageEvent));
    } else if (event.type === "tool_execution_start") {
      if (this.#begun.has(event.toolCallId)) return;
      this.#begun.add(event.toolCallId);
    }
    yield { seq, activation, event };
  }

  *#showWhole(
    whole: MessageSoFar,
    place: Pick<Shown, "activation" | "base">,
    seq: number,
  ): Generator<RunEvent, void, void> {
    const missing = this.#isShown(place) ? this.#shown?.message.listMissing(whole) : undefined;
    if (missing && this.#shown) {
      yield* build(this.#shown, missing, seq);
      for (const event of missing) this.#shown.message.take(event);
      return;
    }
    const shown = { message: new MessageSoFar(whole.head), ...place };
    const { partial } = new CompactEventReader(whole.head);
    const start: AgentEvent = { type: "message_start", message: partial };
    yield { seq, activation: place.activation, event: start };
    yield* build(shown, whole.list(), seq);
    for (const event of whole.list()) shown.message.take(event);
    this.#shown = shown;
  }

  #isShown({ activation, base }: Pick<Shown, "activation" | "base">): boolean {
    return this.#shown?.activation === activation && this.#shown.base === base;
  }
}

/** The events with the message that they build on what was shown. */
function* build(
  { message, activation }: Shown,
  events: readonly CompactEvent[],
  seq: number,
): Generator<RunEvent, void, void> {
  if (events.length === 0) return;
  const reader = new CompactEventReader(message.head);
  for (const event of message.list()) reader.read(event);
  for (const event of events) {
    const assistantMessageEvent = reader.read(event);
    const { partial } = reader;
    const update: AgentEvent = { type: "message_update", message: partial, assistantMessageEvent };
    yield { seq, activation, event: update };
  }
}
