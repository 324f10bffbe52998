import type { AgentTool, AgentToolResult, ToolContext } from "@gyre/agent";
import type { Random } from "./random.ts";
import { complaint, drawArguments, SCHEMAS } from "./schemas.ts";
import type { World } from "./world.ts";

/** A tool as the world knows it: what the loop knows of it, and how it behaves. */
export interface SimTool extends AgentTool {
  /** Gives the same result each time. */
  readonly steady: boolean;
  /** Its results ask for the run to end. */
  readonly terminating: boolean;
}

/** One time that a tool was run. */
export interface Execution {
  readonly number: number;
  readonly id: string;
  /** Called by another tool. */
  readonly nested: boolean;
  readonly tool: SimTool;
  readonly signal: AbortSignal;
  readonly startedAt: number;
  settledAt?: number;
  settledStep?: number;
  /** What it came to; a result that is no result is `rubbish`. */
  outcome?:
    | { type: "result"; result: AgentToolResult }
    | { type: "thrown"; message: string }
    | { type: "rubbish" };
  /** What this tool has reported while it ran, and after it. */
  readonly updates: Set<string>;
  readonly lateUpdates: Set<string>;
}

export interface ToolWatch {
  executing(execution: Execution): void;
  settled(execution: Execution): void;
}

/** How often tools behave in each way, where nothing goes wrong and where something does. */
const SOUND = { instant: 3, string: 1, async: 2, slow: 4, updating: 3 };
const FAULTY = {
  throws: 2,
  rejects: 2,
  rejectsLate: 2,
  never: 2,
  deaf: 2,
  rubbish: 2,
  nesting: 3,
  lateUpdates: 3,
  windsDown: 3,
};

type Behavior = keyof typeof SOUND | keyof typeof FAULTY;

/** Executions of one seed beyond this are a loop that does not end. */
const MOST_EXECUTIONS = 5_000;

export class Toolbox {
  readonly tools: SimTool[];
  readonly executions: Execution[] = [];
  readonly #world: World;
  readonly #watch: ToolWatch;

  constructor(world: World, watch: ToolWatch) {
    this.#world = world;
    this.#watch = watch;
    const random = world.random("toolbox");
    this.tools = Array.from({ length: random.between(1, 5) }, (_, i) =>
      this.#make(random, `t${i}`),
    );
  }

  /** Some of the tools, at least one: what a user may switch to. */
  some(random: Random): readonly SimTool[] {
    const some = this.tools.filter(() => random.chance(0.7));
    return some.length > 0 ? some : this.tools;
  }

  /** How long a tool may take to stop: the longest of all. */
  longestGrace(fallback: number): number {
    return Math.max(fallback, ...this.tools.map((tool) => tool.abortGraceMs ?? fallback));
  }

  #make(random: Random, name: string): SimTool {
    const parameters = SCHEMAS[random.chance(0.6) ? "typed" : "bare"];
    const tool: SimTool = {
      name,
      description: `Tool ${name}`,
      parameters,
      steady: random.chance(0.5),
      terminating: random.chance(0.2),
      ...(random.chance(0.6) && { concurrent: true }),
      ...(random.chance(0.4) && { idempotent: true }),
      ...(random.chance(0.25) && { timeoutMs: random.pick([30, 300]) }),
      ...(random.chance(0.25) && { abortGraceMs: random.pick([0, 50, 2_000]) }),
      execute: (args, context) => this.#execute(tool, args, context),
    };
    return tool;
  }

  #execute(
    tool: SimTool,
    args: unknown,
    context: ToolContext,
  ): AgentToolResult | string | Promise<AgentToolResult | string> {
    const world = this.#world;
    if (world.dead) return new Promise(() => {});
    const random = world.random("tools");
    const { id, signal } = context;
    const behavior = this.#behavior(random, id);
    const execution: Execution = {
      number: this.executions.length + 1,
      id,
      nested: id.includes("/"),
      tool,
      signal,
      startedAt: world.now,
      updates: new Set(),
      lateUpdates: new Set(),
    };
    this.executions.push(execution);
    world.note(() => `tool ${tool.name} runs ${id} (${behavior}) with ${JSON.stringify(args)}`);
    if (this.executions.length > MOST_EXECUTIONS || world.runsAway()) {
      world.fail("R23", "tools are run without end");
      return new Promise(() => {});
    }
    const wrong = complaint(tool.parameters, args);
    if (wrong)
      world.fail("R12", `tool ${tool.name} was run with arguments that do not fit: ${wrong}`);
    this.#watch.executing(execution);
    return new Act(world, this.#watch, execution, context, this.tools).play(behavior);
  }

  #behavior(random: Random, id: string): Behavior {
    const { calm, plan } = this.#world;
    if (calm) return "async";
    if (!random.chance(plan.toolFaults)) return random.weighted(SOUND);
    const isDeep = id.split("/").length > 3;
    return random.weighted({ ...FAULTY, nesting: isDeep ? 0 : FAULTY.nesting });
  }
}

/** One behavior, played out. */
class Act {
  readonly #world: World;
  readonly #watch: ToolWatch;
  readonly #execution: Execution;
  readonly #context: ToolContext;
  readonly #tools: readonly SimTool[];
  readonly #random: Random;

  constructor(
    world: World,
    watch: ToolWatch,
    execution: Execution,
    context: ToolContext,
    tools: readonly SimTool[],
  ) {
    this.#world = world;
    this.#watch = watch;
    this.#execution = execution;
    this.#context = context;
    this.#tools = tools;
    this.#random = world.random("tools");
  }

