import type { AgentEndEvent, AgentEvent, AgentMessage, Decision, QueueName } from "@gyre/agent";
import { addUsage, errorMessage, type UserMessage } from "@gyre/ai";
import {
  EventLog,
  IdempotencyCache,
  type Identity,
  invalidRequest,
  type Payload,
  ProtocolError,
} from "@gyre/protocol";
import { ClientTools } from "./client-tools.ts";
import { type Acknowledge, LiveSession, type LiveSessionOptions } from "./live-session.ts";
import type { SessionAgent } from "./session-agent.ts";
import type { HostedSession, SessionChanges, SessionPrompt } from "./session-host.ts";
import type { QueueEdit } from "./session-payloads.ts";

/** A session whose agent runs in this process. */
export class LocalSession extends LiveSession {
  readonly hosted: HostedSession;
  readonly epoch: string = globalThis.crypto.randomUUID();
  readonly idempotencyCache: IdempotencyCache = new IdempotencyCache();
  readonly clientTools: ClientTools;
  /** Called with the first event of a requested run. */
  #onFirstEvent: ((isOver?: boolean) => void) | undefined;
  #isReserved = false;
  /** The end of a run, published when the next run can start: clients may request it at once. */
  #heldEnd: AgentEndEvent | undefined;
  /** What earlier runs for the same request have used: to clients they are one run. */
  #earlier: Pick<AgentEndEvent, "turns" | "usage"> | undefined;

  constructor(hosted: HostedSession, options: LiveSessionOptions) {
    super(hosted.agent, new EventLog(options.tailEvents, options.tailBytes), options);
    this.hosted = hosted;
    this.clientTools = new ClientTools({
      stream: hosted.id,
      getAgent: () => this.#agent,
      isBusy: () => this.isBusy,
      onChange: () => this.publishSettings(),
    });
    this.follow();
  }

  get isBusy(): boolean {
    return this.#isReserved || this.#agent.isRunning;
  }

  get pendingIds(): string[] {
    this.#assertIdle();
    return this.published.pending.map(({ toolCall }) => toolCall.id);
  }

  protected get view(): SessionAgent {
    return this.hosted.agent;
  }

  get #agent(): SessionAgent {
    return this.hosted.agent;
  }

  prompt(
    prompt: SessionPrompt,
    _key: string,
    ack: Acknowledge,
    identity?: Identity,
  ): Promise<void> {
    const run = async (): Promise<unknown> => {
      if (this.hosted.prompt) return this.hosted.prompt(prompt, identity);
      const { text, images, attachments } = prompt;
      const files = { ...(images && { images }), ...(attachments && { attachments }) };
      return this.#agent.prompt(text, files);
    };
    return this.#start(run, ack);
  }

  continue(_key: string, ack: Acknowledge): Promise<void> {
    return this.#start(() => this.#agent.continue(), ack);
  }

  approve(
    decisions: Readonly<Record<string, Decision>>,
    _key: string,
    ack: Acknowledge,
    identity?: Identity,
  ): Promise<void> {
    return this.#start(async () => {
      await this.hosted.decide?.(decisions, identity);
      return this.#agent.continue({ decisions });
    }, ack);
  }

  /**
   * Starts a run. `ack` is called right before its first event, or with `isOver` where it ended
   * without one. Errors before that are thrown; later ones are in the events.
   */
  #start(run: () => Promise<unknown>, ack: Acknowledge): Promise<void> {
    this.#assertIdle();
    this.#isReserved = true;
    return new Promise((resolve, reject) => {
      const begun = (isOver = false): void => {
        this.#onFirstEvent = undefined;
        ack({ seq: this.log.last, ...(isOver && { isOver }) });
        resolve();
      };
      this.#onFirstEvent = begun;
      const failed = (error: unknown): void => {
        const isBegun = this.#onFirstEvent !== begun;
        this.#onFirstEvent = undefined;
        if (isBegun) this.options.onError(error, `a run of session ${this.id}`);
        else reject(toRefusal(error));
      };
      // A host may throw or reject.
      new Promise((settle) => settle(run()))
        .then(() => {
          if (this.#onFirstEvent === begun) begun(true);
          if (this.#heldEnd?.stop === "sink") failed(new SaveError(this.#heldEnd.errorMessage));
        }, failed)
        .finally(() => {
          this.#isReserved = false;
          this.#publishEnd();
          this.clientTools.removeDisconnected();
        });
    });
  }

  #assertIdle(): void {
    if (!this.isBusy) return;
    throw new ProtocolError("session_busy", "A run goes on: steer it, abort it, or wait.");
  }

  async update(changes: SessionChanges): Promise<Payload> {
    if (this.hosted.update) await refuseOnError(() => this.hosted.update?.(changes));
    else applyChanges(this.#agent, changes);
    this.publishSettings();
    return { ...this.hosted.info?.(), ...this.readSettings() };
  }

  /** Queues a message, and answers when it is saved. One that cannot be saved is not queued. */
  async enqueue(queue: QueueName, message: UserMessage): Promise<Payload> {
    const agent = this.#agent;
    const id = queue === "steering" ? agent.steer(message) : agent.followUp(message);
    try {
      await this.#saved();
    } catch (error) {
      agent.takeQueued(queue, id);
      throw error;
    } finally {
      this.refreshStatus();
    }
    return { queued: id };
  }

  async editQueue(edit: QueueEdit): Promise<Payload> {
    const edited = editQueue(this.#agent, edit);
    if (edit.op !== "list") this.refreshStatus();
    await this.#saved();
    return edited;
  }

  abort(): void {
    this.#agent.abort();
  }

  /** Settles when the queues are saved. */
  #saved(): Promise<void> {
    return refuseOnError(() => this.hosted.saved?.());
  }

  replaceMessages(messages: readonly AgentMessage[]): Promise<Payload> {
    return this.#rewrite(async () => {
      if (this.hosted.replaceMessages) await this.hosted.replaceMessages(messages);
      else this.#agent.replaceMessages(messages);
    });
  }

  reset(): Promise<Payload> {
    return this.#rewrite(async () => {
      if (this.hosted.reset) await this.hosted.reset();
      else this.#agent.reset();
    });
  }

  protected async end(): Promise<void> {
    this.#agent.abort();
    await this.#agent.waitForIdle();
  }

  protected override leave(isAsked: boolean): void {
    this.#publishEnd();
    super.leave(isAsked);
  }

  async #rewrite(write: () => Promise<void>): Promise<Payload> {
    this.#assertIdle();
    this.#isReserved = true;
    try {
      await refuseOnError(write);
    } finally {
      this.#isReserved = false;
      this.#followAgain();
    }
    return { seq: this.#publishSnapshot() };
  }

  protected publishRewritten(): number {
    this.#followAgain();
    return this.#publishSnapshot();
  }

  #followAgain(): void {
    this.follow();
    // The host may have created another agent.
    this.clientTools.registerWithNewAgent();
  }

  #publishSnapshot(): number {
    const seq = this.log.last + 1;
    this.publish("snapshot", this.createSnapshot(seq));
    this.refreshStatus();
    return seq;
  }

  protected take(event: AgentEvent): void {
    if (event.type === "agent_start" && this.#isReserved && this.#heldEnd) {
      return this.#goOn(this.#heldEnd);
    }
    this.#publishEnd();
    this.#onFirstEvent?.();
    if (event.type === "agent_end") this.#holdEnd(event);
    else this.publishEvent(event);
  }

  #holdEnd(event: AgentEndEvent): void {
    this.#heldEnd = event;
    if (this.#isReserved) return;
    // A run that the host started. A listener must not wait for the agent.
    queueMicrotask(() => {
      void this.#agent.waitForIdle().then(() => {
        this.#publishEnd();
        this.clientTools.removeDisconnected();
      });
    });
  }

  /** The host goes on with the same request, because a hook wants more done, say. */
  #goOn(end: AgentEndEvent): void {
    this.#heldEnd = undefined;
    this.#earlier = addRun(end, this.#earlier);
  }

  #publishEnd(): void {
    const held = this.#heldEnd;
    if (!held) return;
    const event = { ...held, ...addRun(held, this.#earlier) };
    this.#heldEnd = undefined;
    this.#earlier = undefined;
    this.publishRunEnd(event);
  }
}

