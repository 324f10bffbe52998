/** What a program may do. */
export interface SandboxPolicy {
  /** Folders that it may change, absolute. All else is read-only. */
  writable: readonly string[];
  /** Places inside of these that stay read-only. */
  readOnly: readonly string[];
  /** Places that it may not even read: keys, other agents' sessions. */
  hidden: readonly string[];
  network: boolean;
}

/** A program about to be started. */
export interface ProgramSpec {
  argv: readonly string[];
  /** Absolute. */
  cwd: string;
  env: Readonly<Record<string, string>>;
}

export interface Sandbox {
  kind: "bubblewrap" | "seatbelt" | "none";
  /** The program as it has to be started to be confined so. */
  wrap(program: ProgramSpec, policy: SandboxPolicy): ProgramSpec;
}

/** Confines nothing: for people who said so. */
export const noSandbox: Sandbox = {
  kind: "none",
  wrap: (program) => program,
};
