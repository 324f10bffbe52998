import { DurableError } from "../contract/errors.ts";
import type { FireOutcome } from "../contract/schedules.ts";
import type { NewRun } from "../contract/store.ts";

/** Why a run was not started, and what to do; nothing where it was. */
export function explainStart(
  outcome: FireOutcome,
  { id, session, agent, tenant, pool }: NewRun,
): DurableError | undefined {
  switch (outcome) {
    case "other":
      return new DurableError(
        "exists",
        `There is a run "${id}" with another prompt or other options: give this one another id, or go on with get("${id}").`,
      );
    case "agent":
      return new DurableError(
        "invalid",
        `The session "${session}" belongs to another agent than "${agent}": leave \`session\` out, or name that agent.`,
      );
    case "tenant":
      return new DurableError(
        "invalid",
        `The session "${session}" belongs to another tenant than "${tenant}": leave \`session\` out, or name one of that tenant's.`,
      );
    case "pool":
      return new DurableError(
        "invalid",
        `The session "${session}" is bound to another pool than "${pool}": its files are there. Leave \`pool\` out, or start the run in a fork of the session.`,
      );
    case "busy":
      return new DurableError(
        "busy",
        `The session "${session}" has an open run: wait for its end, or leave \`ifIdle\` out.`,
      );
    case "full":
      return new DurableError(
        "rate_limited",
        `The tenant "${tenant}" has as many runs that wait for a worker as it may: start it again later.`,
      );
    default:
      return undefined;
  }
}
