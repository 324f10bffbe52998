import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { findBubblewrap } from "./bubblewrap.ts";
import { cleanPath } from "@gyre/ai/programs";

/**
 * What a program may do. Where places lie inside of each other, the nearest around a path
 * holds; where one is named twice, hidden takes precedence over read-only, and that over writable.
 */
export interface SandboxPolicy {
  /** Folders that it may change, absolute. All else is read-only. */
  writable: readonly string[];
  /**
   * Places inside of these that stay read-only. One that is missing can be made by the
   * program, unless it is written with a `/` at its end: bubblewrap then makes it as an
   * empty folder, which stays.
   */
  readOnly: readonly string[];
  /** Places that it may not even read: keys, other agents' sessions. */
  hidden: readonly string[];
  network: boolean;
  /**
   * Without a network, a Unix socket by whose HTTP proxy bubblewrap lets programs out; they find
   * it by variables of their environment. Seatbelt has no such way.
   */
  proxy?: string;
  /**
   * A folder that bubblewrap shows as /tmp, kept from one program to the next. Without it each
   * program has an empty one. Seatbelt has one for the process.
   */
  temporary?: string;
  /** Places that show another folder or file; bubblewrap alone can do that. */
  shown?: readonly ShownPlace[];
  /** For bubblewrap: what starts it, in a user namespace of its own, and who the program is in there. */
  starter?: { argv: readonly string[]; uid: number; gid: number };
}

/** A place at which a program sees something else. */
export interface ShownPlace {
  /** Absolute, links followed. */
  at: string;
  from: string;
  rule: "writable" | "readOnly";
}

/** A program about to be started. */
export interface ProgramSpec {
  argv: readonly string[];
  /** Absolute. */
  cwd: string;
  env: Readonly<Record<string, string>>;
  /**
   * How its processes are distinguished: they are those of a PID namespace that its first process
   * waits for, or they get a limit of their own by the program `prlimit`. Absent: by their
   * environment, session and parents alone.
   */
  tree?: { kind: "namespace" } | { kind: "limit"; prlimit: string };
}

/** Confines programs to what a policy allows. */
export interface Sandbox {
  kind: "bubblewrap" | "seatbelt" | "none";
  /** Of `none` in the place of one that could not be had: why, and what helps. */
  missing?: string;
  /** The folder for temporary files that programs have of their own, as they see it. */
  temporary?: string;
  /**
   * The program as it has to be started to be confined so. Throws where it cannot be:
   * the program is then not to be started at all.
   */
  wrap(program: ProgramSpec, policy: SandboxPolicy): ProgramSpec;
}

/** Whether commands run in a sandbox; "waived" where they do not because the user chose so. */
export type Confinement = boolean | "waived";

export function getConfinement({ kind, missing }: Sandbox): Confinement {
  if (kind !== "none") return true;
  return missing === undefined ? "waived" : false;
}

/** Confines nothing: for people who said so. */
export const noSandbox: Sandbox = {
  kind: "none",
  wrap: (program) => program,
};

const OR_NONE = `Or choose the sandbox "none", and programs run with all your rights.`;

/** A sandbox was asked for and cannot be had here. Nothing is run without it. */
export class SandboxMissingError extends Error {
  readonly code = "sandbox_missing";
  /** Why, and what helps. */
  readonly problem: string;
  constructor(problem: string) {
    super(`${problem} ${OR_NONE}`);
    this.name = "SandboxMissingError";
    this.problem = problem;
  }
}

export interface SandboxOptions {
  /**
   * `auto`, the default: the one of this system. `any`: the same, and `none` where there is
   * none, which then says why in `missing`. `none` confines nothing.
   */
  kind?: "auto" | "any" | Sandbox["kind"];
  /**
   * Folders to look for bwrap in, as in PATH. Default: those of the system, then those of the
   * variable that are outside of `workspace`.
   */
  path?: string;
  /** The folder whose own programs are never used. */
  workspace?: string;
  /** Default: this system. */
  platform?: NodeJS.Platform;
}

/** Where packages put system programs such as bwrap: only root can put another one there. */
export const SYSTEM_PATH = "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin";

/** Looking for it runs a program: once for each `path`. */
const found = new Map<string, ReturnType<typeof findBubblewrap>>();

/**
 * The sandbox of this system, tried out. Rejects with `SandboxMissingError` if there is
 * none that works: never answers with a weaker one than was asked for.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { kind = "auto", platform = process.platform } = options;
  if (kind === "none") return noSandbox;
  if (kind === "any") return createSandbox({ ...options, kind: "auto" }).catch(noneInstead);
  if (platform === "linux" && kind !== "seatbelt") return linuxSandbox(options);
  if (platform === "darwin" && kind !== "bubblewrap") return macSandbox();
  throw new SandboxMissingError(
    kind === "auto"
      ? `There is no sandbox for ${platform}: bubblewrap needs Linux, Seatbelt needs macOS.`
      : `The sandbox "${kind}" is not for ${platform}. Choose "auto".`,
  );
}

function noneInstead(error: unknown): Sandbox {
  if (error instanceof SandboxMissingError) return { ...noSandbox, missing: error.problem };
  throw error;
}

/** Where bwrap is looked for: in the system's own folders first, and never in the workspace. */
export function joinSearchPath(workspace: string | undefined): string {
  return `${SYSTEM_PATH}:${cleanPath(process.env["PATH"], workspace)}`;
}

async function linuxSandbox({ path: given, workspace }: SandboxOptions): Promise<Sandbox> {
  const path = given ?? joinSearchPath(workspace);
  const { bubblewrapSandbox, findBubblewrap } = await import("./bubblewrap.ts");
  const search = found.get(path) ?? findBubblewrap(path);
  found.set(path, search);
  const result = await search;
  if ("command" in result) return bubblewrapSandbox(result.command);
  throw new SandboxMissingError(result.problem);
}

async function macSandbox(): Promise<Sandbox> {
  const { SEATBELT, seatbeltSandbox } = await import("./seatbelt.ts");
  try {
    realpathSync(SEATBELT);
  } catch {
    throw new SandboxMissingError(`There is no ${SEATBELT} on this machine.`);
  }
  const temporary = realpathSync(mkdtempSync(join(tmpdir(), "gyre-sandbox-")));
  process.once("exit", () => rmSync(temporary, { recursive: true, force: true }));
  return seatbeltSandbox(temporary);
}
