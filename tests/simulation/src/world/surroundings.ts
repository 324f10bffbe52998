import type {
  AgentEvent,
  AgentListener,
  AgentLoopConfig,
  AgentMessage,
  AgentSink,
} from "@gyre/agent";
import { emptyAssistantMessage, type Failure, type Message, type Model } from "@gyre/ai";
import type { HookName } from "./plan.ts";
import type { Watch } from "./run-record.ts";
import type { World } from "./world.ts";

export const DEFAULT_HOOK_TIMEOUT_MS = 120_000;
export const DEFAULT_LISTENER_TIMEOUT_MS = 30_000;

/** What the user may do while something else is going on. */
export interface Reactions {
  /** Perhaps does something, as the seed says. */
  act(where: string): void;
  abort(where: string): void;
}

/** Models that a run may be switched between; one has no price. */
export const MODELS: readonly Model[] = [
  { id: "m1", name: "M1", api: "sim", provider: "sim", price: { input: 5, output: 30 } },
  { id: "m2", name: "M2", api: "sim", provider: "other", price: { input: 1, output: 3 } },
  { id: "m3", name: "M3", api: "sim", provider: "sim" },
];

/** Models that a run may fall back to; one of them is never chosen. */
export const FALLBACK_MODELS: readonly Model[] = [
  ...MODELS,
  { id: "m4", name: "M4", api: "sim", provider: "third", price: { input: 2, output: 8 } },
];

/** Sink, listeners and hooks: everything around the agent that may be slow, throw or hang. */
export class Surroundings {
  readonly #world: World;
  readonly #watch: Watch;
  readonly #reactions: Reactions;
  #crashIn: number;
  #crashes: number;

  constructor(world: World, watch: Watch, reactions: Reactions) {
    this.#world = world;
    this.#watch = watch;
    this.#reactions = reactions;
    this.#crashes = world.plan.crashes;
    this.#crashIn = this.#drawCrash();
  }