  play(behavior: Behavior): AgentToolResult | string | Promise<AgentToolResult | string> {
    const random = this.#random;
    switch (behavior) {
      case "instant":
        return this.#done();
      case "string":
        return this.#doneWithText();
      case "async":
        return Promise.resolve().then(() => this.#done());
      case "slow":
        return this.#stoppable(random.between(1, 300));
      case "updating":
        this.#updateEvery(random.between(1, 30), 4);
        this.#update();
        return this.#stoppable(random.between(1, 100));
      case "throws":
        throw this.#failed("thrown at once");
      case "rejects":
        return Promise.reject(this.#failed("rejected at once"));
      case "rejectsLate":
        return this.#world.sleep(random.between(1, 200)).then(() => {
          throw this.#failed("rejected later");
        });
      case "never":
        if (random.chance(0.5)) this.#updateEvery(random.between(20, 400), 8);
        return new Promise(() => {});
      case "deaf":
        if (random.chance(0.5)) this.#updateEvery(random.between(20, 400), 8);
        return this.#world.sleep(random.pick([50, 500, 6_000])).then(() => this.#done());
      case "rubbish":
        return this.#rubbish();
      case "nesting":
        return this.#nest();
      case "lateUpdates":
        this.#updateEvery(random.between(1, 40), 6);
        return this.#stoppable(random.between(1, 60));
      case "windsDown":
        return this.#windDown();
      default:
        return behavior satisfies never;
    }
  }

  #text(): string {
    const { tool, number } = this.#execution;
    return tool.steady ? `steady ${tool.name}` : `result ${number} of ${tool.name}`;
  }

  #settle(outcome: NonNullable<Execution["outcome"]>): void {
    const execution = this.#execution;
    if (execution.outcome) return;
    execution.outcome = outcome;
    execution.settledAt = this.#world.now;
    execution.settledStep = this.#world.steps;
    this.#world.note(() => `tool ${execution.tool.name} settles ${execution.id} (${outcome.type})`);
    this.#watch.settled(execution);
  }

  #done(): AgentToolResult {
    const { tool, number } = this.#execution;
    const result: AgentToolResult = {
      content: number % 7 === 0 && !tool.steady ? [] : [{ type: "text", text: this.#text() }],
      ...(number % 3 === 0 && !tool.steady && { details: { number } }),
      ...(tool.terminating && { terminate: true }),
    };
    this.#settle({ type: "result", result });
    return result;
  }

  #doneWithText(): string {
    const text = this.#text();
    this.#settle({ type: "result", result: { content: [{ type: "text", text }] } });
    return text;
  }

  #failed(message: string): Error {
    this.#settle({ type: "thrown", message });
    return new Error(message);
  }

  #rubbish(): AgentToolResult {
    const values: unknown[] = [undefined, 42, {}, { content: "text" }, null, () => {}];
    const value = this.#random.pick(values);
    const text: string | undefined = JSON.stringify(value);
    const result = { content: [{ type: "text" as const, text: text ?? "" }], details: value };
    this.#settle(text === undefined ? { type: "rubbish" } : { type: "result", result });
    // What a tool that was not type-checked may give.
    return value as AgentToolResult;
  }

  /** Works for a while; stops at once when its signal fires. */
  #stoppable(ms: number): Promise<AgentToolResult> {
    const { signal } = this.#execution;
    return new Promise((resolve, reject) => {
      const stop = this.#world.later(ms, () => resolve(this.#done()));
      signal.addEventListener("abort", () => {
        stop();
        if (!this.#execution.outcome) reject(this.#failed("stopped by its signal"));
      });
    });
  }

  /** When its signal fires, takes its time to put things in order, and gives what it has. */
  #windDown(): Promise<AgentToolResult> {
    const { signal } = this.#execution;
    const ms = this.#random.pick([5, 100, 700]);
    return new Promise((resolve) => {
      const finish = (): void => resolve(this.#done());
      const stop = this.#world.later(this.#random.between(50, 2_000), finish);
      signal.addEventListener("abort", () => {
        stop();
        this.#world.later(ms, () => {
          if (!this.#execution.outcome) finish();
        });
      });
    });
  }

  #update(): void {
    const { updates, lateUpdates, number, settledStep = Infinity } = this.#execution;
    const text = `update ${updates.size + lateUpdates.size} of ${number}`;
    if (settledStep < this.#world.steps) lateUpdates.add(text);
    else updates.add(text);
    this.#context.update({ content: [{ type: "text", text }] });
  }

  #updateEvery(ms: number, times: number): void {
    if (times === 0) return;
    this.#world.later(ms, () => {
      this.#update();
      if (this.#random.chance(0.3)) this.#update();
      this.#updateEvery(ms, times - 1);
    });
  }

  async #nest(): Promise<AgentToolResult> {
    const random = this.#random;
    const tool = random.pick(this.#tools);
    let args: Record<string, unknown> = {};
    try {
      const given: unknown = JSON.parse(drawArguments(random, tool.parameters) || "{}");
      if (typeof given === "object" && given !== null) args = { ...given };
    } catch {
      args = { n: 1 };
    }
    const name = random.chance(0.1) ? "nothing" : tool.name;
    try {
      await this.#context.host.call(name, args);
    } catch (error) {
      if (random.chance(0.5)) {
        throw this.#failed(error instanceof Error ? error.message : String(error));
      }
    }
    return this.#done();
  }
}
