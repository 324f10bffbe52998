/**
 * Why the agent cannot do what was asked: `bad_option`, what the caller gave cannot be used;
 * `bad_settings`, what a file or a variable says cannot; `no_key`, no service of a model has a key;
 * `prompt_blocked`, a hook does not let a prompt through; `aborted`; `failed`, anything else.
 */
export type CodingAgentErrorCode =
  | "bad_option"
  | "bad_settings"
  | "no_key"
  | "prompt_blocked"
  | "aborted"
  | "failed";

/** An error with a message for people, and a code for programs. */
export class CodingAgentError extends Error {
  readonly code: CodingAgentErrorCode;
  constructor(code: CodingAgentErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CodingAgentError";
    this.code = code;
  }
}
