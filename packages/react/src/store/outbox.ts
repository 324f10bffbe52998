import type { QueueName } from "@gyre/agent";
import { nameMessage } from "./message-views.ts";
import { toUserParts } from "./parts.ts";
import type { Attached } from "./source.ts";
import type { ViewMessage } from "./view-message.ts";

/** A message that waits in a queue of the agent. */
export interface QueuedPrompt {
  /** For `takeBack`. */
  readonly id: string;
  /** `steering` interrupts the run; `followUp` waits until it would otherwise end. */
  readonly queue: QueueName;
  readonly text: string;
  /** Whether the agent has it yet. */
  readonly state: "sending" | "queued";
}

/** Servers list texts that are longer by their beginning. */
const MAX_LISTED_CHARS = 2_000;

/** What the user has sent, until the agent shows it: in a queue or in the transcript. */
export interface Sent {
  readonly text: string;
  readonly attached: Attached;
  readonly timestamp: number;
  /** How it is shown until then: as a message, or as one that waits. */
  readonly item: QueuedPrompt | undefined;
  /** How many messages of users there were before it. */
  readonly base: number;
  /** What waited before it: another message may have the same text. */
  readonly known: ReadonlySet<string>;
  /** Why it was not delivered. */
  error?: string;
  view?: ViewMessage;
}

/** A message that is no longer in its queue, and not yet in the transcript. */
export interface Passing {
  readonly item: QueuedPrompt;
  readonly base: number;
}

/** What an agent has: its queues, and the texts of the messages of users in its transcript. */
export interface Received {
  readonly waiting: readonly QueuedPrompt[];
  readonly userCount: number;
  readonly readTexts: () => readonly string[];
}

/**
 * What the user has sent and the agent does not show: what it has not received yet, and what is on its way from a queue into
 * the transcript. So it is shown at every moment, and once.
 */
export class Outbox {
  #sent: Sent[] = [];
  #passing: Passing[] = [];
  #listed: readonly QueuedPrompt[] = [];
  #userCount = 0;
  #made = 0;
  /** What an entry stood for: the next one with the same text stands for another. */
  readonly #claimedTexts = new Set<number>();
  readonly #claimedItems = new Set<string>();
  readonly #onPassing: (passing: Passing) => void;

  /** `onPassing`: a message has left its queue. `forget` says that it is not going to be in the transcript. */
  constructor(onPassing: (passing: Passing) => void) {
    this.#onPassing = onPassing;
  }

  /** Whether a prompt is on its way that no run was known for. */
  get isSending(): boolean {
    return this.#sent.some(({ item, error }) => !item && error === undefined);
  }

  /** What waits in a queue, or will. */
  get queued(): readonly QueuedPrompt[] {
    const passing = this.#passing.map(({ item }) => item);
    return [...passing, ...this.#listed, ...this.#sent.flatMap(({ item }) => item ?? [])];
  }

  /** `queue`: where it is going to wait; nothing where it starts a run. */
  add(text: string, attached: Attached, queue: QueueName | undefined): Sent {
    const id = `sending-${++this.#made}`;
    const entry: Sent = {
      ...{ text, attached, timestamp: Date.now(), base: this.#userCount },
      item: queue && { id, queue, text, state: "sending" },
      known: new Set(this.#listed.map((item) => item.id)),
    };
    this.#sent = [...this.#sent, entry];
    return entry;
  }

  has(entry: Sent): boolean {
    return this.#sent.includes(entry);
  }

  remove(entry: Sent): void {
    this.#sent = this.#sent.filter((other) => other !== entry);
  }

  /** It was not delivered: it stays as a message, with its text and the reason. */
  fail(entry: Sent, error: string): void {
    this.remove(entry);
    const { view: _, ...rest } = entry;
    this.#sent = [...this.#sent, { ...rest, item: undefined, error }];
  }

  /** What was not delivered and is shown as this message. */
  findFailed(id: string): Sent | undefined {
    return this.#sent.find(({ view, error }) => view?.id === id && error !== undefined);
  }

  /** The user has taken a message out of its queue. */
  takeBack(id: string): void {
    this.#passing = this.#passing.filter(({ item }) => item.id !== id);
    this.#listed = this.#listed.filter((item) => item.id !== id);
  }

  /** A message is not on its way into the transcript after all. Without one: none is, as the run goes on without them. */
  forget(passing?: Passing): void {
    this.#passing = passing ? this.#passing.filter((other) => other !== passing) : [];
  }

  /** Leaves out what the agent has by now. */
  settle({ waiting, userCount, readTexts }: Received): void {
    const ids = new Set(waiting.map(({ id }) => id));
    for (const item of this.#listed) {
      if (ids.has(item.id)) continue;
      const passing = { item, base: this.#userCount };
      this.#passing.push(passing);
      this.#onPassing(passing);
    }
    this.#listed = waiting;
    this.#userCount = userCount;
    this.#passing = this.#passing.filter(({ item }) => !ids.has(item.id));
    const isOpen = ({ error }: Sent): boolean => error === undefined;
    if (this.#passing.length === 0 && !this.#sent.some(isOpen)) {
      this.#claimedTexts.clear();
      this.#claimedItems.clear();
      return;
    }
    const texts = readTexts();
    this.#passing = this.#passing.filter(
      ({ item, base }) => !this.#claimText(texts, item.text, base),
    );
    this.#sent = this.#sent.filter(
      (entry) =>
        !isOpen(entry) ||
        !(this.#claimItem(waiting, entry) || this.#claimText(texts, entry.text, entry.base)),
    );
    this.#claimOnly(texts);
  }

  /** A host may have put another text in the place of a prompt: where there is one prompt, it is that. */
  #claimOnly(texts: readonly string[]): void {
    const [entry, ...others] = this.#sent.filter(({ error }) => error === undefined);
    if (!entry || entry.item || others.length + this.#passing.length > 0) return;
    if (entry.known.size > 0 || texts.length <= entry.base) return;
    if (!this.#claimedTexts.has(entry.base)) this.remove(entry);
  }

  #claimText(texts: readonly string[], text: string, base: number): boolean {
    const isLong = text.length >= MAX_LISTED_CHARS;
    const at = texts.findIndex(
      (known, index) =>
        index >= base &&
        !this.#claimedTexts.has(index) &&
        (known === text || (isLong && known.startsWith(text))),
    );
    if (at >= 0) this.#claimedTexts.add(at);
    return at >= 0;
  }

  #claimItem(waiting: readonly QueuedPrompt[], { text, known }: Sent): boolean {
    const item = waiting.find(
      ({ id, text: listed }) =>
        (text === listed || (listed.length >= MAX_LISTED_CHARS && text.startsWith(listed))) &&
        !known.has(id) &&
        !this.#claimedItems.has(id),
    );
    if (item) this.#claimedItems.add(item.id);
    return item !== undefined;
  }

  /** The prompts as messages; `from` is the place of the first. */
  show(from: number): ViewMessage[] {
    const prompts = this.#sent.filter(({ item }) => !item);
    return prompts.map((entry, index) => {
      const id = nameMessage(from + index);
      const { text, attached, timestamp, error } = entry;
      if (entry.view?.id === id) return entry.view;
      const { attachments = [], images = [] } = attached;
      const parts = [
        ...(text === "" ? [] : toUserParts(text)),
        ...toUserParts([...attachments, ...images]),
      ];
      entry.view = {
        ...{ id, role: "user", parts, timestamp },
        ...(error === undefined ? { state: "pending" } : { state: "failed", error }),
      };
      return entry.view;
    });
  }
}
