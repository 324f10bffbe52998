import type { AgentEvent, QueueMode, QueueName } from "@gyre/agent";
import type { Driver } from "../world/driver.ts";
import { joinText } from "../world/run-record.ts";
import type { QueueWatch } from "../world/user.ts";
import type { World } from "../world/world.ts";

const QUEUES: readonly QueueName[] = ["steering", "followUp"];

interface Waiting {
  text: string;
  /** The number of events taken when it was pushed. */
  since: number;
}

/**
 * A sequential model of the queues (R16, R17): what was pushed and not yet
 * delivered, in order. What the agent's queue does not hold of it is in flight, and
 * must be its beginning.
 */
export class Queues implements QueueWatch {
  readonly #world: World;
  #driver: Driver | undefined;
  readonly #waiting: Record<QueueName, Waiting[]> = { steering: [], followUp: [] };
  readonly #inFlight: Record<QueueName, number> = { steering: 0, followUp: 0 };
  readonly #modes: Record<QueueName, QueueMode> = {
    steering: "one-at-a-time",
    followUp: "one-at-a-time",
  };
  readonly #gone = new Set<string>();
  #events = 0;
  /** Steering messages delivered in this run. */
  #delivered = 0;
  #runBegan = 0;
  onSteered: () => void = () => {};

  constructor(world: World) {
    this.#world = world;
  }

  attach(driver: Driver): void {
    this.#driver = driver;
    for (const queue of QUEUES) {
      this.#waiting[queue] = [];
      this.#inFlight[queue] = 0;
    }
  }

  begun(): void {
    this.#delivered = 0;
    this.#runBegan = this.#events;
  }

  /** Whether steering that was there when the run began is still where it was. */
  get overlooked(): boolean {
    if (this.#world.plan.queueFaults > 0 || this.#delivered > 0) return false;
    return this.#inFlight.steering === 0 && this.waitsSince("steering", this.#runBegan);
  }

  inFlight(queue: QueueName): number {
    return this.#inFlight[queue];
  }

  /** Whether something has waited in a queue since before so many events ago. */
  waitsSince(queue: QueueName, events: number): boolean {
    return this.#waiting[queue].some(({ since }) => since < events);
  }

  get events(): number {
    return this.#events;
  }

  /** Whether a steering message is in the queue, not in flight. */
  get steeringWaits(): boolean {
    return this.#waiting.steering.length > this.#inFlight.steering;
  }

  look(): void {
    const driver = this.#driver;
    if (!driver) return;
    for (const queue of QUEUES) {
      const held = driver.queued(queue);
      const expected = this.#waiting[queue];
      const inFlight = expected.length - held.length;
      const isRest = held.every((text, index) => expected[inFlight + index]?.text === text);
      if (inFlight < 0 || !isRest) {
        const list = expected.map(({ text }) => text).join(", ");
        this.#world.fail("R16", `${queue} holds [${held.join(", ")}] of [${list}]`);
        return;
      }
      const before = this.#inFlight[queue];
      if (inFlight > before) this.#drained(queue, inFlight - before, held.length);
      this.#inFlight[queue] = inFlight;
      this.#modes[queue] = driver.mode(queue);
    }
  }

  #drained(queue: QueueName, taken: number, left: number): void {
    const mode = this.#modes[queue];
    if (mode === "one-at-a-time" && taken > 1) {
      this.#world.fail("R17", `${taken} messages were taken from ${queue} at once`);
    }
    if (mode === "all" && left > 0) {
      this.#world.fail("R17", `${left} messages were left in ${queue}, whose mode is "all"`);
    }
  }

  pushed(queue: QueueName, text: string): void {
    this.#waiting[queue].push({ text, since: this.#events });
  }

  taken(queue: QueueName, place: number): void {
    const [taken] = this.#waiting[queue].splice(this.#inFlight[queue] + place, 1);
    if (taken) this.#gone.add(taken.text);
  }

  edited(queue: QueueName, place: number, text: string): void {
    const waiting = this.#waiting[queue][this.#inFlight[queue] + place];
    if (!waiting) return;
    this.#gone.add(waiting.text);
    waiting.text = text;
  }

  moved(queue: QueueName, place: number, to: number): void {
    const base = this.#inFlight[queue];
    const [moved] = this.#waiting[queue].splice(base + place, 1);
    if (moved) this.#waiting[queue].splice(base + to, 0, moved);
  }

  steered(): void {
    this.onSteered();
  }

  take(event: AgentEvent): void {
    this.#events++;
    this.look();
    if (event.type !== "message_end" || event.message.role !== "user") return;
    const text = joinText(event.message);
    if (this.#gone.has(text)) this.#world.fail("R16", `"${text}" was delivered though it was gone`);
    for (const queue of QUEUES) {
      if (!text.startsWith(queue)) continue;
      const [first] = this.#waiting[queue];
      if (first?.text !== text) {
        this.#world.fail(
          "R16",
          `"${text}" was delivered, the first of ${queue} is "${first?.text}"`,
        );
      }
      if (this.#inFlight[queue] === 0) {
        this.#world.fail("R16", `"${text}" was delivered and is still in its queue`);
      }
      this.#waiting[queue].shift();
      this.#inFlight[queue]--;
      this.#gone.add(text);
      if (queue === "steering") this.#delivered++;
      const isLive = this.#world.plan.entry !== "stream";
      if (isLive && queue === "followUp" && this.#inFlight.steering > 0) {
        this.#world.fail("R17", "a follow-up was delivered before steering");
      }
    }
  }

  /** R16: when nothing goes on, nothing is in flight. */
  idle(): void {
    this.look();
    for (const queue of QUEUES) {
      if (this.#inFlight[queue] === 0) continue;
      this.#world.fail("R16", `${this.#inFlight[queue]} messages of ${queue} are lost`);
    }
  }
}
