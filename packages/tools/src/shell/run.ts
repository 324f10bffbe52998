import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import type { Clock, TextContent } from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import { asEnvironment, UNSIGNED } from "../git/config.ts";
import { findNamedFiles } from "../git/private/named-files.ts";
import { type GitView, PrivateGit } from "../git/private/private-git.ts";
import { type CapturedOutput, firstBytes, lastBytes, saveOutput } from "@gyre/ai/programs";
import { containCommand } from "../process/containment.ts";
import { type ProgramEnd, runProgram, startProgram } from "../process/processes.ts";
import { howEnded } from "../process/program-end.ts";
import { fromSource, humanSize, sanitize } from "@gyre/ai/text";
import { shellOn } from "./find-shell.ts";
import { GitWatch } from "./git-watch.ts";
import { type HeldPlaces, holdPlaces } from "./held-places.ts";
import { moveCaches } from "../sandbox/caches.ts";
import {
  followNamed,
  protectedEntries,
  type PutAside,
  putAside,
  putNamedAside,
} from "./quarantine.ts";
import { isWithin, realPlace } from "../sandbox/places.ts";
import {
  noSandbox,
  type ProgramSpec,
  type Sandbox,
  type SandboxPolicy,
} from "../sandbox/sandbox.ts";
import { listAdded } from "../workspace/added.ts";
import { IN_GIT, PARTLY_PROTECTED } from "../workspace/protected.ts";
import {
  SHELL_MAX_BYTES,
  SHELL_MAX_TIMEOUT_MS,
  SHELL_PROGRESS_BYTES,
  SHELL_PROGRESS_MS,
  SHELL_STDERR_BYTES,
  SHELL_TIMEOUT_MS,
  type ShellDetails,
  type ShellOptions,
} from "./tool.ts";
import { counted, textResult, within } from "../text/text.ts";
import { listedName } from "../text/truncate.ts";
import { JobFeed, type JobTerminal } from "./jobs/job-table.ts";
import { Screen } from "../terminal/screen.ts";
import { inTerminal } from "./pseudo-terminal.ts";
import { hintAtSandbox } from "./sandbox-hint.ts";
import { openDomains } from "./domains.ts";
import type { DomainProxy } from "../web/proxy/proxy.ts";
import { limitTemporary, makeTemporary } from "./temporary.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { readable } from "../effects/byte-path.ts";
import type { RehearsedCommand } from "./rehearse.ts";
import { workingFolder } from "./working-folder.ts";

/** The command is in the call: to repeat it says nothing more. */
const SOURCE = { kind: "command", name: "shell" } as const;

export interface ShellArguments {
  command: string;
  timeoutMs?: number;
  background?: unknown;
  cwd?: string;
  unsandboxed?: unknown;
  tty?: unknown;
}

/** The options of the tool, with what holds for one command. */
export interface CommandOptions extends ShellOptions {
  /** It may use the network: hosts that need no question. */
  granted?: readonly string[];
}

/** A command that may use the network reaches hosts one by one, or all where a sandbox has no way for that. */
function withGrant({ granted, ...options }: CommandOptions, { kind }: Sandbox): ShellOptions {
  const { decideApproved, domains = [] } = options;
  if (!granted || !decideApproved || options.network) return options;
  if (kind !== "bubblewrap") return options.mostDomains ? options : { ...options, network: true };
  return { ...options, decide: decideApproved, domains: [...domains, ...granted] };
}

