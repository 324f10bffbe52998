import { basename, dirname, join, relative } from "node:path";
import { existsSync, statfsSync, statSync } from "node:fs";
import { errorMessage } from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import type { Rehearsal } from "../contract/rehearsal.ts";
import { fromText } from "../effects/byte-path.ts";
import type { Effect } from "../effects/effect.ts";
import { Layer, type LayerHome, openLayers, sweepLayers } from "../effects/layers.ts";
import { reportEffects } from "../effects/report.ts";
import { type ProgramEnd, runProgram } from "../process/processes.ts";
import { isWithin } from "../sandbox/places.ts";
import type { SandboxPolicy } from "../sandbox/sandbox.ts";
import { listSockets } from "../sandbox/sockets.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { isNetworkFailure, isWriteFailure } from "./sandbox-hint.ts";
import type { ShellOptions } from "./tool.ts";
import { confine, hasJobs, holdProtected, type ShellArguments, shellProgram } from "./run.ts";

/** How often the room on the disk is looked at while a command runs in a layer. */
const SPACE_CHECK_MS = 500;
/** With less room than this a command in a layer is ended. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;
/** What a file that belongs to another user or group makes of a write in a layer. */
const OTHER_OWNER = /\bEOVERFLOW\b|Value too large for defined data type/;
const REFUSED = /\bECONNREFUSED\b|Connection refused/i;

/** A command that ran in a layer, and what of it is to be kept. */
export interface RehearsedCommand {
  layer: Layer;
  effects: readonly Effect[];
  chosen: readonly Effect[];
  end: ProgramEnd;
}

const homes = new WeakMap<Workspace, Promise<LayerHome | { why: string }>>();

/** Where layers over a workspace are; one look for all its commands. */
export function findHome(env: ToolEnv): Promise<LayerHome | { why: string }> {
  const known = homes.get(env.workspace) ?? openHome(env);
  homes.set(env.workspace, known);
  return known;
}

async function openHome(env: ToolEnv): Promise<LayerHome | { why: string }> {
  const { root } = env.workspace;
  const stateFolder = dirname(env.spoolFolder);
  try {
    const home = await openLayers({ root, stateFolder, sandbox: await env.sandbox() });
    if (!("why" in home)) await sweepLayers(home);
    return home;
  } catch (error) {
    return { why: `A layer cannot be made here: ${errorMessage(error)}` };
  }
}

/**
 * Runs a command in a layer over the workspace, without a network and with all else read-only. Nothing of
 * it is left where it turns out to need more than that. What ran is in `rehearsed` by the id of its call, until
 * it is kept or discarded.
 */
export async function rehearseShell(
  env: ToolEnv,
  options: ShellOptions,
  args: ShellArguments,
  { id, signal }: { id: string; signal: AbortSignal },
  rehearsed: Map<string, RehearsedCommand>,
): Promise<Rehearsal> {
  if (args.background === true) return impossible("It is to go on in the background.");
  if (args.tty === true) return impossible("It is to run in a terminal.");
  const home = await findHome(env);
  if ("why" in home) return impossible(home.why);
  const layer = await Layer.create(home);
  // A layer ends with its command, and is decided on before the next call.
  const takeBack = options.jobs?.offer({
    move() {
      throw new Error(
        "The command runs in a layer first, so that you see what it does, and cannot go to the background from there. " +
          "Wait for it, or stop it with Esc and ask for it as a background job.",
      );
    },
  });
  try {
    const { end, made, isFull } = await runIn(layer, env, options, args, signal);
    const why = await explainFailure(layer, env, options, end, isFull);
    if (why !== undefined) {
      await layer.remove();
      return impossible(why);
    }
    const found = await layer.findEffects();
    const effects = found.filter(({ kind, path }) => kind !== "create" || !made.has(path));
    const report = await reportEffects(layer, effects, env.workspace, end);
    const command: RehearsedCommand = { layer, effects, chosen: [], end };
    rehearsed.set(id, command);
    return {
      type: "ran",
      report,
      choose(ids) {
        const wanted = new Set(ids);
        command.chosen = withParents(effects, wanted);
      },
      async discard() {
        if (rehearsed.delete(id)) await layer.remove();
      },
    };
  } catch (error) {
    await layer.remove();
    throw error;
  } finally {
    takeBack?.();
  }
}

function impossible(why: string): Rehearsal {
  return { type: "impossible", why };
}

