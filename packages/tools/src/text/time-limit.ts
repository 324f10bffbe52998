/** A pattern that takes longer than this on one piece of work will not come to an end. */
export const PATTERN_TIME_MS = 1000;

export class PatternTooSlowError extends Error {
  readonly code = "pattern_too_slow";
  constructor(what: string) {
    super(
      `${what} took more than ${PATTERN_TIME_MS} ms on one piece of text and was stopped. ` +
        "Write it without repetitions inside of repetitions and with fewer wildcards.",
    );
    this.name = "PatternTooSlowError";
  }
}

const sandbox: { job?: () => void } = {};
let script: { run: () => void } | undefined;

/**
 * Runs `job`, which must not wait for anything, and stops it when it takes too long.
 * A pattern comes from a model or from a file of the workspace; matched by
 * backtracking, it could keep this thread busy for ever. Costs about 0.1 ms.
 */
export function withTimeLimit<T>(what: string, job: () => T): T {
  script ??= prepare();
  const outcome: { value?: T } = {};
  sandbox.job = () => {
    outcome.value = job();
  };
  try {
    script.run();
  } catch (error) {
    // Made in the other context: it is an instance of no class of ours.
    const code = typeof error === "object" && error !== null && "code" in error && error.code;
    if (code === "ERR_SCRIPT_EXECUTION_TIMEOUT") {
      throw new PatternTooSlowError(what);
    }
    throw error;
  } finally {
    delete sandbox.job;
  }
  // Set by the job: it has run to its end where we get here.
  return outcome.value as T;
}

function prepare(): { run: () => void } {
  // Most runs of a program never need it, and Node takes a moment to load it.
  const { createContext, Script } = process.getBuiltinModule("node:vm");
  const context = createContext(sandbox);
  const call = new Script("job()");
  return { run: () => void call.runInContext(context, { timeout: PATTERN_TIME_MS }) };
}
