import type { Environment } from "@gyre/coding/internal/core/environment";
import type { PolicyPlace } from "@gyre/coding/internal/policy/file";

export type { Environment } from "@gyre/coding/internal/core/environment";

/** Where a command writes. */
export interface Sink {
  write(text: string): unknown;
  isTTY?: boolean;
}

/** What a command has of the world around it. */
export interface Io {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean };
  stdout: Sink;
  stderr: Sink;
  env: Environment;
  /** The folder that the program was started in, absolute. */
  cwd: string;
  /** Fires when the program is asked to end; the reason is an `ExitError` with its code. */
  signal: AbortSignal;
  /**
   * Has Ctrl-C handled where the terminal makes a signal of it. The handler is called before
   * the program ends by it; true: it does not end. Gives what removes the handler.
   */
  handleInterrupt?: (handler: () => boolean) => () => void;
  /** Where the policy of the machine is, for tests. Default: where an administrator puts it. */
  policyPlace?: PolicyPlace;
  /**
   * Called when code of others was loaded. It may leave a timer or a socket open, which must
   * not keep the program from ending.
   */
  onForeignCode?: () => void;
}
