import { existsSync } from "node:fs";
import { access, chmod, constants, mkdir, mkdtemp, readdir } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { cleanEnvironment, cleanPath } from "@gyre/ai/programs";
import type { AgentTool } from "@gyre/agent";
import { type Clock, errnoOf, systemClock } from "@gyre/ai";
import { taskEntry } from "./agents/task/entry.ts";
import { type ToolOptions, type ToolParts, TOOLS } from "./catalog.ts";
import type { ToolEntry } from "./contract/entry.ts";
import type { ToolEnv } from "./contract/env.ts";
import { JobTable } from "./shell/jobs/job-table.ts";
import { KEEPING, reapLeftovers, TEMPORARY_NAME } from "./process/leftovers.ts";
import { removeFolder } from "./process/remove-folder.ts";
import { NotePad } from "./memory/notes/tool.ts";
import { isWithin, realPlace, secretPlaces, TEMPORARY_BYTES } from "./sandbox/places.ts";
import { noSuchTool, ToolRegistry } from "./contract/registry.ts";
import { createSandbox, type Sandbox, type SandboxOptions } from "./sandbox/sandbox.ts";
import { SeenFiles } from "./workspace/seen.ts";
import type { ShellOptions } from "./shell/tool.ts";
import { TodoList } from "./memory/todo/tool.ts";
import { openWorkspace } from "./workspace/workspace.ts";

const OWNER_ONLY = 0o700;

/** Those that ask models are made last: they get the tools made before. */
const MAKING_ORDER = TOOLS.toSorted((a, b) => findRank(a) - findRank(b));

export interface ToolsetOptions extends ToolOptions {
  /** The folder to work in. */
  root: string;
  /** Further folders that belong to the workspace; see `Workspace.addFolder`. */
  addDirs?: readonly string[];
  /** Folders outside of the workspace that tools and commands may read without a question. */
  readable?: readonly string[];
  /**
   * The tools to have, by name and in this order. Default: all. Only these are loaded; a
   * name that is not known is an error.
   */
  tools?: readonly string[];
  /**
   * Default "auto": the one of this system, tried out at once, and an error where there is
   * none. "any" is tried out when the first program is about to be started, and confines
   * nothing where there is none: `env.sandbox()` of the toolset says which it is.
   */
  sandbox?: NonNullable<SandboxOptions["kind"]> | Sandbox;
  /** Whether commands reach the network. Default false. */
  network?: boolean;
  /** Hosts that commands without a network reach; see `ShellOptions`. */
  domains?: readonly string[];
  /** The most that `domains` and answers may allow; see `ShellOptions`. */
  mostDomains?: readonly string[];
  /** Whether a command that may use the network connects to a host that is not listed; see `ShellOptions`. */
  decideHost?: (host: string, port: number) => Promise<boolean>;
  /** Further folders that commands may change, absolute. One that is missing is made. */
  writable?: readonly string[];
  /** Further places that tools may not change; see `WorkspaceOptions`. */
  readOnly?: readonly string[];
  /**
   * Files that neither tools nor sandboxed commands may change, absolute, there or not. Those
   * outside of the folder are left alone.
   */
  readOnlyFiles?: readonly string[];
  /** Further places that commands may not read, absolute; keys of the usual places are hidden. */
  hidden?: readonly string[];
  /** Places that neither commands nor other tools may read or change, absolute. */
  secret?: readonly string[];
  /** Further environment variables for programs, unless they look like keys. */
  keepVariables?: readonly string[];
  /** Where long output and notes on running programs go. Default: `gyre/tools` in the user's state folder. */
  stateFolder?: string;
  /** Called with what a person should know of earlier agents: what one was ended in the middle of is undone. */
  warn?: (text: string) => void;
  /** What sandboxed commands may leave in their /tmp. Default 4 GB. */
  temporaryBytes?: number;
  /** Default: the variables of this process. */
  environment?: Readonly<Record<string, string | undefined>>;
  clock?: Clock;
  /** The whole of a long result by its key: `read` gives it for the path `kept:KEY`. */
  kept?: (key: string) => Promise<string | undefined>;
  /** Why the model does not get a file that is no text: see `ToolEnv`. Without it, `read` gives it images alone. */
  explainFile?: ToolEnv["explainFile"];
  /** The most tokens that a page of a result may take: less than a result that is shortened. */
  pageTokens?: () => number;
}

