import { relative, sep } from "node:path";
import type { GuardedTool } from "../contract/access.ts";
import { defineEntryTool } from "../contract/define-tool.ts";
import type { ToolEnv } from "../contract/env.ts";
import type { JobTable } from "./jobs/job-table.ts";
import { cutText, sanitize } from "@gyre/ai/text";
import { counted } from "../text/text.ts";
import { shellOn } from "./find-shell.ts";
import type { RehearsedCommand } from "./rehearse.ts";
import type { ShellArguments } from "./run.ts";
import { workingFolder } from "./working-folder.ts";
import { takeNetworkGrant } from "../web/proxy/grants.ts";
import { shellEntry } from "./entry.ts";

/** How long a command may take, unless the call says otherwise. */
export const SHELL_TIMEOUT_MS = 120_000;
/** The most time that a call of `shell` may ask for. */
export const SHELL_MAX_TIMEOUT_MS = 600_000;
/** Shown to the model of both streams together. */
export const SHELL_MAX_BYTES: number = 30 * 1024;
/** Of these, for stderr where stdout needs the rest. */
export const SHELL_STDERR_BYTES: number = 10 * 1024;
/** Progress is reported at most this often. */
export const SHELL_PROGRESS_MS = 100;
/** The end of the output that is reported as progress. */
export const SHELL_PROGRESS_BYTES: number = 4 * 1024;
/** Of a command, in the line for the person who is asked. */
export const SHELL_SUMMARY_CHARS = 300;
/** From the end of its time, or an abort, to the answer: more than it takes. */
const SETTLE_MS = 2_000;

export interface ShellOptions {
  /** Whether commands reach the network. Default false. */
  network?: boolean;
  /**
   * Hosts that commands without a network reach in bubblewrap by a proxy for HTTP and HTTPS, as
   * "registry.npmjs.org", "*.github.com" or "localhost:8080". Ports are 80 and 443 unless one is given.
   */
  domains?: readonly string[];
  /** The most that they may be, whatever a person says. Absent: all. */
  mostDomains?: readonly string[];
  /** Asked about hosts that are not listed: whether a command may connect. */
  decide?: (host: string, port: number) => Promise<boolean>;
  /** The same, for commands alone that `permissions` has let use the network. */
  decideApproved?: (host: string, port: number) => Promise<boolean>;
  /** For `background`; without it there are no background jobs. */
  jobs?: JobTable;
  /** Places that commands may not read, absolute. */
  hidden?: readonly string[];
  /** Further folders that commands may change, absolute. One that is missing is made. */
  writable?: readonly string[];
  /** Folders that commands may read also where others of their kind are out of sight, real paths. */
  readable?: readonly string[];
  /** There is no sandbox, because the user chose so: none is described. Default false. */
  unconfined?: boolean;
}

/** What an application gets to know of a command. */
export interface ShellDetails {
  /** What is in memory of it: all, or the beginning and the end. */
  stdout: string;
  stderr: string;
  /** The model gets less than that: the beginning and the end. */
  isCut?: true;
  /** How many lines it has written, where not all are in memory. */
  lines?: number;
  exitCode: number | null;
  durationMs: number;
  timedOut: boolean;
  aborted: boolean;
}

const properties = {
  command: { type: "string" },
  timeoutMs: {
    type: "integer",
    description: `Default ${SHELL_TIMEOUT_MS}`,
  },
  description: { type: "string" },
  cwd: { type: "string" },
} as const;

const unsandboxed = {
  unsandboxed: {
    type: "string",
    description: "Reason; asks the user, if it cannot work in the sandbox",
  },
} as const;

const background = {
  background: {
    type: "boolean",
    description: "As a job: see jobs",
  },
} as const;

const tty = {
  tty: { type: "boolean" },
} as const;

