import { type AgentToolResult, type Middleware, Suspend, type ToolInvocation } from "@gyre/agent";
import type { World } from "./world.ts";

/** How often each is the verdict where a call does not just pass. */
const WEIGHTS = {
  deny: 3,
  suspend: 5,
  slowBefore: 4,
  slowAfter: 2,
  throwAfter: 1,
  rewrite: 1,
  answer: 1,
  hang: 1,
};

export type Verdict = "pass" | keyof typeof WEIGHTS;

export const DENIED_TEXT = "not allowed here";
export const AFTER_TEXT = "cannot be shown";
export const REWRITTEN_TEXT = "rewritten";

/** The middleware of a world: lets calls pass, or does not, as the seed says. */
export class Gatekeeper {
  /** What was decided on a call, by its id; the last time counts. */
  readonly verdicts: Map<string, Verdict> = new Map();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  middleware(): Middleware[] {
    const { plan } = this.#world;
    const list: Middleware[] = [];
    if (plan.middleware) list.push({ tool: (call, next) => this.#tool(call, next) });
    if (plan.modelMiddleware) list.push({ model: async (_call, next) => this.#model(next) });
    return list;
  }

  async #tool(
    call: ToolInvocation,
    next: () => Promise<AgentToolResult>,
  ): Promise<AgentToolResult> {
    if (this.#world.dead) return new Promise(() => {});
    const { id, name } = call.toolCall;
    const verdict = this.#verdict(call);
    this.verdicts.set(id, verdict);
    this.#world.note(() => `middleware on ${id}: ${verdict}`);
    const random = this.#world.random("middleware");
    switch (verdict) {
      case "pass":
        return next();
      case "deny":
        throw new Error(DENIED_TEXT);
      case "suspend":
        throw new Suspend(`ask a person about ${name}`);
      case "slowBefore":
        await this.#world.sleep(random.between(1, 400));
        return next();
      case "slowAfter": {
        const result = await next();
        await this.#world.sleep(random.between(1, 400));
        return result;
      }
      case "throwAfter":
        await next();
        throw new Error(AFTER_TEXT);
      case "rewrite":
        await next();
        return { content: [{ type: "text", text: REWRITTEN_TEXT }] };
      case "hang":
        return new Promise(() => {});
      case "answer":
        return { content: [{ type: "text", text: REWRITTEN_TEXT }] };
      default:
        return verdict satisfies never;
    }
  }

  #verdict(call: ToolInvocation): Verdict {
    const { calm, plan } = this.#world;
    const random = this.#world.random("middleware");
    if (calm || call.decision?.type === "approve") return "pass";
    if (!random.chance(plan.middlewareFaults)) return "pass";
    // A tool that calls a tool would have to be suspended as a whole.
    const isWhole = call.parentId === undefined;
    return random.weighted({ ...WEIGHTS, suspend: isWhole ? WEIGHTS.suspend : 0 });
  }

  async #model<T>(next: () => Promise<T>): Promise<T> {
    const { calm, plan } = this.#world;
    const random = this.#world.random("middleware");
    if (!calm && random.chance(plan.middlewareFaults)) {
      const fault = random.weighted({ slow: 3, throws: 1 });
      this.#world.note(() => `middleware of the model: ${fault}`);
      if (fault === "throws") throw new Error("the middleware of the model throws");
      // Shorter than any watch over a silent service, which would have it asked again.
      await this.#world.sleep(random.between(1, 150));
    }
    return next();
  }
}