/** The tools of an agent, and what they work with. */
export interface Toolset {
  registry: ToolRegistry;
  env: ToolEnv;
  jobs: JobTable;
  todos: TodoList;
  notes: NotePad;
  /** Makes one more of our tools. One that is there stays as it is; a name that is not known is an error. */
  add(name: string): Promise<void>;
  /** Ends all jobs and lets go of the folder. What long output was kept is gone. */
  close(): Promise<void>;
}

/** Tools that ask models come after the others, and sub-agents, which may have all of them, at last. */
function findRank({ name, presentation }: Pick<ToolEntry, "name" | "presentation">): number {
  return presentation.delegates ? (name === taskEntry.name ? 2 : 1) : 0;
}

/** Opens a folder to work in, with our tools for it. Ends first what earlier agents left running. */
export async function openToolset(options: ToolsetOptions): Promise<Toolset> {
  const offered = TOOLS.filter((tool) => isOffered(tool, options)).map(({ name }) => name);
  const names = [...new Set(options.tools ?? offered)];
  for (const name of names) if (!offered.includes(name)) throw noSuchTool(name, offered);
  const { clock = systemClock, environment = process.env, network = false } = options;
  const { keepVariables: keep = [], readOnly = [], secret } = options;
  const wanted = options.stateFolder ?? defaultStateFolder(environment);
  const stateFolder = await makeStateFolder(wanted);
  await reapLeftovers(stateFolder);
  if ((await readdir(stateFolder)).some((name) => name.startsWith(KEEPING))) {
    const { recoverLayers } = await import("./effects/layers.ts");
    for (const sentence of await recoverLayers(stateFolder)) options.warn?.(sentence);
  }
  const { findNamedFiles } = await import("./git/private/named-files.ts");
  const path = cleanPath(environment["PATH"], options.root);
  const named = await findNamedFiles(options.root, { ...environment, PATH: path });
  const files = listInside([...(options.readOnlyFiles ?? []), ...named], options.root);
  const sandbox = keepFiles(await prepareSandbox(options.sandbox, options.root), files);
  const root = realPlace(options.root);
  const workspace = await openWorkspace(options.root, {
    readOnly: [...readOnly, ...files.map((path) => toPattern(relative(root, path)))],
    ...(secret && { hidden: secret }),
    ...(options.addDirs && { folders: options.addDirs }),
    environment,
  });
  const around = [workspace.root, ...workspace.folders];
  const readable = (options.readable ?? [])
    .map(realPlace)
    .filter((folder) => !around.some((each) => isWithin(folder, each)));
  for (const folder of readable) workspace.allowReading(folder, { unasked: true });
  const spoolFolder = await mkdtemp(join(stateFolder, "agent-")).catch(async (error: unknown) => {
    await workspace.close();
    throw error;
  });
  const closers = new Map<object, () => Promise<void>>();
  const env: ToolEnv = {
    workspace,
    seen: new SeenFiles(),
    sandbox,
    spoolFolder,
    temporary: {
      folder: join(spoolFolder, TEMPORARY_NAME),
      maxBytes: options.temporaryBytes ?? TEMPORARY_BYTES,
    },
    environment: cleanEnvironment(environment, { network, workspace: workspace.root, keep }),
    clock,
    ...(options.pageTokens && { pageTokens: options.pageTokens }),
    ...(options.kept && { kept: options.kept }),
    ...(options.explainFile && { explainFile: options.explainFile }),
    onClose: (key, work) => void closers.set(key, work),
  };
  // The folder has a name that no other process has.
  const token = basename(spoolFolder).replace(/^agent-/, "");
  const jobs = new JobTable({ spoolFolder, clock, token });
  const todos = new TodoList();
  const notes = new NotePad();
  const made = new Map<string, AgentTool>();
  const shell = { ...shellOptions(options, jobs), readable };
  const shared = new Map<string, AgentTool>();
  const parts = { env, jobs, todos, notes, shell, options, shared };
  const make = async (entry: ToolEntry<ToolParts>): Promise<AgentTool> => {
    const tool = await entry.make(parts);
    if (!entry.isPersonal) shared.set(entry.name, tool);
    return tool;
  };
  for (const entry of MAKING_ORDER) {
    if (names.includes(entry.name)) made.set(entry.name, await make(entry));
  }
  const registry = new ToolRegistry(names.flatMap((name) => made.get(name) ?? []));
  return {
    registry,
    async add(name) {
      if (registry.has(name)) return;
      const entry = TOOLS.find((each) => each.name === name && isOffered(each, options));
      if (!entry) throw noSuchTool(name, [...registry.list().map((tool) => tool.name), ...offered]);
      registry.register(await make(entry));
    },
    env,
    jobs,
    todos,
    notes,
    async close() {
      await jobs.close();
      for (const work of closers.values()) await work();
      await workspace.close();
      await removeFolder(spoolFolder);
      if (stateFolder !== wanted) await removeFolder(stateFolder);
    },
  };
}