/** Runs a command, or starts it as a job, and answers as the tool does. */
export async function runShell(
  env: ToolEnv,
  given: CommandOptions,
  args: ShellArguments,
  signal: AbortSignal,
  onUpdate: (progress: AgentToolResult) => void,
): Promise<AgentToolResult> {
  const { plain: direct, timeoutMs } = await shellProgram(env, args);
  const sandbox = args.unsandboxed !== undefined ? noSandbox : await env.sandbox();
  const terminal = args.tty === true ? openTerminal(given, args) : undefined;
  const plain = terminal ? await inTerminal(env, sandbox, direct) : direct;
  const options = withGrant(given, sandbox);
  const isJob = args.background === true;
  if (isJob && !options.jobs) {
    throw new Error("There are no background jobs here. Run it without background.");
  }
  const isWrapped = sandbox.kind === "bubblewrap";
  const git = isWrapped ? shareGit(env) : undefined;
  let view = await git?.open();
  let proxy: DomainProxy | undefined;
  let held: HeldPlaces | undefined;
  try {
    proxy = isWrapped ? await openDomains(env, options) : undefined;
    held = sandbox === noSandbox ? undefined : await holdProtected(env, view);
    const confined = await confine(env, options, sandbox, plain, { view, proxy, held });
    const program =
      sandbox.kind === "none" ? await containCommand(confined, args.command) : confined;
    // A command that has all rights of the user needs no git to use them.
    const watch = sandbox.kind === "none" ? undefined : watchGit(env, view);
    /** What is open for the command is closed when it ends as a job. */
    const becomeJob = (): (() => Promise<void>) => {
      watch?.beforeJob();
      const endView = git && view ? git.endLater(view) : undefined;
      const [jobProxy, jobHeld] = [proxy, held];
      view = undefined;
      proxy = undefined;
      held = undefined;
      return async () => {
        jobHeld?.end();
        await jobProxy?.close();
        await endView?.();
        await watch?.afterJob(() => hasJobs(options));
      };
    };
    if (!isJob || !options.jobs) {
      return await runCommand({
        env,
        options,
        sandbox,
        program,
        command: args.command,
        timeoutMs,
        signal,
        watch,
        view,
        proxy,
        becomeJob,
        onUpdate,
        ...(terminal && { terminal }),
      });
    }
    const open = { view, proxy, held };
    const after = becomeJob();
    try {
      const { command } = args;
      const id = await options.jobs.start(program, command, args.timeoutMs, after, terminal);
      const how = terminal ? "Read its screen and type with" : "Read its output with";
      return textResult(`Started as ${id}. ${how} the tool jobs.`, { id });
    } catch (error) {
      ({ view, proxy, held } = open);
      throw error;
    }
  } finally {
    held?.end();
    await proxy?.close();
    await view?.end();
  }
}

/** A terminal for a command, with what one that types there has to know of its rights. */
function openTerminal({ granted }: CommandOptions, { unsandboxed }: ShellArguments): JobTerminal {
  return {
    screen: new Screen(),
    isUnsandboxed: unsandboxed !== undefined,
    hasGrant: granted !== undefined,
  };
}

/** The shell with its command line, and the time that it may take. */
export async function shellProgram(
  env: ToolEnv,
  { command, cwd, timeoutMs: wanted = SHELL_TIMEOUT_MS }: ShellArguments,
): Promise<{ plain: ProgramSpec; timeoutMs: number }> {
  const timeoutMs = within("timeoutMs", wanted, { least: 1, most: SHELL_MAX_TIMEOUT_MS });
  const plain = {
    argv: [shellOn(env.environment["PATH"] ?? ""), "-c", command],
    cwd: await workingFolder(env, cwd),
    env: env.environment,
  };
  return { plain, timeoutMs };
}

/**
 * Keeps what a command did in a layer, as if it ran now: what tools may not make is put aside. Gives the
 * result of that run.
 */
export async function keepRehearsed(
  env: ToolEnv,
  options: ShellOptions,
  command: string,
  { layer, effects, chosen, end }: RehearsedCommand,
): Promise<AgentToolResult> {
  const aside: PutAside[] = [];
  if (chosen.length === 0) await layer.remove();
  else {
    const before = await protectedEntries(env);
    const named = followNamed(await findNamedFiles(env.workspace.root, env.environment));
    const watch = watchGit(env, undefined);
    const gitBefore = watch.before();
    try {
      await layer.keep(chosen, command);
      aside.push(...(await putAside(env, before)), ...(await putNamedAside(env, named)));
    } finally {
      aside.push(...(await watch.putAside(gitBefore, hasJobs(options))));
    }
  }
  const notes = [hintAtSandbox(end, options), describeChoice(effects, chosen)];
  return shellResult(env, options, end, aside, notes);
}

/** Names in the result that were not kept. */
const MAX_DISCARDED = 20;

/** What the model has to know of what the user did not keep. */
function describeChoice(
  effects: RehearsedCommand["effects"],
  chosen: RehearsedCommand["chosen"],
): string | undefined {
  if (chosen.length === effects.length) return undefined;
  const kept = new Set(chosen);
  const left = effects.filter((effect) => !kept.has(effect)).map(({ path }) => path);
  const named = left.slice(0, MAX_DISCARDED).map((path) => listedName(readable(path)));
  const more = left.length - named.length;
  return (
    `It ran in a layer over the workspace, and the user discarded ${counted(left.length, "change")} of it: ` +
    `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`
  );
}

