import { isRecord } from "@gyre/ai";

/** What is given by itself, and not among options. */
const ARGUMENTS = {
  subscribe: {
    isRight: (value: unknown): boolean => typeof value === "function",
    message: "A listener is a function: write agent.subscribe((event) => ...).",
  },
  logging: {
    isRight: (value: unknown): boolean =>
      typeof value === "function" || hasMembers(value, ["info", "warn", "error"]),
    message: "A log is a logger or a function: write logging(console) or logging((line) => ...).",
  },
  tracing: {
    isRight: (value: unknown): boolean => hasMembers(value, ["trace", "context"]),
    message:
      'The API of OpenTelemetry is missing: write tracing(api), with import * as api from "@opentelemetry/api".',
  },
} as const;

export type Argument = keyof typeof ARGUMENTS;

export function isArgument(kind: string): kind is Argument {
  return kind in ARGUMENTS;
}

/** Throws where it is not of the form that the types have. */
export function checkArgument(kind: Argument, value: unknown): void {
  const { isRight, message } = ARGUMENTS[kind];
  if (!isRight(value)) throw new TypeError(message);
}

/** A session has to be wrapped: it does not know which events are entries. */
export function checkSink(sink: unknown): void {
  if (sink === undefined || typeof sink === "function") return;
  const isSession = isRecord(sink) && typeof sink["append"] === "function";
  const instead = isSession
    ? 'createJournal(session), with createJournal of "@gyre/sessions"'
    : "(event) => ...";
  throw new TypeError(`\`sink\` is a function: write sink: ${instead}.`);
}

function hasMembers(value: unknown, names: readonly string[]): boolean {
  return typeof value === "object" && value !== null && names.every((name) => name in value);
}