/** What is in a new folder needs the folder. */
function withParents(effects: readonly Effect[], wanted: ReadonlySet<number>): Effect[] {
  const chosen = effects.filter(({ id }) => wanted.has(id));
  const isAround = ({ path, type }: Effect): boolean =>
    type === "folder" && chosen.some((each) => each.path.startsWith(`${path}/`));
  return effects.filter(
    (effect) =>
      wanted.has(effect.id) ||
      ((effect.kind === "create" || effect.kind === "replace") && isAround(effect)),
  );
}

/** The layer is over the workspace's own folder: nothing else may be changed before it is approved. */
function holdFolders(policy: SandboxPolicy, { folders }: Workspace): SandboxPolicy {
  const writable = policy.writable.filter((path) => !folders.includes(path));
  return { ...policy, writable, readOnly: [...folders, ...policy.readOnly] };
}

interface LayerEnd {
  end: ProgramEnd;
  /** Folders that the sandbox made to hold their places. */
  made: ReadonlySet<string>;
  /** It was ended because the disk is full. */
  isFull: boolean;
}

async function runIn(
  layer: Layer,
  env: ToolEnv,
  options: ShellOptions,
  args: ShellArguments,
  signal: AbortSignal,
): Promise<LayerEnd> {
  const held = await holdProtected(env, undefined);
  const space = watchSpace(env, layer.folder);
  try {
    const { root } = env.workspace;
    const { plain, timeoutMs } = await shellProgram(env, args);
    // What a job listens on in /tmp would be a way out of the layer.
    const { temporary, ...others } = env;
    const inside = hasJobs(options) || !temporary ? others : { ...others, temporary };
    const program = await confine(
      inside,
      { ...options, writable: [], network: false },
      await env.sandbox(),
      plain,
      { view: undefined, proxy: undefined, held },
      (policy) => layer.cover(holdFolders(policy, env.workspace)),
    );
    const end = await runProgram(program, {
      timeoutMs,
      signal: AbortSignal.any([signal, space.signal]),
      spoolFolder: env.spoolFolder,
      clock: env.clock,
    });
    const made = held.places
      .filter((path) => path.endsWith("/") && !existsSync(path))
      .map((path) => fromText(relative(root, join(dirname(path), basename(path)))));
    return { end, made: new Set(made), isFull: space.signal.aborted };
  } finally {
    space.end();
    held.end();
  }
}

/** Fires when there is hardly any room left on the disk of a layer. */
function watchSpace({ clock }: ToolEnv, folder: string): { signal: AbortSignal; end(): void } {
  const full = new AbortController();
  let isOver = false;
  let cancel = (): void => {};
  const look = (): void => {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail * bsize < MIN_FREE_BYTES) full.abort();
    else if (!isOver) cancel = clock.after(SPACE_CHECK_MS, look);
  };
  look();
  return {
    signal: full.signal,
    end() {
      isOver = true;
      cancel();
    },
  };
}

/** Why a command has to run without a layer: it failed there by what a layer does not give. */
async function explainFailure(
  layer: Layer,
  env: ToolEnv,
  { network = false, domains = [], writable = [] }: ShellOptions,
  { exitCode, stdout, stderr, aborted }: ProgramEnd,
  isFull: boolean,
): Promise<string | undefined> {
  if (!layer.wasMounted) {
    return aborted ? "It was stopped." : `A layer cannot be made here: ${stderr.head.trim()}`;
  }
  if (isFull) return "In a layer it fills the disk.";
  if (aborted) return "It was stopped.";
  const { root, folders } = env.workspace;
  const output = [stderr.head, stderr.tail, stdout.head, stdout.tail].join("\n");
  // A command may go on after a write that failed, and would not without a layer.
  if (folders.length > 0 && isWriteFailure(output)) {
    return "It writes to a folder that was added to the workspace, which a layer keeps read-only.";
  }
  if (exitCode === 0) return undefined;
  if (OTHER_OWNER.test(output)) {
    return "It changes files of another user or group, which a layer cannot.";
  }
  const hasNetwork = network || domains.length > 0;
  if (hasNetwork && (isNetworkFailure(output) || REFUSED.test(output))) {
    return "It needs the network, which a layer does not have.";
  }
  const hasSocket = listSockets().some((path) => isWithin(path, root));
  if (hasSocket && REFUSED.test(output)) {
    return "It needs a socket in the workspace, which a layer cannot reach.";
  }
  const git = statSync(join(root, ".git"), { throwIfNoEntry: false });
  if (isWriteFailure(output) && (writable.length > 0 || !git?.isDirectory())) {
    return "It writes outside of the workspace, which a layer keeps read-only.";
  }
  return undefined;
}
