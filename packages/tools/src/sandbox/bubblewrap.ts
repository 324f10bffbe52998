import { execFile } from "node:child_process";
import { constants, lstatSync, type Stats, statSync } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, dirname, isAbsolute, join, relative, resolve } from "node:path";
import {
  countNames,
  isWithin,
  orderedPlaces,
  type Place,
  placeAround,
  realPlace,
  TEMPORARY_BYTES,
} from "./places.ts";
import { forwarderArguments, PROXY_ENVIRONMENT, PROXY_SOCKET } from "./forwarder.ts";
import { listSockets } from "./sockets.ts";
import { openFilter } from "./system-calls.ts";
import type { ProgramSpec, Sandbox, SandboxPolicy, ShownPlace } from "./sandbox.ts";

/** To try it out takes a few milliseconds; a machine under load gets more. */
const PROBE_TIMEOUT_MS = 20_000;

/**
 * Sockets of services that do things for any caller: containers as root, units, agents
 * for keys. A read-only mount does not keep a program from talking to a socket.
 */
const SERVICE_FOLDERS = ["/run", "/var/run", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd"];

/** Of `/run`, what programs need to be found. */
const KEPT_OF_RUN = ["/run/current-system"];
/** Of `/run`, what names are looked up with. */
const KEPT_FOR_NETWORK = ["/run/systemd/resolve", "/run/NetworkManager/resolv.conf"];

/** Settings of the kernel: root's files also for a root without capabilities. */
const KERNEL_SETTINGS = ["/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr"];

/** As programs see it. */
const TEMPORARY = "/tmp";

const NAMESPACES = [
  "--unshare-user",
  // Inside of a namespace of its own a program would have capabilities again.
  "--disable-userns",
  "--unshare-pid",
  "--unshare-ipc",
  "--unshare-uts",
  "--unshare-cgroup-try",
];

/** One thing to mount; those with the least names before the others. */
interface Mount {
  at: string;
  args: readonly string[];
  /** Empty, and to be read-only once all that lies inside is mounted. */
  empty?: boolean;
}

/** A sandbox by the bwrap at `command`, version 0.8 or later. */
export function bubblewrapSandbox(command: string): Sandbox {
  return {
    kind: "bubblewrap",
    temporary: TEMPORARY,
    wrap: (program, policy) => ({
      argv: [
        ...withFilter(command, policy.starter?.argv ?? []),
        ...bubblewrapArguments(program, policy),
      ],
      cwd: "/",
      // Its own environment is empty: a library to preload would be loaded outside.
      env: {},
      tree: { kind: "namespace" },
    }),
  };
}

/**
 * bwrap reads the filter of system calls from a handle, which a shell opens for it: before the starter, in
 * whose namespace it would be out of reach.
 */
function withFilter(command: string, starter: readonly string[]): string[] {
  const filter = openFilter();
  if (filter === undefined) return [...starter, command];
  return ["/bin/sh", "-c", `exec "$0" "$@" 3<${filter}`, ...starter, command, "--seccomp", "3"];
}

/**
 * The arguments of bwrap that confine a program so. Looks at which of the places exist.
 * Throws where a read-only place cannot be held.
 */
export function bubblewrapArguments(program: ProgramSpec, policy: SandboxPolicy): string[] {
  const { starter } = policy;
  const places = orderedPlaces(policy);
  const proxy = policy.network ? undefined : policy.proxy;
  const mounts = [
    ...baseMounts(policy),
    ...heldFolders(policy, places),
    ...temporaryParents(policy, places),
    ...places.filter((place) => !isBehindTemporary(policy, places, place)).flatMap(listMounts),
    ...emptyFolders(policy),
    ...socketMounts(places),
    ...(policy.shown ?? []).map(show),
    ...(proxy === undefined
      ? []
      : [{ at: PROXY_SOCKET, args: ["--ro-bind", proxy, PROXY_SOCKET] }]),
  ].sort((a, b) => countNames(a.at) - countNames(b.at));
  const emptied = mounts.filter((mount) => mount.empty);
  const environment = {
    ...program.env,
    TMPDIR: TEMPORARY,
    ...(proxy !== undefined && PROXY_ENVIRONMENT),
  };
  return [
    "--die-with-parent",
    // Without a terminal of its own it could type into ours.
    "--new-session",
    ...NAMESPACES,
    ...(starter ? ["--uid", String(starter.uid), "--gid", String(starter.gid)] : []),
    ...(policy.network ? [] : ["--unshare-net"]),
    ...["--cap-drop", "ALL"],
    ...mounts.flatMap((mount) => mount.args),
    // Last, because other places may be mounted inside of them.
    ...emptied.flatMap((mount) => ["--remount-ro", mount.at]),
    ...["--chdir", program.cwd],
    "--clearenv",
    ...Object.entries(environment).flatMap(([name, value]) => ["--setenv", name, value]),
    "--",
    ...(proxy === undefined ? program.argv : forwarderArguments(program.argv)),
  ];
}

function baseMounts({ network, temporary }: SandboxPolicy): Mount[] {
  const kept = [...KEPT_OF_RUN, ...(network ? KEPT_FOR_NETWORK : [])];
  const services = new Set(SERVICE_FOLDERS.filter(exists).map(realPlace));
  return [
    bind("--ro-bind", "/"),
    { at: "/dev", args: ["--dev", "/dev"] },
    { at: "/proc", args: ["--proc", "/proc"] },
    ...KERNEL_SETTINGS.filter(exists).map((path) => bind("--ro-bind", path)),
    ...["/proc/keys", "/proc/key-users"].filter(exists).map(hide),
    ...["/tmp", "/var/tmp"].filter(exists).map((path) => temporaryFolder(path, temporary)),
    ...[...services].map(hide),
    ...kept.filter(exists).map((at): Mount => ({ at, args: ["--ro-bind", realPlace(at), at] })),
  ];
}

function listMounts(place: Place): Mount[] {
  // Writable and missing is left to bwrap, which says so and ends.
  if (place.rule === "writable") return [bind("--bind", place.path)];
  if (!exists(place.path)) return [];
  return [place.rule === "hidden" ? hide(place.path) : bind("--ro-bind", place.path)];
}

/**
 * The folders between a writable one and what is read-only or shown inside of it, mounted onto
 * themselves: a folder that is a mount can be neither moved away nor replaced, with what
 * is protected in it. For the same reason such a place may not be reached by a link.
 */
function heldFolders(policy: SandboxPolicy, places: readonly Place[]): Mount[] {
  const held = new Set<string>();
  const addParents = (real: string): void => {
    for (let folder = dirname(real); folder !== "/"; folder = dirname(folder)) {
      if (placeAround(places, folder)?.rule === "writable" && exists(folder)) held.add(folder);
    }
  };
  for (const path of policy.readOnly) {
    const place = resolve(path);
    const real = realPlace(place);
    const root = policy.writable
      .map((folder) => resolve(folder))
      .find((folder) => isWithin(place, folder));
    const isReplaceable =
      root !== undefined &&
      (isLink(place) || real !== join(realPlace(root), relative(root, place)));
    if (isReplaceable) {
      throw new Error(
        `The sandbox cannot protect "${place}": it is behind a link, which a program could replace. ` +
          "Put what the link leads to in its place, or take it from the read-only places.",
      );
    }
    addParents(real);
  }
  const shown = (policy.shown ?? []).map(({ at }) => at);
  for (const at of shown) if (!shown.some((around) => isBelow(at, around))) addParents(at);
  return [...held].map((folder) => bind("--bind", folder));
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && isWithin(path, folder);
}

/**
 * A kept /tmp is the program's own: in the place of a folder that leads to the workspace it could
 * leave a link. So such folders are mounts themselves, which no program can replace.
 */
function temporaryParents({ temporary }: SandboxPolicy, places: readonly Place[]): Mount[] {
  if (temporary === undefined) return [];
  const tmp = realPlace("/tmp");
  const parents = new Set<string>();
  for (const { path, rule } of places) {
    if (rule === "hidden" || !isWithin(path, tmp)) continue;
    const [first, ...others] = relative(tmp, path).split("/");
    if (first && others.length > 0) parents.add(join(tmp, first));
  }
  for (const { path } of places) parents.delete(path);
  return [...parents].map((at) => ({ at, args: ["--tmpfs", at] }));
}

/** Hidden anyway: of the machine's /tmp, a program sees what is mounted there again. */
function isBehindTemporary(
  { temporary }: SandboxPolicy,
  places: readonly Place[],
  { path, rule }: Place,
): boolean {
  if (temporary === undefined || rule !== "hidden" || !isWithin(path, realPlace("/tmp")))
    return false;
  return !places.some(
    (place) =>
      place.rule !== "hidden" &&
      isWithin(path, place.path) &&
      isWithin(place.path, realPlace("/tmp")),
  );
}

/**
 * Sockets that others listen on. Those in folders that the program may change are its own
 * affair, and those in the machine's /tmp, /run and /dev are out of its sight.
 */
function socketMounts(places: readonly Place[]): Mount[] {
  const unseen = ["/tmp", "/var/tmp", "/dev", "/proc", ...SERVICE_FOLDERS].map(realPlace);
  return listSockets()
    .map(realPlace)
    .filter((path) => {
      const around = placeAround(places, path);
      if (around) return around.rule === "readOnly";
      return !unseen.some((folder) => isWithin(path, folder));
    })
    .map(hide);
}

/** Read-only folders that are missing: mounted empty, so that nothing can be put there. */
function emptyFolders(policy: SandboxPolicy): Mount[] {
  return policy.readOnly
    .filter((path) => path.endsWith("/"))
    .map((path) => realPlace(resolve(path)))
    .filter((path) => !exists(path) && statPath(dirname(path))?.isDirectory())
    .map((at) => ({ at, args: ["--perms", "0555", "--tmpfs", at], empty: true }));
}

function bind(how: "--bind" | "--ro-bind", at: string): Mount {
  return { at, args: [how, at, at] };
}

function show({ at, from, rule }: ShownPlace): Mount {
  return { at, args: [rule === "writable" ? "--bind" : "--ro-bind", from, at] };
}

function temporaryFolder(path: string, kept: string | undefined): Mount {
  const at = realPlace(path);
  if (kept !== undefined && path === "/tmp") return { at, args: ["--bind", kept, at] };
  return { at, args: ["--size", String(TEMPORARY_BYTES), "--tmpfs", at] };
}

/** A folder is closed, so that a program gets an error; a file is empty, which most can live with. */
function hide(at: string): Mount {
  return statPath(at)?.isDirectory()
    ? { at, args: ["--perms", "0111", "--tmpfs", at], empty: true }
    : { at, args: ["--dev-bind", "/dev/null", at] };
}

function exists(path: string): boolean {
  return statPath(path) !== undefined;
}

/** What is at a path, links followed. */
function statPath(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // Not there, or not for us to see: then also not for what we start.
    return undefined;
  }
}

