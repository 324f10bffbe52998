import { toRecord } from "../common/records.ts";
import type { ToolResultMessage } from "./messages.ts";

/** What a service wants a person to approve before a call of its computer tool runs. */
export interface SafetyCheck {
  id: string;
  /** The kind of it, such as `malicious_instructions`. */
  code?: string;
  /** For the person that approves the call. */
  message?: string;
}

/** Gemini asks for one decision about a call, which has no id of its own. */
const DECISION = "safety_decision";

/**
 * The safety checks of a call, from its arguments: those of OpenAI's computer, or the one of Gemini's.
 * A call that has any must not run before a person has approved it.
 */
export function listSafetyChecks(args: unknown): SafetyCheck[] {
  const { pending_safety_checks: pending, [DECISION]: decision } = toRecord(args);
  const checks = Array.isArray(pending) ? pending.map(toCheck) : [];
  const { decision: code, explanation: message } = toRecord(decision);
  if (code === "require_confirmation") checks.push(toCheck({ id: DECISION, code, message }));
  return checks;
}

/**
 * The `details` of a result that says: a person has approved these checks of the call. Without them the
 * service is not asked to go on.
 */
export function acknowledgeSafetyChecks(args: unknown): { acknowledgedSafetyChecks: string[] } {
  return { acknowledgedSafetyChecks: listSafetyChecks(args).map(({ id }) => id) };
}

/** The ids of the checks that a result acknowledges. */
export function listAcknowledged({ details }: ToolResultMessage): ReadonlySet<unknown> {
  const { acknowledgedSafetyChecks: ids } = toRecord(details);
  return new Set(Array.isArray(ids) ? ids : []);
}

/** Whether a result acknowledges what Gemini asked for. */
export function isDecisionAcknowledged(result: ToolResultMessage): boolean {
  return listAcknowledged(result).has(DECISION);
}

function toCheck(value: unknown): SafetyCheck {
  const { code, id, message } = toRecord(value);
  return {
    id: typeof id === "string" ? id : "",
    ...(typeof code === "string" && { code }),
    ...(typeof message === "string" && { message }),
  };
}
