import { FileFilter } from "../transcript/file-filter.ts";
import type { Run } from "../run/run.ts";
import type { Outcome } from "./model-call.ts";

/**
 * Asks again with a smaller context (R24): first without files, then compacted. Loaded when a service
 * has refused a request as too large; `request` and `isOverflow` are given, so that they stay where they are.
 */
export async function retryWithSmallerContext(
  run: Run,
  first: Outcome,
  request: (run: Run) => Promise<Outcome>,
  isOverflow: (run: Run, outcome: Outcome) => boolean,
): Promise<Outcome> {
  const { message } = first;
  const { errorMessage = "" } = message;
  run.files ??= new FileFilter();
  if (run.files.narrow(run.sent)) {
    await run.emit({ type: "retry", attempt: 1, delayMs: 0, kind: "overflow", errorMessage });
    const next = await request(run);
    return isOverflow(run, next) ? retryWithSmallerContext(run, next, request, isOverflow) : next;
  }
  if (!run.config.context) return first;
  const compactor = await run.getCompactor();
  const obstacle = await compactor.compactAfterOverflow(message.failure ?? {});
  if (obstacle) {
    return {
      ...first,
      message: { ...message, errorMessage: `${errorMessage} ${obstacle}`.trim() },
    };
  }
  await run.emit({ type: "retry", attempt: 1, delayMs: 0, kind: "overflow", errorMessage });
  return request(run);
}
