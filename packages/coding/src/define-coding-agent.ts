import type { Agent, AgentMessage, AgentOptions, Middleware } from "@gyre/agent";
import { errorMessage, textOf, type UserMessage } from "@gyre/ai";
import type { Session, SessionSettings } from "@gyre/sessions";
import { version as ownVersion } from "./core/version.ts";
import { checkNames, readOptions } from "./create-coding-agent.ts";
import type { NoticeMessage } from "./conversation/notice.ts";
import { AbortableAgent } from "./extensions/abortable-agent.ts";
import { type AgentHarness, type PreparedHarness, prepareHarness } from "./harness/harness.ts";
import type { HarnessOptions } from "./harness/types.ts";
import type { CodingAgentOptions } from "./options.ts";

/** What workers call the coding agent. */
export const CODING_AGENT = "coding";

/** A run that a worker is about to work on: `OpenRun` of `@gyre/durable`. */
export interface CodingRun {
  readonly id: string;
  readonly session: string;
  readonly meta: Readonly<Record<string, string>>;
  readonly settings: SessionSettings;
  readonly transcript: Session;
  readonly signal: AbortSignal;
}

/** Options of an agent that are its worker's. */
const OF_WORKER = [
  "messages",
  "pending",
  "queued",
  "compaction",
  "interrupted",
  "sink",
  "sinkTimeoutMs",
  "unfinished",
  "onQueueChange",
  "sessionId",
] as const;
type OwnOptions = Omit<AgentOptions, (typeof OF_WORKER)[number]>;

/** The coding agent as a worker of `@gyre/durable` opens it. */
export interface DurableCodingAgent {
  readonly name: string;
  readonly version: string;
  open(run: CodingRun): Promise<(complete: (own: OwnOptions) => AgentOptions) => Agent>;
  close(run: CodingRun): Promise<void>;
}

/** Options of the coding agent of a worker. */
export interface DurableCodingAgentOptions extends Omit<
  CodingAgentOptions,
  "cwd" | "session" | "signal"
> {
  /** What runs call it. Default "coding". */
  name?: string;
  /** Default: that of this package. */
  version?: string;
  /**
   * The folder that a run works in. Default: that of its session; of a session without one, that
   * of the process.
   */
  cwd?: string | ((run: CodingRun) => string);
}

/**
 * The coding agent for a worker: runs of this name work in a folder with tools, permissions and all
 * else that `createCodingAgent` has, and go on after their worker has died. A call that needs an
 * approval waits for `run.decide()`, by default. Files and processes do not move: bind sessions to
 * the pool of the machine that has the folder. Hooks may refuse a prompt, and the run fails; what
 * they add to it is not sent, and those for the end of a run are not called. Throws `CodingAgentError`.
 */
export function defineCodingAgent(options: DurableCodingAgentOptions = {}): DurableCodingAgent {
  const { name = CODING_AGENT, version = ownVersion(), cwd, ...rest } = options;
  const { permissions, ...given } = rest;
  const own: CodingAgentOptions = { ...given, permissions: { approve: "suspend", ...permissions } };
  checkNames(own);
  return defineHarnessAgent(name, version, (run) =>
    readOptions({ ...own, cwd: chooseFolder(cwd, run) }),
  );
}

/** The same, by what a harness is opened with. */
export function defineHarnessAgent(
  name: string,
  version: string,
  read: (run: CodingRun) => Promise<HarnessOptions>,
): DurableCodingAgent {
  const opened = new Map<CodingRun, AgentHarness | PreparedHarness>();
  return {
    name,
    version,
    async open(run) {
      const setup = await read(run);
      const session = run.transcript;
      const prepared = await prepareHarness({ ...setup, session, isJournaled: true });
      opened.set(run, prepared);
      const { messages } = await session.context(undefined, { files: "stored" });
      const facts = findOpenPrompt(messages) && (await prepared.findFacts(run.signal));
      return (complete) => {
        const harness = prepared.open((given) => {
          const own = [giveFacts(() => harness, facts), checkPrompts(() => harness)];
          const middleware = [...own, ...(given.middleware ?? [])];
          return new AbortableAgent(addWorker({ ...given, middleware }, complete));
        });
        opened.set(run, harness);
        // What it is set to is stored with the first step, which fails where this does.
        harness.start().catch((error: unknown) => setup.warn(errorMessage(error)));
        return harness.agent;
      };
    },
    async close(run) {
      const harness = opened.get(run);
      opened.delete(run);
      await harness?.close();
    },
  };
}

function chooseFolder(cwd: DurableCodingAgentOptions["cwd"], run: CodingRun): string {
  if (typeof cwd === "function") return cwd(run);
  const { header } = run.transcript;
  return cwd ?? (header.cwd === "" ? process.cwd() : header.cwd);
}

/**
 * Gives the model the facts of the start with a prompt. The prompt is stored before a worker opens the agent, so they follow
 * it, as a message that the session keeps.
 */
function giveFacts(getHarness: () => AgentHarness, facts: NoticeMessage | undefined): Middleware {
  let isGiven = facts === undefined;
  return {
    run() {
      const { agent } = getHarness();
      // A worker that has died since may have queued them.
      const isQueued = agent.queued("steering").some(({ message }) => isFacts(message));
      if (facts && !isGiven && !isQueued) agent.steer(facts);
      isGiven = true;
    },
  };
}

function isFacts(message: AgentMessage): boolean {
  return message.role === "notice" && message.isFacts === true;
}

/** A prompt that no model has answered is seen by hooks first: one that they refuse fails the run. */
function checkPrompts(getHarness: () => AgentHarness): Middleware {
  let isChecked = false;
  return {
    async model(call, next) {
      if (!isChecked) {
        const harness = getHarness();
        const prompt = findOpenPrompt(harness.agent.state.messages);
        if (prompt) await harness.checkPrompt(textOf(prompt));
        isChecked = true;
      }
      return next(call);
    },
  };
}

function findOpenPrompt(messages: readonly AgentMessage[]): UserMessage | undefined {
  const last = messages.findLast(
    (message) =>
      !isFacts(message) && (message.role !== "assistant" || message.stopReason !== "error"),
  );
  return last?.role === "user" ? last : undefined;
}

/** The options of the agent, with those of the worker. The harness sees what the worker has stored. */
function addWorker(
  options: AgentOptions,
  complete: (own: OwnOptions) => AgentOptions,
): AgentOptions {
  const { sink } = options;
  const own = { ...options };
  for (const name of OF_WORKER) delete own[name];
  const completed = complete(own);
  return {
    ...completed,
    sink(event) {
      const stored = completed.sink?.(event);
      return stored instanceof Promise ? stored.then(() => sink?.(event)) : sink?.(event);
    },
  };
}