  /** A sink that journals; `onCrash` is called when the process dies in it. */
  sink(onCrash: () => void): AgentSink {
    const { epoch } = this.#world;
    return (event) => {
      // A process that is dead cannot act; that its code still exists here is our trick.
      if (!this.#world.lives(epoch)) return new Promise(() => {});
      if (this.#world.runsAway()) return new Promise(() => {});
      if (this.#crashIsDue(event)) {
        if (this.#world.random("crash").chance(0.5)) this.#watch.taken(event);
        this.#world.die();
        onCrash();
        return new Promise(() => {});
      }
      return this.#deliver(event);
    };
  }

  /** The listener that sees everything, where there is no sink. */
  observer(): AgentListener {
    const { epoch } = this.#world;
    return (event) => {
      if (!this.#world.lives(epoch)) return undefined;
      if (this.#world.runsAway()) return new Promise(() => {});
      return this.#take(event);
    };
  }

  listeners(): AgentListener[] {
    const { epoch } = this.#world;
    return this.#world.plan.listeners.map((kind, index) => (event) => {
      if (!this.#world.lives(epoch)) return undefined;
      this.#watch.heard(index, event);
      const mood = this.#world.calm ? "instant" : kind;
      return this.#listen(index, mood, event);
    });
  }

  #listen(index: number, kind: string, event: AgentEvent): void | Promise<void> {
    const random = this.#world.random("listeners");
    const done = (): void => this.#watch.listenerDone(index);
    if (kind === "slow" && random.chance(0.15)) {
      const ms = random.between(1, 100);
      return this.#wait(ms, ms).finally(done);
    }
    if (kind === "throwing" && random.chance(0.15)) {
      done();
      if (random.chance(0.5)) throw new Error(`a listener of ${event.type} throws`);
      return Promise.reject(new Error(`a listener of ${event.type} rejects`));
    }
    if (kind === "hanging" && random.chance(0.05)) {
      this.#world.note(() => `listener ${index} hangs on ${event.type}`);
      const { listenerTimeoutMs = DEFAULT_LISTENER_TIMEOUT_MS } = this.#world.plan;
      return this.#wait(undefined, listenerTimeoutMs);
    }
    done();
    return undefined;
  }

  /** After so many events; in half of the cases where it hurts most: among the calls. */
  #crashIsDue(event: AgentEvent): boolean {
    if (this.#world.calm || this.#crashes === 0 || --this.#crashIn > 0) return false;
    const isAmongCalls =
      event.type.startsWith("tool_execution") ||
      (event.type === "message_start" && event.message.role === "toolResult") ||
      (event.type === "message_end" && event.message.role === "assistant");
    if (this.#crashes % 2 === 0 && !isAmongCalls) return false;
    this.#crashes--;
    this.#crashIn = this.#drawCrash();
    return true;
  }

  #drawCrash(): number {
    return (
      this.#world.random("crash").pick([3, 10, 25, 60, 150]) + this.#world.random("crash").below(12)
    );
  }

  #deliver(event: AgentEvent): void | Promise<void> {
    const { plan, calm } = this.#world;
    const random = this.#world.random("sink");
    if (calm || plan.sink === "instant") return this.#take(event);
    if (plan.sink === "faulty" && random.chance(0.012)) return this.#failOn(event);
    this.#take(event);
    if (!random.chance(0.12)) return undefined;
    const ms = random.pick([0, 1, 10, 60]);
    return this.#wait(ms, ms);
  }

  #take(event: AgentEvent): void {
    this.#world.clock.burn(this.#world.plan.burnMs);
    this.#watch.taken(event);
    this.#reactions.act(event.type);
  }

  #failOn(event: AgentEvent): Promise<void> {
    const random = this.#world.random("sink");
    const way = random.pick(["throws", "rejects", "rejects later", "hangs"]);
    this.#world.note(() => `the sink fails on ${event.type}: it ${way}`);
    const { hookTimeoutMs = DEFAULT_HOOK_TIMEOUT_MS } = this.#world.plan.config;
    this.#watch.sinkFails(event, way === "hangs" ? hookTimeoutMs : way === "rejects later" ? 5 : 0);
    const error = new Error("the disk is full");
    if (way === "throws") throw error;
    if (way === "rejects") return Promise.reject(error);
    if (way === "hangs") return this.#wait(undefined, hookTimeoutMs);
    return this.#wait(5, 5).then(() => {
      throw error;
    });
  }

  /** Settles after `ms`, or never; the agent has to wait for it no longer than `heldMs`. */
  #wait(ms: number | undefined, heldMs: number): Promise<void> {
    const held = this.#world.waits.begin();
    this.#world.later(heldMs, held);
    return ms === undefined ? new Promise(() => {}) : this.#world.sleep(ms);
  }

  hooks(): Pick<AgentLoopConfig, HookName> {
    const has = (name: HookName): boolean => this.#world.plan.hooks.has(name);
    return {
      ...(has("transformContext") && {
        transformContext: (messages) =>
          this.#hook("transformContext", () =>
            this.#world.random("hooks").chance(0.5) ? messages : [...messages],
          ),
      }),
      ...(has("convertToLlm") && {
        convertToLlm: (messages) => this.#hook("convertToLlm", () => this.#convert(messages)),
      }),
      ...(has("getApiKey") && {
        getApiKey: (provider) => this.#hook("getApiKey", () => this.#key(provider)),
      }),
      ...(has("prepareTurn") && {
        prepareTurn: () => this.#hook("prepareTurn", () => this.#prepare()),
      }),
      ...(has("shouldStopAfterTurn") && {
        shouldStopAfterTurn: () => this.#hook("shouldStopAfterTurn", () => this.#stop()),
      }),
    };
  }

  #key(provider: string): string {
    if (this.#world.calm || !this.#world.plan.keyless.has(provider)) return `key of ${provider}`;
    this.#watch.keyMissing();
    const failure: Failure = { kind: "auth", retryable: false };
    throw Object.assign(new Error(`there is no key of ${provider}`), { failure });
  }

  #convert(messages: readonly AgentMessage[]): Message[] {
    const sent = messages.filter((message): message is Message =>
      ["user", "assistant", "toolResult"].includes(message.role),
    );
    const [model] = MODELS;
    // R26: wherever an empty message comes from, it is not sent.
    if (model && this.#world.random("hooks").chance(0.3)) {
      sent.push(emptyAssistantMessage(model, 0));
    }
    return sent;
  }

  #prepare(): { model?: Model; thinkingLevel?: "low" | "high" } {
    const random = this.#world.random("hooks");
    const changes: { model?: Model; thinkingLevel?: "low" | "high" } = {};
    if (!this.#world.calm) {
      if (random.chance(0.3)) changes.thinkingLevel = random.pick(["low", "high"]);
      if (random.chance(0.3)) changes.model = random.pick(MODELS.slice(0, 2));
    }
    this.#watch.prepared(changes);
    return changes;
  }

  #stop(): boolean {
    const stop = !this.#world.calm && this.#world.random("hooks").chance(0.05);
    if (stop) this.#watch.stopAsked();
    return stop;
  }

  #hook<T>(name: HookName, give: () => T): T | Promise<T> {
    const { calm, plan } = this.#world;
    const random = this.#world.random("hooks");
    if (this.#world.dead) return new Promise(() => {});
    this.#world.note(() => `hook ${name}`);
    this.#watch.hookCalled(name);
    if (calm) return give();
    if (!random.chance(plan.hookFaults)) {
      return random.chance(0.2) ? Promise.resolve().then(give) : give();
    }
    const fault = random.weighted({ throws: 2, rejects: 2, hangs: 1, slow: 3, abort: 1 });
    this.#world.note(() => `hook ${name}: ${fault}`);
    const text = `hook ${name} fails`;
    if (fault === "throws" || fault === "rejects") {
      this.#watch.hookFailed(text, "throws");
      if (fault === "throws") throw new Error(text);
      return Promise.reject(new Error(text));
    }
    if (fault === "hangs") {
      this.#watch.hookFailed(`${name} did not settle`, "waits");
      return new Promise(() => {});
    }
    if (fault === "slow") {
      return this.#world.sleep(random.between(1, 300)).then(give);
    }
    this.#reactions.abort(`hook ${name}`);
    return give();
  }
}