/** Also one that leads nowhere yet. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Where in the folders of `path` bwrap is, tried out with all that we ask of it; or what is wrong, and what helps. */
export async function findBubblewrap(
  path: string,
): Promise<{ command: string } | { problem: string }> {
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder));
  const command = await firstExecutable(folders.map((folder) => join(folder, "bwrap")));
  if (command === undefined) {
    return {
      problem:
        "The sandbox needs bubblewrap, and there is no bwrap on this machine. " +
        "Install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap).",
    };
  }
  const failure = await tryOut(command);
  if (failure === undefined) return { command };
  return {
    problem:
      `The sandbox needs bubblewrap 0.8 or later and unprivileged user namespaces, and ${command} fails: ${failure}. ` +
      "Update it, or allow it to make user namespaces (kernel.unprivileged_userns_clone, user.max_user_namespaces, on Ubuntu an AppArmor profile for bwrap).",
  };
}

async function firstExecutable(candidates: readonly string[]): Promise<string | undefined> {
  for (const candidate of candidates) {
    const runs = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return candidate;
  }
  return undefined;
}

/** Its error output, if it fails. */
function tryOut(command: string): Promise<string | undefined> {
  const program = { argv: ["/bin/sh", "-c", ":"], cwd: "/", env: {} };
  const policy = { writable: [], readOnly: [], hidden: [], network: false };
  const wrapped = bubblewrapSandbox(command).wrap(program, policy);
  return new Promise((done) => {
    const [file = "", ...args] = wrapped.argv;
    execFile(
      file,
      args,
      { cwd: wrapped.cwd, env: {}, timeout: PROBE_TIMEOUT_MS },
      (error, _stdout, stderr) => done(error ? stderr.trim() || error.message : undefined),
    );
  });
}
