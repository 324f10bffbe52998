import { errorMessage, isThenable } from "@gyre/ai";

/**
 * Calls an application's function whose error must not harm the run. What it throws, or what its
 * promise rejects with, becomes a process warning.
 */
export function contain<T>(what: string, call: () => T): T | undefined {
  try {
    const given = call();
    if (isThenable(given)) given.then(undefined, (error: unknown) => warn(what, error));
    return given;
  } catch (error) {
    warn(what, error);
    return undefined;
  }
}

/** Reports an error that no caller can receive: as a process warning, or on the console. */
export function warn(what: string, error: unknown): void {
  const { process } = globalThis as {
    process?: { emitWarning?: (warning: string, type: string) => void };
  };
  const text = `${what}: ${errorMessage(error)}`;
  if (process?.emitWarning) process.emitWarning(text, "GyreWarning");
  else console.warn(text);
}
