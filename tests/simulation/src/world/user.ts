import type { AgentMessage, Decision, QueueName } from "@gyre/agent";
import type { Driver } from "./driver.ts";
import type { Random } from "./random.ts";
import { MODELS, type Reactions } from "./surroundings.ts";
import type { Toolbox } from "./tools.ts";
import type { World } from "./world.ts";

declare module "@gyre/agent" {
  interface CustomAgentMessages {
    note: { role: "note"; content: string; timestamp: number };
  }
}

/** What the user does to the queues, as the checker mirrors it. */
export interface QueueWatch {
  /** Called before and after anything that touches a queue. */
  look(): void;
  pushed(queue: QueueName, text: string): void;
  taken(queue: QueueName, place: number): void;
  edited(queue: QueueName, place: number, text: string): void;
  moved(queue: QueueName, place: number, to: number): void;
  /** A steering message has arrived: under `redirect` it cuts off what is streamed. */
  steered(): void;
}

/** How often the user changes what waits or how the agent works, to everything else. */
const CHANGES = { take: 1, edit: 1, move: 1, mode: 1, model: 1, tools: 1, thinking: 1 };
const PLANNED = {
  prompt: 5,
  promptNote: 1,
  steer: 6,
  followUp: 4,
  abort: 4,
  continue: 4,
  ...CHANGES,
};
/** While something else is going on. */
const SUDDEN = { prompt: 1, steer: 4, followUp: 2, abort: 1, continue: 1, ...CHANGES };

type Action = keyof typeof PLANNED;

/** A user who prompts, steers, aborts and changes their mind, at any time. */
export class User implements Reactions {
  readonly #world: World;
  readonly #queues: QueueWatch;
  readonly #toolbox: Toolbox;
  #driver: Driver | undefined;
  /** Actions that are still to come. */
  left = 0;

  constructor(world: World, queues: QueueWatch, toolbox: Toolbox) {
    this.#world = world;
    this.#queues = queues;
    this.#toolbox = toolbox;
  }

  /** Sits down at an agent and plans what to do. */
  sitDown(driver: Driver): void {
    this.#driver = driver;
    const random = this.#world.random("user");
    const { actions, horizonMs } = this.#world.plan;
    this.#at(0, "prompt");
    for (let i = 0; i < actions; i++) {
      this.#at(random.below(horizonMs), random.weighted(PLANNED));
    }
    // The user always comes back to look, also to what a crash has left.
    this.#at(horizonMs, "continue");
  }

  act(where: string): void {
    const random = this.#world.random("reactions");
    if (this.#world.calm || !random.chance(this.#world.plan.reactive)) return;
    const action = random.weighted(SUDDEN);
    this.#world.note(() => `in the middle of ${where}:`);
    this.#do(action, random);
  }

  abort(where: string): void {
    this.#world.note(() => `abort in the middle of ${where}`);
    this.#driver?.abort();
  }

  #at(ms: number, action: Action): void {
    this.left++;
    this.#world.clock.after("user", ms, () => {
      this.left--;
      this.#do(action, this.#world.random("user"));
    });
  }

  #do(action: Action, random: Random): void {
    const driver = this.#driver;
    if (!driver) return;
    this.#world.note(() => `user: ${action}`);
    this.#queues.look();
    switch (action) {
      case "prompt":
        driver.prompt([this.#message("prompt")]);
        break;
      case "promptNote": {
        const note: AgentMessage = { role: "note", content: "for people", timestamp: 0 };
        driver.prompt([this.#message("prompt"), note]);
        break;
      }
      case "steer":
        this.#push("steering");
        break;
      case "followUp":
        this.#push("followUp");
        break;
      case "abort":
        driver.abort();
        break;
      case "continue":
        driver.continue(this.#decide(random));
        break;
      case "take":
      case "edit":
      case "move":
        this.#change(action, random);
        break;
      case "mode":
        driver.setMode(
          random.pick<QueueName>(["steering", "followUp"]),
          random.pick(["one-at-a-time", "all"]),
        );
        break;
      case "model":
        driver.setModel(random.pick(MODELS));
        break;
      case "tools":
        driver.setTools(this.#toolbox.some(random));
        break;
      case "thinking":
        driver.setThinkingLevel(random.pick(["off", "low", "medium"]));
        break;
      default:
        action satisfies never;
    }
    this.#queues.look();
  }

  #message(kind: string): AgentMessage {
    const text = `${kind} ${this.#world.count("messages")}`;
    return { role: "user", content: text, timestamp: this.#world.now };
  }

  #push(queue: QueueName): void {
    const message = this.#message(queue);
    this.#queues.pushed(queue, String((message as { content: unknown }).content));
    this.#driver?.push(queue, message);
    if (queue === "steering") this.#queues.steered();
  }

  #change(action: "take" | "edit" | "move", random: Random): void {
    const driver = this.#driver;
    const queue = random.pick<QueueName>(["steering", "followUp"]);
    const waiting = driver?.queued(queue).length ?? 0;
    if (!driver || waiting === 0) return;
    const place = random.below(waiting);
    if (action === "take") {
      this.#queues.taken(queue, place);
      driver.take(queue, place);
    } else if (action === "edit") {
      const message = this.#message(queue);
      this.#queues.edited(queue, place, String((message as { content: unknown }).content));
      driver.edit(queue, place, message);
    } else {
      const to = random.below(waiting);
      this.#queues.moved(queue, place, to);
      driver.move(queue, place, to);
    }
  }

  /** Answers some of what waits for a person. */
  #decide(random: Random): Record<string, Decision> {
    const decisions: Record<string, Decision> = {};
    for (const { toolCall } of this.#driver?.pending() ?? []) {
      const answer = random.weighted({ approve: 3, deny: 2, result: 1, nothing: 2 });
      if (answer === "approve") decisions[toolCall.id] = { type: "approve" };
      else if (answer === "deny") decisions[toolCall.id] = { type: "deny", reason: "said no" };
      else if (answer === "result") {
        const result = { content: [{ type: "text" as const, text: "done by hand" }] };
        decisions[toolCall.id] = { type: "result", result };
      }
    }
    return decisions;
  }
}
