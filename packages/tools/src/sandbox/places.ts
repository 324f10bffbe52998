import { realpathSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import type { SandboxPolicy } from "./sandbox.ts";

/** What programs may keep in their own /tmp and /var/tmp, each. */
export const TEMPORARY_BYTES: number = 4 * 1024 * 1024 * 1024;

/** A place of a policy, links followed. */
export interface Place {
  path: string;
  rule: "writable" | "readOnly" | "hidden";
}

/** Where two rules name one place, the later of these holds. */
const RULES = ["writable", "readOnly", "hidden"] as const;

/**
 * The places of a policy with links followed, outer ones before inner ones: a sandbox that
 * takes them in this order gives each path the rule of the nearest place around it.
 */
export function orderedPlaces(policy: SandboxPolicy): Place[] {
  return RULES.flatMap((rule) =>
    policy[rule].map((path) => ({ path: realPlace(path), rule })),
  ).sort((a, b) => countNames(a.path) - countNames(b.path));
}

/** The nearest place around a path, itself included. */
export function placeAround(places: readonly Place[], path: string): Place | undefined {
  return places.findLast((place) => isWithin(path, place.path));
}

/** Whether a path is the folder or something in it. Both are absolute and plain. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** How many names lead to a path. */
export function countNames(path: string): number {
  return path.split(sep).filter(Boolean).length;
}

/** The path with links followed, as far as there is something. */
export function realPlace(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Missing, or a link to nothing: what is around it is real all the same.
    const parent = dirname(path);
    return parent === path ? path : join(realPlace(parent), basename(path));
  }
}

/** Below a home folder: keys, logins, what was typed, and sockets of what acts for the user. */
const SECRETS_IN_HOME: readonly string[] = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".kube",
  ".oci",
  ".config/gcloud",
  ".config/doctl",
  ".config/gh",
  ".config/glab-cli",
  ".config/op",
  ".config/hub",
  ".config/git/credentials",
  ".config/rclone",
  ".config/sops",
  ".config/containers",
  ".config/gyre",
  ".gyre",
  ".claude",
  ".claude.json",
  ".codex",
  ".gemini",
  ".docker",
  ".1password",
  ".password-store",
  ".local/share/keyrings",
  ".local/share/gyre",
  ".local/state/gyre",
  ".netrc",
  ".npmrc",
  ".yarnrc.yml",
  ".pypirc",
  ".pgpass",
  ".my.cnf",
  ".git-credentials",
  ".cargo/credentials",
  ".cargo/credentials.toml",
  ".gem/credentials",
  ".terraform.d",
  ".terraformrc",
  ".vault-token",
  ".bash_history",
  ".zsh_history",
  ".python_history",
  ".node_repl_history",
  ".psql_history",
  ".mozilla",
  ".config/google-chrome",
  ".config/chromium",
  ".config/BraveSoftware",
  "Library/Keychains",
  "Library/Cookies",
  "Library/Application Support/Google/Chrome",
  "Library/Application Support/Firefox",
];

/** Variables that name a socket of something that acts for the user. */
const SOCKET_VARIABLES = [
  "SSH_AUTH_SOCK",
  "DOCKER_HOST",
  "CONTAINER_HOST",
  "DBUS_SESSION_BUS_ADDRESS",
] as const;

/**
 * What a program of an agent has no business reading: for `SandboxPolicy.hidden`. Most of
 * these places will not exist, which is fine.
 */
export function secretPlaces(
  home: string,
  environment: Readonly<Record<string, string | undefined>> = {},
): string[] {
  const sockets = SOCKET_VARIABLES.flatMap((name) => {
    const socket = /^(?:unix:(?:\/\/|path=)?)?(\/[^,;]+)/.exec(environment[name] ?? "")?.[1];
    return socket === undefined ? [] : [socket];
  });
  return [...SECRETS_IN_HOME.map((name) => join(home, name)), ...sockets];
}