interface Command {
  env: ToolEnv;
  options: ShellOptions;
  sandbox: Sandbox;
  program: ProgramSpec;
  command: string;
  timeoutMs: number;
  signal: AbortSignal;
  watch: GitWatch | undefined;
  view: GitView | undefined;
  proxy: DomainProxy | undefined;
  /** Gives what is to be done when it ends as a job. */
  becomeJob: () => () => Promise<void>;
  /** Absent where it runs without one. */
  terminal?: JobTerminal;
  onUpdate: (progress: AgentToolResult) => void;
}

async function runCommand(command: Command): Promise<AgentToolResult> {
  const { env, options, sandbox, watch, view, onUpdate, terminal } = command;
  const shown = (text: string): string => terminal?.screen.rows.join("\n") ?? text;
  const progress = new Progress(env.clock, (text) => onUpdate(textResult(sanitize(shown(text)))));
  const before = await protectedEntries(env);
  const named = followNamed(await findNamedFiles(env.workspace.root, env.environment));
  const gitBefore = watch?.before();
  try {
    const end = await runMovable(command, (piece) => progress.add(piece));
    if ("id" in end) {
      return textResult(
        `The user has moved it to the background: it goes on as ${end.id}, and you are notified when it ends. Read its output with the tool jobs.`,
        end,
      );
    }
    const aside: PutAside[] = [];
    const carried: string[] = [];
    // What fails before is no way to have the rest left where it is.
    try {
      aside.push(...(await putAside(env, before)));
      if (watch) aside.push(...(await putNamedAside(env, named)));
      carried.push(...((await view?.end()) ?? []));
    } finally {
      if (watch && gitBefore) aside.push(...(await watch.putAside(gitBefore, hasJobs(options))));
    }
    const denials = command.proxy?.denials() ?? [];
    const notes = watch ? [hintAtSandbox(end, options), await limitTemporary(env, sandbox)] : [];
    return await shellResult(env, options, end, aside, [...carried, ...denials, ...notes]);
  } finally {
    progress.stop();
  }
}

/** Runs a command to its end, or until the user has it go on as a job. */
async function runMovable(
  { env, options: { jobs }, program, command, timeoutMs, signal, becomeJob, terminal }: Command,
  onOutput: (piece: string) => void,
): Promise<ProgramEnd | { id: string }> {
  const { clock, spoolFolder } = env;
  const drawn = terminal && { terminal: terminal.screen };
  const run = { timeoutMs, signal, spoolFolder, clock, ...drawn };
  if (!jobs || signal.aborted) return runProgram(program, { ...run, onOutput });
  const feed = new JobFeed();
  const startedAt = clock.now();
  let isMoved = false;
  const running = await startProgram(program, {
    ...run,
    onOutput(piece) {
      feed.add(piece);
      if (!isMoved) onOutput(piece);
    },
  });
  let takeBack = (): void => {};
  const moved = new Promise<{ id: string }>((settle) => {
    takeBack = jobs.offer({
      move() {
        const end: { after?: () => Promise<void> } = {};
        const after = async (): Promise<void> => end.after?.();
        const id = jobs.adopt({
          ...{ command, startedAt, program: running, feed, after },
          ...(terminal && { terminal }),
        });
        isMoved = true;
        end.after = becomeJob();
        takeBack();
        settle({ id });
      },
    });
  });
  try {
    return await Promise.race([running.ended, moved]);
  } finally {
    takeBack();
  }
}

/** One for a workspace: it remembers what it saw. */
const watches = new WeakMap<Workspace, GitWatch>();

function watchGit(env: ToolEnv, view: GitView | undefined): GitWatch {
  const watch = watches.get(env.workspace) ?? new GitWatch(env);
  watches.set(env.workspace, watch);
  if (view?.place) watch.include(view.place.commonFolder);
  return watch;
}

/** One for a workspace: commands that run at once see the same. */
const privateGits = new WeakMap<Workspace, PrivateGit>();

function shareGit(env: ToolEnv): PrivateGit {
  const git = privateGits.get(env.workspace) ?? new PrivateGit(env);
  privateGits.set(env.workspace, git);
  return git;
}

export function hasJobs({ jobs }: ShellOptions): boolean {
  return jobs?.list().some(({ end }) => end === undefined) ?? false;
}

/** The program in the sandbox, with the caches of package managers where it can write to them. */
export async function confine(
  env: ToolEnv,
  options: ShellOptions,
  sandbox: Sandbox,
  program: ProgramSpec,
  { view, proxy, held }: Pick<Command, "view" | "proxy"> & { held: HeldPlaces | undefined },
  cover: (policy: SandboxPolicy) => SandboxPolicy = (policy) => policy,
): Promise<ProgramSpec> {
  if (held === undefined) return program;
  const places = await createPolicy(env, options, view, held.places);
  const policy = cover(proxy ? { ...places, proxy: proxy.path } : places);
  const { temporary } = sandbox;
  const caches = temporary === undefined ? {} : moveCaches(program, policy, temporary);
  const added = { ...caches, ...asEnvironment(UNSIGNED) };
  return sandbox.wrap({ ...program, env: { ...added, ...program.env } }, policy);
}