/** What a run wrote could not be saved. */
class SaveError extends Error {
  override readonly name = "SaveError";
  readonly code = "write_failed";
}

function addRun(
  { turns, usage }: AgentEndEvent,
  earlier: Pick<AgentEndEvent, "turns" | "usage"> | undefined,
): Pick<AgentEndEvent, "turns" | "usage"> {
  if (!earlier) return { turns, usage };
  return { turns: earlier.turns + turns, usage: addUsage(earlier.usage, usage) };
}

function editQueue(agent: SessionAgent, edit: QueueEdit): Payload {
  const { queue } = edit;
  if (edit.op === "remove") {
    const message = agent.takeQueued(queue, edit.id);
    const isDone = message !== undefined;
    return { isDone, queued: agent.queued(queue), ...(message && { message }) };
  }
  let isDone = true;
  if (edit.op === "edit") isDone = agent.editQueued(queue, edit.id, edit.message);
  else if (edit.op === "move") isDone = agent.moveQueued(queue, edit.id, edit.place);
  else if (edit.op === "clear" && queue === "steering") agent.clearSteeringQueue();
  else if (edit.op === "clear") agent.clearFollowUpQueue();
  return { isDone, queued: agent.queued(queue) };
}

/** Applies the changes that need no host. All or nothing. */
export function applyChanges(agent: SessionAgent, changes: SessionChanges): void {
  const { model, thinkingLevel, systemPrompt, tools, modes = {} } = changes;
  if (model !== undefined) {
    throw new ProtocolError("model_not_found", `There is no model "${model}" here.`);
  }
  if (modes.permission !== undefined) throw invalidRequest("There is no permission mode here.");
  const chosen = tools?.map((name) => {
    const tool = agent.state.tools.find((each) => each.name === name);
    if (!tool) throw new ProtocolError("tool_not_found", `There is no tool "${name}" here.`);
    return tool;
  });
  if (thinkingLevel !== undefined) agent.setThinkingLevel(thinkingLevel);
  if (systemPrompt !== undefined) agent.setSystemPrompt(systemPrompt);
  if (chosen) agent.setTools(chosen);
  if (modes.steering !== undefined) agent.setSteeringMode(modes.steering);
  if (modes.followUp !== undefined) agent.setFollowUpMode(modes.followUp);
}

async function refuseOnError(run: () => Promise<void> | void | undefined): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw toRefusal(error);
  }
}

/** An error of a host or an agent, as a refusal that the client can act on. */
export function toRefusal(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  return invalidRequest(errorMessage(error), { cause: error });
}