/** What says that a folder, or the file system that it is on, may not be written to. */
const NOT_WRITABLE: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM", "EROFS"]);

/**
 * Makes the folder. Where it may not be written to, a home that is read-only say, it is a new one
 * among the temporary files, which the caller removes.
 */
async function makeStateFolder(wanted: string): Promise<string> {
  try {
    await mkdir(wanted, { recursive: true, mode: OWNER_ONLY });
    // What is in it says what is killed: no other user may write to it.
    await chmod(wanted, OWNER_ONLY);
    return wanted;
  } catch (error) {
    const writable = access(nearestFolder(wanted), constants.W_OK);
    const refused = await writable.then(() => errnoOf(error), errnoOf);
    if (!NOT_WRITABLE.has(refused)) throw error;
    return mkdtemp(join(tmpdir(), "gyre-state-"));
  }
}

/** The folder itself, or the first above it that is there: Node says ENOENT of one that it may not make. */
function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}

/** Whether these options have it: false for its name excludes it. */
function isOffered({ name, needsOptions }: ToolEntry<ToolParts>, options: ToolOptions): boolean {
  const own: unknown = Reflect.get(options, name);
  return own !== false && (own !== undefined || !needsOptions);
}

function shellOptions(options: ToolsetOptions, jobs: JobTable): ShellOptions {
  const { network = false, environment = process.env, hidden = [], secret = [], tools } = options;
  const { sandbox, writable, domains, mostDomains, decideHost } = options;
  return {
    network,
    ...(decideHost && { decideApproved: decideHost }),
    ...(domains && { domains }),
    ...(mostDomains && { mostDomains }),
    ...(writable && { writable }),
    unconfined: (typeof sandbox === "object" ? sandbox.kind : sandbox) === "none",
    hidden: [...secretPlaces(homedir(), environment), ...hidden, ...secret],
    // A job that cannot be asked about is of no use.
    ...((tools?.includes("jobs") ?? true) && { jobs }),
  };
}

/** How to come by the sandbox. One that has to be there is tried out now. */
async function prepareSandbox(
  sandbox: ToolsetOptions["sandbox"] = "auto",
  workspace: string,
): Promise<ToolEnv["sandbox"]> {
  if (sandbox === "any") {
    let tried: Promise<Sandbox> | undefined;
    return () => (tried ??= createSandbox({ kind: sandbox, workspace }));
  }
  const known =
    typeof sandbox === "string" ? await createSandbox({ kind: sandbox, workspace }) : sandbox;
  return () => Promise.resolve(known);
}

/** Those of the files that are in the folder, and what they lead to if that is. */
function listInside(files: readonly string[], folder: string): string[] {
  const root = realPlace(folder);
  const all = new Set(files.flatMap((path) => [path, realPlace(path)]));
  return [...all].filter((path) => isWithin(path, root));
}

/** A pattern that matches this name alone. */
function toPattern(name: string): string {
  return name.replaceAll(/[\\*?[\]{}()!+@|^$]/g, "\\$&");
}

/** The sandbox with files that are read-only wherever a program may write. */
function keepFiles(find: ToolEnv["sandbox"], files: readonly string[]): ToolEnv["sandbox"] {
  if (files.length === 0) return find;
  return async () => {
    const sandbox = await find();
    return {
      ...sandbox,
      wrap(program, policy) {
        // A link cannot be held in its place: what it leads to can.
        const kept = [...new Set(files.map(realPlace))].filter(
          (path) =>
            policy.writable.some((folder) => isWithin(path, realPlace(folder))) &&
            !policy.hidden.some((place) => isWithin(path, place)),
        );
        return sandbox.wrap(program, { ...policy, readOnly: [...policy.readOnly, ...kept] });
      },
    };
  };
}

function defaultStateFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const state = environment["XDG_STATE_HOME"];
  return join(state?.startsWith("/") ? state : join(homedir(), ".local", "state"), "gyre", "tools");
}