/** What tools may not change in the workspace, as far as it can be mounted for a command. */
export async function holdProtected(env: ToolEnv, view: GitView | undefined): Promise<HeldPlaces> {
  const named = await findNamedFiles(env.workspace.root, env.environment);
  const places = [
    ...(await protectedPlaces(env)),
    ...named.filter((path) => realPlace(path) === path),
  ];
  const gitFolder = view?.place?.commonFolder;
  return holdPlaces(
    env.workspace,
    gitFolder === undefined ? places : places.filter((path) => !isWithin(path, gitFolder)),
  );
}

/**
 * The workspace can be changed but for what tools may not change in it. What is too long
 * to be shown can be read: it is in the spool folder, which may be in a /tmp that the
 * sandbox has another one of.
 */
async function createPolicy(
  env: ToolEnv,
  options: ShellOptions,
  view: GitView | undefined,
  held: readonly string[],
): Promise<SandboxPolicy> {
  const { root } = env.workspace;
  // Of the workspace, what is not held can be changed anyway, and a command could put a link there.
  const writable = (options.writable ?? []).filter(
    (folder) =>
      !isWithin(resolve(folder), root) || held.some((path) => isWithin(resolve(folder), path)),
  );
  for (const folder of writable) {
    if (!existsSync(folder)) await mkdir(folder, { recursive: true });
  }
  return {
    writable: [root, ...env.workspace.folders, ...writable],
    readOnly: [...held, ...(view?.visible ?? []), ...(options.readable ?? []), env.spoolFolder],
    ...(view && { shown: view.shown }),
    hidden: options.hidden ?? [],
    network: options.network ?? false,
    ...(env.temporary && { temporary: await makeTemporary(env.temporary.folder) }),
  };
}

/**
 * What is read-only at the top of the workspace, and what of it is inside of folders
 * that are not. A link cannot be held in its place: the sandbox does not take it.
 */
async function protectedPlaces({ workspace }: ToolEnv): Promise<string[]> {
  const places: string[] = [];
  const look = async (folder: string): Promise<void> => {
    const entries = await workspace.list(folder);
    for (const { name, kind } of entries) {
      const path = folder === "." ? name : `${folder}/${name}`;
      if (kind === "link") continue;
      const { absolute, readOnly } = await workspace.resolve(path);
      // git itself is to be used: of its folder, only what runs or redirects is held.
      const isHeld = folder === ".git" ? IN_GIT.has(name.toLowerCase()) : readOnly;
      if (kind === "folder" && PARTLY_PROTECTED.includes(path)) await look(path);
      else if (isHeld) places.push(absolute);
    }
    // Where there are no hooks yet, none are to be made.
    const lacksHooks = folder === ".git" && !entries.some(({ name }) => name === "hooks");
    if (lacksHooks) places.push(`${join(workspace.root, ".git", "hooks")}/`);
  };
  await look(".");
  for (const folder of listAdded(workspace)) places.push(...(await addedPlaces(workspace, folder)));
  return places;
}

/**
 * The same of a folder that was added. All of its `.git` is read-only: commands commit in the workspace alone, where
 * what they do with git is checked.
 */
async function addedPlaces(workspace: Workspace, start: string): Promise<string[]> {
  const places: string[] = [];
  for (const inner of ["", ...PARTLY_PROTECTED.filter((name) => name !== ".git")]) {
    const folder = inner === "" ? start : `${start}/${inner}`;
    const { exists, path } = await workspace.resolve(folder);
    // What is behind a link has another place.
    if (!exists || path !== folder) continue;
    for (const { name, kind } of await workspace.list(folder)) {
      const { absolute, readOnly } = await workspace.resolve(`${folder}/${name}`, {
        keepLink: true,
      });
      if (kind !== "link" && readOnly) places.push(absolute);
    }
  }
  return places;
}

/** Reports the end of the output, not more often than it can be looked at. */
class Progress {
  readonly #clock: Clock;
  readonly #report: (text: string) => void;
  #tail = "";
  #reportedAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, report: (text: string) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  add(piece: string): void {
    // One more than is shown, for a character that is cut in two.
    this.#tail = (this.#tail + piece).slice(-SHELL_PROGRESS_BYTES - 1);
    if (this.#cancel) return;
    const wait = this.#reportedAt + SHELL_PROGRESS_MS - this.#clock.now();
    if (wait <= 0) this.#now();
    else this.#cancel = this.#clock.after(wait, () => this.#now());
  }

