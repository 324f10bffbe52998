import { isAbsolute } from "node:path";
import { redact } from "../../common/redact.ts";
import { cleanPath, CONTROL } from "./search-path.ts";

export interface EnvironmentOptions {
  /** Also what programs reach the network with: proxies, certificates. Default false. */
  network?: boolean;
  /** Programs in this folder are not found by their name alone: it is taken from PATH. */
  workspace?: string;
  /** Further names to let through, if they neither look like a key nor change what programs run. */
  keep?: readonly string[];
  /** Set as given, last. Not looked at. */
  set?: Readonly<Record<string, string>>;
}

const PLAIN = new Set(["USER", "LOGNAME", "TERM", "TZ", "CI"]);
const FOLDERS = new Set(["HOME", "SHELL", "TMPDIR"]);
const LOCALE = /^(?:LANG|LANGUAGE|LC_[A-Z]+)$/;
const LOCALE_VALUE = /^[\w.@:-]*$/;
const NETWORK = new Set([
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "NODE_EXTRA_CA_CERTS",
  "CURL_CA_BUNDLE",
  "REQUESTS_CA_BUNDLE",
]);

/** A variable that a shell can have; functions that are handed down have other names. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Parts of the names of variables that hold secrets. */
const SECRET_NAME = new RegExp(
  [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "SESSION",
    "PRIVATE",
    "SIGNATURE",
    "DSN",
    "DATABASE",
    "CONNECTION",
    "WEBHOOK",
    "SOCK",
  ].join("|"),
  "i",
);

/** Beginnings of names by which a program is made to load, run or read something else. */
const STEERING_NAME = new RegExp(
  `^(?:${[
    "LD_",
    "DYLD_",
    "GCONV_",
    "LOCPATH",
    "MALLOC_",
    "GIT_",
    "SSH_",
    "SUDO_",
    "DBUS_",
    "XDG_",
    "DOCKER_",
    "KUBE",
    "BASH",
    "ENV$",
    "IFS$",
    "PS[0-9]$",
    "PROMPT_COMMAND$",
    "SHELLOPTS$",
    "CDPATH$",
    "ZDOTDIR$",
    "EDITOR$",
    "VISUAL$",
    "PAGER$",
    "MANPAGER$",
    "LESS",
    "BROWSER$",
    "VIMINIT$",
    "EXINIT$",
    "NODE_(?!ENV$|EXTRA_CA_CERTS$)",
    "NPM_",
    "YARN_",
    "PYTHON",
    "PIP_",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "PHP",
    "LUA_",
    "TCL",
    "_?JAVA_",
    "JDK_",
    "MAVEN_",
    "GRADLE_",
    "DOTNET_",
    "CORECLR_",
    "COR_",
    "CARGO_",
    "RUSTC",
    "RUSTFLAGS$",
    "GOFLAGS$",
    "MAKE",
    "CMAKE_",
    "OPENSSL_",
    "HOSTALIASES$",
    "RES_OPTIONS$",
    "CURL_HOME$",
    "WGETRC$",
  ].join("|")})`,
  "i",
);

/** Nothing asks, pages or colors: there is no person at the terminal of a tool. */
const ALWAYS: Readonly<Record<string, string>> = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  PAGER: "cat",
  MANPAGER: "cat",
  GIT_EDITOR: "false",
  EDITOR: "false",
  VISUAL: "false",
  DEBIAN_FRONTEND: "noninteractive",
  PIP_NO_INPUT: "1",
  NO_COLOR: "1",
  CLICOLOR: "0",
};

/**
 * The variables that programs of an agent are given: the few that they need, never one
 * that looks like a key by its name or by its value, and those that keep programs from
 * waiting for a person.
 */
export function cleanEnvironment(
  from: Readonly<Record<string, string | undefined>> = process.env,
  options: EnvironmentOptions = {},
): Record<string, string> {
  const clean: [string, string][] = [];
  for (const [name, value] of Object.entries(from)) {
    if (value !== undefined && isWanted(name, value, options) && isHarmless(name, value)) {
      clean.push([name, value]);
    }
  }
  return Object.fromEntries([
    ["TERM", "dumb"],
    ...clean,
    // "Path" is its name in a copy of the variables of Windows.
    ["PATH", cleanPath(from["PATH"] ?? from["Path"], options.workspace)],
    ...Object.entries(ALWAYS),
    ...Object.entries(options.set ?? {}),
  ]);
}

function isWanted(name: string, value: string, options: EnvironmentOptions): boolean {
  if (PLAIN.has(name)) return true;
  if (FOLDERS.has(name)) return isAbsolute(value);
  if (LOCALE.test(name)) return LOCALE_VALUE.test(value);
  if (options.network === true && NETWORK.has(name.toUpperCase())) return true;
  return options.keep?.includes(name) ?? false;
}

function isHarmless(name: string, value: string): boolean {
  if (!NAME.test(name) || SECRET_NAME.test(name) || STEERING_NAME.test(name)) return false;
  // Old shells take a value that begins so for a function, and run what follows it.
  if (CONTROL.test(value) || value.startsWith("() {")) return false;
  return redact(value) === value;
}
