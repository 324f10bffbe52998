import { realpathSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, resolve, sep } from "node:path";
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
  ".config/age",
  ".config/configstore",
  ".config/fly",
  ".config/github-copilot",
  ".config/goose",
  ".config/heroku",
  ".config/kaggle",
  ".config/netlify",
  ".config/ngrok",
  ".config/opencode",
  ".config/solana",
  ".config/stripe",
  ".config/gyre",
  ".gyre",
  ".claude",
  ".claude.json",
  ".codex",
  ".gemini",
  ".pi",
  ".qwen",
  ".kiro",
  ".aider.conf.yml",
  ".docker",
  ".boto",
  ".cloudflared",
  ".databrickscfg",
  ".fly",
  ".huggingface",
  ".kaggle",
  ".ngrok2",
  ".pulumi",
  ".s3cfg",
  ".1password",
  ".password-store",
  ".local/share/keyrings",
  ".local/share/kwalletd",
  ".local/share/goose",
  ".local/share/opencode",
  ".local/share/com.vercel.cli",
  ".local/share/gyre",
  ".local/state/gyre",
  ".cache/huggingface/token",
  ".cache/huggingface/stored_tokens",
  ".m2/settings.xml",
  ".m2/settings-security.xml",
  ".composer/auth.json",
  ".config/composer/auth.json",
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
  ".local/share/fish/fish_history",
  ".mysql_history",
  ".rediscli_history",
  ".sqlite_history",
  ".python_history",
  ".node_repl_history",
  ".psql_history",
  ".Xauthority",
  ".mozilla",
  ".thunderbird",
  ".config/Code/User/globalStorage",
  ".config/Cursor/User/globalStorage",
  ".config/VSCodium/User/globalStorage",
  ".config/Bitwarden",
  ".config/Bitwarden CLI",
  ".config/discord",
  ".config/microsoft-edge",
  ".config/opera",
  ".config/Signal",
  ".config/Slack",
  ".config/vivaldi",
  ".config/google-chrome",
  ".config/chromium",
  ".config/BraveSoftware",
  "Library/Keychains",
  "Library/Cookies",
  "Library/Application Support/Google/Chrome",
  "Library/Application Support/Firefox",
];

/** Variables that move a part of the home folder elsewhere. */
const MOVED_FOLDERS = {
  XDG_CONFIG_HOME: ".config/",
  XDG_DATA_HOME: ".local/share/",
  XDG_STATE_HOME: ".local/state/",
  XDG_CACHE_HOME: ".cache/",
  CARGO_HOME: ".cargo/",
} as const;

/** Variables that name files or folders with keys and logins. */
const SECRET_VARIABLES = [
  "GNUPGHOME",
  "AWS_SHARED_CREDENTIALS_FILE",
  "AWS_CONFIG_FILE",
  "AZURE_CONFIG_DIR",
  "KUBECONFIG",
  "DOCKER_CONFIG",
  "REGISTRY_AUTH_FILE",
  "GH_CONFIG_DIR",
  "GLAB_CONFIG_DIR",
  "CLOUDSDK_CONFIG",
  "GOOGLE_APPLICATION_CREDENTIALS",
  "HF_TOKEN_PATH",
  "KAGGLE_CONFIG_DIR",
  "NETRC",
  "NPM_CONFIG_USERCONFIG",
  "PASSWORD_STORE_DIR",
  "PGPASSFILE",
  "PULUMI_HOME",
  "XAUTHORITY",
  "HISTFILE",
] as const;

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
  const moved = Object.entries(MOVED_FOLDERS).flatMap(([name, prefix]) => {
    const folder = environment[name];
    if (folder === undefined || !isAbsolute(folder)) return [];
    return SECRETS_IN_HOME.filter((secret) => secret.startsWith(prefix)).map((secret) =>
      join(folder, secret.slice(prefix.length)),
    );
  });
  const named = SECRET_VARIABLES.flatMap((name) => (environment[name] ?? "").split(delimiter))
    .filter((path) => path !== "")
    .map((path) => resolve(path))
    // Hides a place, not all that the user works with.
    .filter((path) => !isWithin(resolve(home), path));
  return [...SECRETS_IN_HOME.map((name) => join(home, name)), ...moved, ...named, ...sockets];
}