/** Runs a command. It and all that it started has ended when the answer is there. */
export function shellTool(env: ToolEnv, options: ShellOptions = {}): GuardedTool {
  const rehearsed = new Map<string, RehearsedCommand>();
  return defineEntryTool(shellEntry, {
    label: "Shell",
    description:
      `Run a ${hasBash(env) ? "bash" : "POSIX sh"} command without stdin. What it starts ends with it` +
      `${options.jobs ? "; use background for servers" : ""}. ${describeRights(env, options)}`,
    parameters: {
      type: "object",
      properties: {
        ...properties,
        ...(!options.unconfined && unsandboxed),
        ...(options.jobs && background),
        ...(process.platform !== "win32" && tty),
      },
      required: ["command"],
    } as const,
    timeoutMs: SHELL_MAX_TIMEOUT_MS + SETTLE_MS,
    abortGraceMs: SETTLE_MS,
    async execute(args, { id, signal, update: onUpdate }) {
      const { keepRehearsed, runShell } = await import("./run.ts");
      const tried = rehearsed.get(id);
      rehearsed.delete(id);
      const granted = takeNetworkGrant(env.workspace, id);
      if (tried) return keepRehearsed(env, options, args.command, tried);
      return runShell(env, { ...options, ...(granted && { granted }) }, args, signal, onUpdate);
    },
    async rehearse(args, context) {
      const { rehearseShell } = await import("./rehearse.ts");
      // What waits for a decision when the toolset is closed is decided on no more.
      if (rehearsed.size === 0) env.onClose?.(rehearsed, () => discardAll(rehearsed));
      return rehearseShell(env, options, readArguments(args), context, rehearsed);
    },
    async access(args) {
      const { command, cwd, unsandboxed } = args;
      if (typeof command !== "string" || command.trim() === "") {
        throw new Error("There is no command to run.");
      }
      const folder = await workingFolder(env, typeof cwd === "string" ? cwd : undefined);
      const isElsewhere = folder !== env.workspace.root;
      const inside = relative(env.workspace.root, folder).replaceAll(sep, "/");
      return {
        kind: "run",
        targets: [command],
        folder: isElsewhere ? inside : ".",
        ...(!hasBash(env) && { language: "sh" }),
        ...(unsandboxed !== undefined && { unsandboxed: true }),
        summary:
          `Run ${shownCommand(command)}` +
          (isElsewhere ? ` in ${shownCommand(folder)}` : "") +
          (unsandboxed === undefined ? "" : ` outside of the sandbox: ${readReason(unsandboxed)}`),
      };
    },
  });
}

function readArguments(args: Record<string, unknown>): ShellArguments {
  const { command, cwd, timeoutMs, background, tty } = args;
  return {
    command: typeof command === "string" ? command : "",
    background,
    tty,
    ...(typeof cwd === "string" && { cwd }),
    ...(typeof timeoutMs === "number" && { timeoutMs }),
  };
}

function hasBash({ environment }: ToolEnv): boolean {
  return shellOn(environment["PATH"] ?? "") !== "sh";
}

function describeRights(
  { temporary }: ToolEnv,
  { unconfined, network, domains = [] }: ShellOptions,
): string {
  if (unconfined) return "It runs with the user's rights.";
  return (
    `Sandboxed: only the workspace and /tmp${temporary ? " (private, empty on resume)" : ""} ` +
    `are writable${network ? "" : `, no network${describeDomains(domains)}`}.`
  );
}

function describeDomains(domains: readonly string[]): string {
  return domains.length === 0 ? "" : ` but by HTTP(S)_PROXY to ${domains.join(", ")}`;
}

function shownCommand(command: string): string {
  const shown = sanitize(command, { keepNewlines: false, exact: true });
  const cut = cutText(shown, SHELL_SUMMARY_CHARS);
  return cut === shown ? shown : `${cut}… (${counted(shown.length, "character")} in all)`;
}

function readReason(unsandboxed: unknown): string {
  return typeof unsandboxed === "string" && unsandboxed !== ""
    ? shownCommand(unsandboxed)
    : "no reason given";
}

async function discardAll(rehearsed: Map<string, RehearsedCommand>): Promise<void> {
  const layers = [...rehearsed.values()].map(({ layer }) => layer);
  rehearsed.clear();
  for (const layer of layers) await layer.remove();
}
