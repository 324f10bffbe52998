import type { AgentEvent, AgentMessage, Decision, QueueName } from "@gyre/agent";
import type { UserMessage } from "@gyre/ai";
import type { Identity, Payload } from "@gyre/protocol";
import {
  type Acknowledge,
  LiveSession,
  type LiveSessionOptions,
  type SessionTools,
} from "./live-session.ts";
import { PublishedState } from "./published-state.ts";
import type { SessionView } from "./session-agent.ts";
import type { SessionChanges, SessionPrompt, SharedSession } from "./session-host.ts";
import type { QueueEdit } from "./session-payloads.ts";
import { SharedEventLog } from "./shared-event-log.ts";

/** A session whose runs execute here or on another server. */
export class FollowedSession extends LiveSession {
  readonly hosted: SharedSession;
  readonly epoch: string;
  readonly idempotencyCache = undefined;
  readonly clientTools: SessionTools;
  /** The inbox knows: a request may be one that was done before. */
  readonly pendingIds = undefined;
  readonly #shared: SharedEventLog;

  private constructor(hosted: SharedSession, options: LiveSessionOptions) {
    const log = new SharedEventLog(hosted.numbers, options);
    super(hosted.view, log, options);
    this.#shared = log;
    this.hosted = hosted;
    this.epoch = hosted.numbers.epoch;
    this.clientTools = hosted.tools;
    this.follow();
  }

  static async open(hosted: SharedSession, options: LiveSessionOptions): Promise<FollowedSession> {
    const session = new FollowedSession(hosted, options);
    await hosted.follow({
      onSettings: () => session.publishSettings(),
      onReset: (isRewritten) => void session.#reset(isRewritten),
    });
    return session;
  }

  get isBusy(): boolean {
    return this.view.isRunning;
  }

  /** Whatever goes on in it goes on without a server that follows. */
  override get isIdle(): boolean {
    return !this.hasWatchers;
  }

  protected get view(): SessionView {
    return this.hosted.view;
  }

  override synchronize(): Promise<void> {
    return this.hosted.synchronize();
  }

  prompt(
    prompt: SessionPrompt,
    key: string,
    _ack: Acknowledge,
    identity?: Identity,
  ): Promise<Payload> {
    return this.hosted.inbox.prompt(prompt, key, identity);
  }

  continue(key: string): Promise<Payload> {
    return this.hosted.inbox.continue(key);
  }

  approve(
    decisions: Readonly<Record<string, Decision>>,
    key: string,
    _ack: Acknowledge,
    identity?: Identity,
  ): Promise<Payload> {
    return this.hosted.inbox.decide(decisions, key, identity);
  }

  enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload> {
    return this.#thenRefresh(this.hosted.inbox.enqueue(queue, message, key));
  }

  editQueue(edit: QueueEdit, key: string): Promise<Payload> {
    return this.#thenRefresh(this.hosted.inbox.editQueue(edit, key));
  }

  async #thenRefresh(answer: Promise<Payload>): Promise<Payload> {
    try {
      return await answer;
    } finally {
      this.refreshStatus();
    }
  }

  abort(key: string): Promise<Payload> {
    return this.hosted.inbox.abort(key);
  }

  update(changes: SessionChanges, key: string): Promise<Payload> {
    return this.hosted.inbox.update(changes, key);
  }

  replaceMessages(messages: readonly AgentMessage[], key: string): Promise<Payload> {
    return this.hosted.inbox.replaceMessages(messages, key);
  }

  reset(key: string): Promise<Payload> {
    return this.hosted.inbox.reset(key);
  }

  /** A server that stops ends nothing: the run goes on elsewhere. */
  protected async end(isAsked: boolean): Promise<void> {
    if (isAsked) await this.hosted.inbox.abort(`close:${this.log.last}`);
  }

  /** Where no client has asked for it, clients attach again, elsewhere: the session is not over. */
  protected override leave(isAsked: boolean): void {
    if (isAsked) super.leave(isAsked);
  }

  protected take(event: AgentEvent): void {
    if (event.type === "agent_end") this.publishRunEnd(event);
    else this.publishEvent(event, this.hosted.numbers.runAfter);
  }

  protected publishRewritten(): number {
    return this.#reset(true);
  }

  #reset(isRewritten = false): number {
    this.writer.dropPartial();
    this.forgetKnown();
    if (isRewritten) this.published = new PublishedState(this.view);
    const seq = this.#shared.next;
    this.publish("snapshot", this.createSnapshot(seq));
    return seq;
  }
}
