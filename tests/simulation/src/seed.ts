import { Agent, type AgentMessage, defineTool } from "@gyre/agent";
import { call, fail, scriptedModel } from "@gyre/ai/testing";
import { Checker } from "./checker/checker.ts";
import { type Driver, makeDriver, type Parts } from "./world/driver.ts";
import { Gatekeeper } from "./world/gatekeeper.ts";
import { SimModel } from "./world/model.ts";
import type { RunRecord } from "./world/run-record.ts";
import { MODELS, Surroundings } from "./world/surroundings.ts";
import { Toolbox } from "./world/tools.ts";
import { User } from "./world/user.ts";
import { type Broken, World } from "./world/world.ts";

/** Steps of the first phase; a world that needs more is left where it is. */
const MOST_SAFETY_STEPS = 4_000;
/** In the second phase nothing hinders the agent any more: it must be idle by then. */
const MOST_LIVENESS_STEPS = 4_000;
/** How long after a crash the program starts again. */
const RESTART_MS = 20;

export interface SeedResult {
  seed: number;
  steps: number;
  broken: Broken | undefined;
  /** The event log; empty unless it was asked for. */
  lines: readonly string[];
}

/** What an agent loads when it first needs it takes real time, which no world has. */
const isLoaded = loadLater();

async function loadLater(): Promise<void> {
  const model = scriptedModel([call("wait")]);
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: { type: "object" },
    needsApproval: true,
    execute: () => "",
  });
  const agent = new Agent({ model: model.model, protocol: model, tools: [wait] });
  await agent.prompt("Wait.");
  await agent.continue();
  const full = scriptedModel([fail("The context is too large.", { kind: "overflow" })]);
  await new Agent({ model: full.model, protocol: full }).prompt("Wait.");
  const busy = scriptedModel([fail("Busy.", { kind: "overloaded" })]);
  const retry = { maxRetries: 0 };
  await new Agent({ model: busy.model, protocol: busy, retry }).prompt("Wait.");
}

let stray: ((error: unknown) => void) | undefined;

/** Unhandled failures are the fault of the world that goes on. */
export function watchStrayErrors(): void {
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  process.on("unhandledRejection", (error) => stray?.(error));
  process.on("uncaughtException", (error) => stray?.(error));
}

/**
 * Runs one world: first with all of its faults (safety), then with none (liveness:
 * what goes on must end, and a last prompt must be answered). Deterministic: the
 * same seed gives the same log, byte for byte.
 */
export async function runSeed(seed: number, verbose = false): Promise<SeedResult> {
  await isLoaded;
  const world = new World(seed, verbose);
  stray = (error) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    world.fail("stray", `unhandled: ${text}`);
  };
  const simulation = new Simulation(world);
  try {
    await simulation.run();
  } catch (error) {
    stray(error);
  }
  await settle();
  stray = undefined;
  return { seed, steps: world.steps, broken: world.broken, lines: world.lines };
}

class Simulation {
  readonly #world: World;
  readonly #checker: Checker;
  readonly #user: User;
  readonly #driver: Driver;

  constructor(world: World) {
    this.#world = world;
    const gatekeeper = new Gatekeeper(world);
    const checker = new Checker(world, gatekeeper, () => toolbox);
    const toolbox = new Toolbox(world, checker.calls);
    const user = new User(world, checker.queues, toolbox);
    const parts: Parts = {
      world,
      watch: checker,
      model: new SimModel(world, checker.requests),
      toolbox,
      gatekeeper,
      surroundings: new Surroundings(world, checker, user),
      journal: checker.transcript,
    };
    this.#checker = checker;
    this.#user = user;
    this.#driver = makeDriver(parts);
    checker.attach(this.#driver);
  }

  async run(): Promise<void> {
    const world = this.#world;
    this.#user.sitDown(this.#driver);
    await this.#until(() => this.#user.left === 0, MOST_SAFETY_STEPS);
    world.note(() => "from here on nothing goes wrong");
    world.calm = true;
    if (!(await this.#until(() => this.#isIdle(), MOST_LIVENESS_STEPS))) {
      return world.fail("liveness", "the agent does not become idle");
    }
    await this.#lastPrompt();
    this.#checker.transcript.checkUnchanged();
  }

  #isIdle(): boolean {
    return !this.#driver.running && !this.#world.dead;
  }

  /** After all that, a plain question gets a plain answer. */
  async #lastPrompt(): Promise<void> {
    const world = this.#world;
    const [model] = MODELS;
    this.#checker.queues.look();
    for (const queue of ["steering", "followUp"] as const) {
      while (this.#driver.queued(queue).length > 0) {
        this.#checker.queues.taken(queue, 0);
        this.#driver.take(queue, 0);
      }
    }
    if (model) this.#driver.setModel(model);
    const prompt: AgentMessage = { role: "user", content: "Is all well?", timestamp: world.now };
    const before: RunRecord | undefined = this.#checker.last;
    this.#driver.prompt([prompt]);
    const isAnswered = (): boolean => this.#isIdle() && this.#checker.last !== before;
    if (!(await this.#until(isAnswered, MOST_LIVENESS_STEPS))) {
      return world.fail("liveness", "the last prompt is not answered");
    }
    const end = this.#checker.last?.end;
    const hasTime = (world.plan.config.limits?.maxDurationMs ?? Infinity) > 100;
    if (end?.stop !== "done" && (hasTime || end?.stop !== "limit")) {
      world.fail(
        "liveness",
        `the last prompt ended ${end?.stop}: ${end?.finalMessage?.errorMessage}`,
      );
    }
  }

  /** Steps until it is so; answers whether it came to that. */
  async #until(isSo: () => boolean, most: number): Promise<boolean> {
    const world = this.#world;
    for (let steps = 0; steps < most && !world.broken; steps++) {
      await settle();
      if (world.dead) this.#restart();
      this.#checker.stepDone();
      world.stepDone();
      if (isSo()) return true;
      if (!world.clock.advance()) return isSo();
    }
    return world.broken !== undefined || isSo();
  }

  #restart(): void {
    this.#world.restart();
    this.#checker.died();
    this.#driver.revive();
    this.#checker.attach(this.#driver);
    this.#world.clock.burn(RESTART_MS);
  }
}

/** Everything that waits for a promise only gets its turn. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