  stop(): void {
    this.#cancel?.();
  }

  #now(): void {
    this.#cancel = undefined;
    this.#reportedAt = this.#clock.now();
    this.#report(lastBytes(this.#tail, SHELL_PROGRESS_BYTES));
  }
}

async function shellResult(
  env: ToolEnv,
  { jobs }: ShellOptions,
  end: ProgramEnd,
  aside: readonly PutAside[],
  notes: readonly (string | undefined)[],
): Promise<AgentToolResult> {
  const { stdout, stderr, exitCode, durationMs, timedOut, aborted } = end;
  const forStderr = Math.max(SHELL_STDERR_BYTES, SHELL_MAX_BYTES - stdout.bytes);
  const shownStderr = await shownOutput(env, stderr, forStderr);
  const forStdout = SHELL_MAX_BYTES - Math.min(stderr.bytes, forStderr);
  const shownStdout = await shownOutput(env, stdout, forStdout);
  const parts: (string | TextContent)[] = [howEnded(end)];
  if (timedOut) {
    parts.push(
      `Give it more with timeoutMs (at most ${SHELL_MAX_TIMEOUT_MS})` +
        `${jobs ? ", or start it with background: true" : ""}.`,
    );
  }
  for (const { path, now, why, isChange, failure } of aside) {
    parts.push(
      `It ${isChange ? "changed" : "made"} ${listedName(path)}, ${why}. ${
        now === undefined
          ? `It could not be put aside (${failure}): say so to the user.`
          : `It was put aside: ${now}. Ask the user to ${isChange ? "change" : "make"} it.`
      }`,
    );
  }
  for (const note of notes) if (note !== undefined) parts.push(note);
  if (end.left) parts.push(`Could not be ended: ${end.left.join(", ")}.`);
  parts.push(...shownStdout);
  if (shownStderr.length > 0) parts.push("stderr:", ...shownStderr);
  if (shownStdout.length + shownStderr.length === 0) parts.push("No output.");
  const details: ShellDetails = {
    stdout: inMemory(stdout),
    stderr: inMemory(stderr),
    ...([shownStdout, shownStderr].some((shown) => shown.length > 1) && { isCut: true }),
    ...((stdout.tail !== "" || stderr.tail !== "") && { lines: stdout.lines + stderr.lines }),
    exitCode,
    durationMs,
    timedOut,
    aborted,
  };
  return {
    ...textResult(parts, details),
    isError: exitCode !== 0 || timedOut || aborted,
  };
}

function inMemory({ head, tail, path }: CapturedOutput): string {
  return tail === "" ? head : `${head}\n[… the rest is in ${path ?? "no file"} …]\n${tail}`;
}

/** A stream as the model is shown it: nothing, all, or beginning and end. */
async function shownOutput(
  env: ToolEnv,
  output: CapturedOutput,
  maxBytes: number,
): Promise<(string | TextContent)[]> {
  if (output.bytes === 0) return [];
  const head = sanitize(output.head);
  const tail = output.tail === "" ? head : sanitize(output.tail);
  const isShort = output.tail === "" && Buffer.byteLength(head) <= maxBytes;
  if (isShort) return [fromSource(SOURCE, head.replace(/\n$/, ""))];

  const first = firstBytes(head, Math.floor(maxBytes / 3));
  const last = lastBytes(tail, maxBytes - Buffer.byteLength(first));
  const path =
    output.path ?? (output.lost ? undefined : await saveOutput(env.spoolFolder, output.head));
  const shownBytes = Buffer.byteLength(first) + Buffer.byteLength(last);
  const lines = Math.max(0, output.lines - countLines(first) - countLines(last));
  const size = humanSize(Math.max(0, output.bytes - shownBytes));
  const amount = lines > 0 ? `${counted(lines, "line")} (${size})` : size;
  const lost = output.lost === undefined ? "" : ` (not whole: ${output.lost})`;
  const where =
    path === undefined
      ? `they are lost${lost}`
      : `all of it is in ${path}${lost}: read shows parts of it`;
  return [
    fromSource(SOURCE, first.replace(/\n$/, "")),
    `[… ${amount} left out; ${where} …]`,
    fromSource(SOURCE, last.replace(/\n$/, "")),
  ];
}

function countLines(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}
