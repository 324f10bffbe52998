import type { AgentEvent } from "@gyre/agent";
import { sanitize } from "@gyre/tools";
import type { DeniedCall } from "@gyre/coding/internal/harness/harness";
import type { Sink } from "../../core/io.ts";
import { shellWord } from "@gyre/coding/internal/text/shell-word";
import { fit } from "../../core/terminal.ts";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import { callText, deniedText, duration, elapsed, firstSentence } from "../../text/tool-text.ts";

type EventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

const MAX_COLUMNS = 100;
/** Rules that are offered at the end. */
const MAX_RULES = 3;
/** A shorter wait is not worth a number. */
const MIN_SHOWN_WAIT_MS = 1_000;
const MS_PER_SECOND = 1_000;

/**
 * Reports on stderr what goes on: each call where stderr is a terminal, and failures of a
 * service in any case, so that a log shows why it took so long.
 */
export class Progress {
  readonly #output: Sink;
  readonly #calls: boolean;
  readonly #quiet: boolean;
  readonly #denied: readonly DeniedCall[];
  readonly #about = new Map<string, string>();
  /** Why the newest answer broke off; reported if the run goes on. */
  #broken: string | undefined;

  /** `denied`: grows with each call that is. */
  constructor(
    output: Sink,
    { quiet, denied = [] }: { quiet: boolean; denied?: readonly DeniedCall[] },
  ) {
    this.#denied = denied;
    this.#output = output;
    this.#quiet = quiet;
    this.#calls = !quiet && output.isTTY === true;
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case "tool_execution_start":
        if (this.#calls)
          this.#about.set(event.toolCallId, callText(event.toolName, event.args).about);
        break;
      case "tool_execution_end": {
        if (!this.#calls) break;
        const about = this.#about.get(event.toolCallId) ?? "";
        this.#about.delete(event.toolCallId);
        const mark = event.isError ? "✗" : "●";
        const denied = this.#denied.find(({ toolCallId }) => toolCallId === event.toolCallId);
        const end = denied ? deniedText(denied.reason) : duration(event.durationMs);
        this.#say(`${mark} ${event.toolName}  ${about}  ${end}`);
        break;
      }
      case "waiting":
        if (event.silentMs >= MIN_REPORTED_SILENCE_MS) this.#say(waitingText(event));
        break;
      case "retry":
        this.#say(retryText(event));
        break;
      case "fallback":
        this.#say(fallbackText(event));
        break;
      case "message_end": {
        const { message } = event;
        if (message.role !== "assistant" || message.stopReason !== "error") break;
        this.#broken = message.errorMessage ?? "The answer broke off.";
        break;
      }
      case "turn_start":
        if (this.#broken !== undefined) this.#say(`Asking again: ${this.#broken}`);
        this.#broken = undefined;
        break;
      default:
        break;
    }
  }

  /** Says at the end which calls were denied, and what would allow them. */
  end(mode: string): void {
    if (this.#denied.length > 0) this.#say(formatDenied(this.#denied, mode), { isWhole: true });
  }

  #say(text: string, { isWhole = false } = {}): void {
    if (this.#quiet) return;
    const line = sanitize(text, { keepNewlines: false });
    const isCut = this.#output.isTTY === true && !isWhole;
    this.#output.write(`gyre: ${isCut ? fit(line, MAX_COLUMNS) : line}\n`);
  }
}

/** A silence is worth a line of its own from here on. */
export const MIN_REPORTED_SILENCE_MS = 60_000;

const WAITING: Readonly<Record<EventOf<"waiting">["phase"], string>> = {
  response: "waiting for the model",
  thinking: "the model is thinking",
  text: "the model has paused",
  call: "the model is preparing a call",
};

/** What a response is silent about: "the model is preparing a call of write". */
export function describeWaiting({ phase, toolName }: EventOf<"waiting">): string {
  return toolName === undefined ? WAITING[phase] : `${WAITING[phase]} of ${toolName}`;
}

/** The same with how long: "the model is preparing a call of write, 2 min". */
export function waitingText(event: EventOf<"waiting">): string {
  const text = `${describeWaiting(event)}, ${elapsed(event.silentMs)}`;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Why a service is asked again, and when: "Asking again in 4.0 s (3 of 10): It is overloaded." */
export function retryText(event: EventOf<"retry">): string {
  const { delayMs, errorMessage } = event;
  const when = delayMs < MIN_SHOWN_WAIT_MS ? "at once" : `in ${duration(delayMs)}`;
  return `Asking again ${when}${formatCount(event)}: ${errorMessage}`;
}

/** The attempt that follows: " (3 of 10)". */
function formatCount({ attempt, maxAttempts }: EventOf<"retry">): string {
  return maxAttempts === undefined ? "" : ` (${attempt + 1} of ${maxAttempts})`;
}

/** Why, by the kind of failure. */
const KINDS: Readonly<Record<string, string>> = {
  rate_limit: "too many requests",
  overloaded: "overloaded",
  overflow: "the context is too long",
  network: "no connection",
  timeout: "no answer in time",
  stalled: "the answer stalled",
  incomplete: "the answer broke off",
  empty: "the answer was empty",
};

/** The same in a few words, for a countdown: "overloaded, trying again in 4 s (3 of 10)". */
export function countdownText(event: EventOf<"retry">, leftMs: number): string {
  const seconds = Math.ceil(leftMs / MS_PER_SECOND);
  const when = seconds > 0 ? ` in ${elapsed(seconds * MS_PER_SECOND)}` : "";
  return `${retryReason(event)}, trying again${when}${formatCount(event)}`;
}

/** What has failed, to be kept: "overloaded (attempt 2 of 10)". */
export function failedAttemptText(event: EventOf<"retry">): string {
  const { attempt, maxAttempts } = event;
  const count = maxAttempts === undefined ? attempt : `${attempt} of ${maxAttempts}`;
  return `${retryReason(event)} (attempt ${count})`;
}

function retryReason({ errorMessage, kind }: EventOf<"retry">): string {
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  return known ?? firstSentence(errorMessage).replace(/[.!?]$/, "");
}

/** Why another model is asked. */
export function fallbackText({ errorMessage, to }: EventOf<"fallback">): string {
  return `Asking ${to.provider}/${to.id} instead: ${errorMessage}`;
}

function formatDenied(denied: readonly DeniedCall[], mode: string): string {
  const tools = [...new Set(denied.map(({ tool }) => tool))].join(", ");
  const count = denied.length === 1 ? "1 call was denied" : `${denied.length} calls were denied`;
  const isEdit = ({ tool, rule }: DeniedCall): boolean =>
    mode === "ask" && rule !== undefined && findPresentation(tool)?.kind === "edit";
  const rules = new Set(denied.flatMap((call) => (isEdit(call) ? [] : (call.rule ?? []))));
  const ways = [
    ...(denied.some(isEdit) ? ["--mode auto-edit"] : []),
    ...[...rules].slice(0, MAX_RULES).map((rule) => `--allow ${shellWord(rule)}`),
  ];
  // What has neither was refused by a hook, or makes no sense: no mode would change that.
  const isAll =
    rules.size <= MAX_RULES &&
    denied.every(({ rule, summary }) => rule !== undefined || summary === undefined);
  const hint = ways.length > 0 ? ` To allow that: ${ways.join(" ")}.` : "";
  return `${count}: ${tools}.${hint}${isAll ? "" : " See --mode and --allow."}`;
}
