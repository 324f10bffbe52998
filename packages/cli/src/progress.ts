import type { AgentEvent } from "@gyre/agent";
import { sanitise } from "@gyre/tools";
import type { Sink } from "./io.ts";
import { aboutOf, duration } from "./render.ts";
import { fit } from "./terminal.ts";

const MAX_COLUMNS = 100;

/**
 * Tells on stderr what goes on: each call where a person watches, and trouble with a service
 * in any case, so that a log shows why it took so long.
 */
export class Progress {
  readonly #output: Sink;
  readonly #calls: boolean;
  readonly #quiet: boolean;
  readonly #about = new Map<string, string>();
  /** Why the newest answer broke off; told if the run goes on. */
  #broken: string | undefined;

  constructor(output: Sink, { quiet }: { quiet: boolean }) {
    this.#output = output;
    this.#quiet = quiet;
    this.#calls = !quiet && output.isTTY === true;
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case "tool_execution_start":
        if (this.#calls) this.#about.set(event.toolCallId, aboutOf(event.args));
        break;
      case "tool_execution_end": {
        if (!this.#calls) break;
        const about = this.#about.get(event.toolCallId) ?? "";
        this.#about.delete(event.toolCallId);
        const mark = event.isError ? "✗" : "●";
        this.#say(`${mark} ${event.toolName}  ${about}  ${duration(event.durationMs)}`);
        break;
      }
      case "retry":
        this.#say(`${event.errorMessage} Asking again in ${duration(event.delayMs)}.`);
        break;
      case "fallback":
        this.#say(`${event.errorMessage} Asking ${event.to.provider}/${event.to.id} instead.`);
        break;
      case "message_end": {
        const { message } = event;
        if (message.role !== "assistant" || message.stopReason !== "error") break;
        this.#broken = message.errorMessage ?? "The answer broke off.";
        break;
      }
      case "agent_start":
        if (this.#broken !== undefined) this.#say(`${this.#broken} Going on.`);
        this.#broken = undefined;
        break;
      default:
        break;
    }
  }

  #say(text: string): void {
    if (this.#quiet) return;
    const line = sanitise(text, { keepNewlines: false });
    this.#output.write(`gyre: ${this.#output.isTTY ? fit(line, MAX_COLUMNS) : line}\n`);
  }
}
