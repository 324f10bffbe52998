import { execFile } from "node:child_process";
import { accessSync, constants, type Dirent, existsSync, readFileSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { hostname, release } from "node:os";
import { basename, dirname, join, parse } from "node:path";
import { errnoOf, errorMessage, redact, toRecord, toUrl } from "@gyre/ai";
import { type KeyStore, MissingKeyError } from "@gyre/ai/node";
import { type ServicePreset, SERVICES, resolveService } from "@gyre/ai/providers";
import { cleanPath, type Sandbox, SandboxMissingError } from "@gyre/tools";
import type { Io } from "../../core/io.ts";
import { isRunning } from "@gyre/coding/internal/file-history/copies";
import type { Models } from "@gyre/coding/internal/models/models";
import {
  type AddressPlace,
  addressPlace,
  findKeyPlaces,
} from "@gyre/coding/internal/models/service-places";
import type { Policy } from "@gyre/coding/internal/policy/policy";
import type { SettingsFile } from "@gyre/coding/internal/settings/load";
import type { SettingsProblem } from "@gyre/coding/internal/settings/problem";
import { openTerminal } from "../../core/terminal.ts";
import { modelValue } from "@gyre/coding/internal/text/choices";

/** What was found, and what to do about it. */
export interface Check {
  name: string;
  status: "ok" | "warning" | "problem";
  /** One line for people. Never has a key in it. */
  message: string;
}

/** The oldest Node that this program is tried on, as in its package.json. */
const OLDEST_NODE = [20, 19] as const;
/** For a program that is started only to see that it starts. */
const PROGRAM_LIMIT_MS = 20_000;
const KILO = 1_000;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"];
const PROXY_VARIABLES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] as const;

type MakeCheck = (name: string, message: string) => Check;
export const ok: MakeCheck = (name, message) => ({ name, status: "ok", message });
export const warning: MakeCheck = (name, message) => ({ name, status: "warning", message });
const problem: MakeCheck = (name, message) => ({ name, status: "problem", message });

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [oldest, least] = OLDEST_NODE;
  const isEnough = major > oldest || (major === oldest && minor >= least);
  return isEnough
    ? ok("node", version)
    : problem("node", `${version} is too old: install ${oldest}.${least} or newer.`);
}

export function checkPlatform(platform: NodeJS.Platform): Check {
  const text = `${platform} ${process.arch}, ${release()}`;
  return platform === "linux" || platform === "darwin"
    ? ok("platform", text)
    : warning("platform", `${text}: gyre is made for Linux and macOS.`);
}

/** One that cannot be used has ended the program before. */
export function checkPolicy(policy: Pick<Policy, "path" | "describe"> | undefined): Check {
  return ok("policy", policy ? `${policy.path}: ${policy.describe()}` : "none");
}

export function checkSettings(
  files: readonly SettingsFile[],
  problems: readonly SettingsProblem[],
): Check[] {
  const own = files.filter(({ of }) => of !== "policy file");
  const found = own.map(({ of, path, state }) =>
    (state === "invalid" ? problem : ok)(
      "settings",
      `${of} ${path}: ${state === "missing" ? "none" : state}`,
    ),
  );
  const wrong = problems.map(({ level, text }) =>
    (level === "error" ? problem : warning)("settings", text),
  );
  return [...found, ...wrong];
}

/** Where keys are, and what is wrong with the key file. */
export type KeysFound = Awaited<ReturnType<typeof findKeyPlaces>>;

export function findKeys(
  { env }: Pick<Io, "env">,
  keys: Pick<KeyStore, "list">,
  own: readonly ServicePreset[],
): Promise<KeysFound> {
  return findKeyPlaces(env, keys, withOwn(own));
}

function withOwn(own: readonly ServicePreset[]): ServicePreset[] {
  return [...own, ...SERVICES.filter(({ id }) => !own.some((one) => one.id === id))];
}

/** Which services have a key, and from where; and whether what is there can be one. */
export async function checkKeys(
  { places, error }: KeysFound,
  io: Pick<Io, "signal">,
  keys: Pick<KeyStore, "get">,
  own: readonly ServicePreset[],
): Promise<Check[]> {
  const services = withOwn(own);
  const checks = error ? [problem("keys", error.message)] : [];
  for (const [id, { from, place }] of places) {
    const service = services.find((one) => one.id === id);
    const useless =
      // A command may ask for a password: it is run when a model is asked.
      service && from !== "command" ? await keyProblem(service, keys, io.signal) : undefined;
    checks.push(
      useless === undefined
        ? ok("keys", `${service?.name ?? id}: ${place}`)
        : problem("keys", useless),
    );
  }
  if (checks.length > 0) return checks;
  return [
    warning("keys", "No service has one. Store one with: gyre login SERVICE, or set its variable."),
  ];
}

async function keyProblem(
  service: ServicePreset,
  keys: Pick<KeyStore, "get">,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await keys.get(service, signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof MissingKeyError)) throw error;
    // What Amazon's variables hold together is in no single place.
    const isNowhere = error.looked.every(({ found }) => !found);
    return isNowhere ? undefined : error.message;
  }
}

/** The model that would be asked, whether there is a key for it, and where it is asked. */
export async function checkModel(
  models: Pick<Models, "current">,
  { places }: KeysFound,
  { env }: Pick<Io, "env">,
  own: readonly ServicePreset[],
): Promise<Check[]> {
  const model = await models.current().catch(errorMessage);
  if (typeof model === "string") return [problem("model", model)];
  const service = resolveService(model, own);
  const name = modelValue(model);
  const hasKey = service.keyless || places.has(service.id);
  const keyHint = `${service.name} has no key. Store one with: gyre login ${service.id}`;
  return [
    hasKey ? ok("model", name) : problem("model", `${name}, but ${keyHint}`),
    checkAddress(service, addressPlace(service, env, model.baseUrl)),
  ];
}

function checkAddress(service: ServicePreset, { address, place }: AddressPlace): Check {
  if (address === undefined) {
    if (place !== "") return ok("address", `${service.name}, as ${place} says`);
    const names = service.urlEnv.join(" or ");
    return problem("address", `None is known for ${service.name}: set ${names}.`);
  }
  const shown = withoutSecrets(address);
  // What Ollama takes may lack a scheme.
  return (/^https?:/i.test(address) && toUrl(address)) || service.id === "ollama"
    ? ok("address", `${shown} (${place})`)
    : problem("address", `"${shown}" (${place}) is no address: it must begin with https://.`);
}

/** Proxies with the names and passwords taken out. */
export function checkProxies({ env }: Pick<Io, "env">): Check[] {
  const checks: Check[] = [];
  for (const name of PROXY_VARIABLES) {
    const value = env[name] || env[name.toLowerCase()];
    if (!value) continue;
    checks.push(
      /^https?:\/\//i.test(value) && toUrl(value)
        ? ok("proxy", `${name}: ${withoutSecrets(value)}`)
        : problem("proxy", `${name} is no address: it must begin with http:// or https://.`),
    );
  }
  const not = env["NO_PROXY"] || env["no_proxy"];
  if (checks.length > 0 && not) checks.push(ok("proxy", `not for ${not}`));
  return checks.length > 0 ? checks : [ok("proxy", "none")];
}

/** An address without user, password and query: these may be secrets. */
export function withoutSecrets(address: string): string {
  const url = toUrl(address);
  if (!url) return redact(address.replace(/^.*@/s, ""));
  const { host, pathname, protocol } = url;
  return redact(`${protocol}//${host}${pathname === "/" ? "" : pathname}`);
}

/** Runs a command in the sandbox. */
export async function checkSandbox(
  create: () => Promise<Sandbox>,
  wanted: "auto" | "none",
  io: Pick<Io, "cwd" | "env" | "signal">,
): Promise<Check> {
  if (wanted === "none") {
    return warning("sandbox", "none, as the settings say: commands run with all your rights.");
  }
  try {
    const sandbox = await create();
    const program = { argv: ["/bin/sh", "-c", "exit 0"], cwd: io.cwd, env: {} };
    const policy = { writable: [io.cwd], readOnly: [], hidden: [], network: false };
    const { argv, cwd, env } = sandbox.wrap(program, policy);
    const end = await tryProgram(argv, { cwd, env, signal: io.signal });
    return end.works
      ? ok("sandbox", `${sandbox.kind}: commands change the folder alone, without network`)
      : problem("sandbox", `${sandbox.kind} does not work: ${end.text}`);
  } catch (error) {
    if (error instanceof SandboxMissingError) return warning("sandbox", error.message);
    return problem("sandbox", errorMessage(error));
  }
}

/** How what a command starts is ended with it. */
export async function checkProcesses(): Promise<Check> {
  const { describeContainment, findContainment } = await import("@gyre/tools");
  return ok("processes", `without a sandbox, ${describeContainment(await findContainment())}`);
}

export async function checkRipgrep(
  find: () => Promise<string>,
  io: Pick<Io, "cwd" | "env" | "signal">,
): Promise<Check> {
  const slower = "Searching works without it, and is slower.";
  let path: string;
  try {
    path = await find();
  } catch {
    // It throws while loading where the platform has no build of it.
    return warning("ripgrep", `There is none for this platform. ${slower}`);
  }
  const { text, works } = await tryProgram([path, "--version"], io);
  return works
    ? ok("ripgrep", text)
    : warning("ripgrep", `${path} does not work: ${text} ${slower}`);
}

export async function checkGit(io: Pick<Io, "cwd" | "env" | "signal">): Promise<Check> {
  const { text, works } = await tryProgram(["git", "--version"], io);
  if (works) return ok("git", text.replace(/^git version /, ""));
  return warning("git", `It does not run (${text}): the tool git will not work. Install it.`);
}

/** The first line that a program writes, or why it did not end well. */
function tryProgram(
  [program = "", ...args]: readonly string[],
  { cwd, env, signal }: { cwd: string; env: Io["env"]; signal: AbortSignal },
): Promise<{ works: boolean; text: string }> {
  return new Promise((settle) => {
    // The folder may be a clone that brings programs of these names.
    const clean = { ...env, PATH: cleanPath(env["PATH"], cwd) };
    const options = { cwd: parse(cwd).root, env: clean, signal, timeout: PROGRAM_LIMIT_MS };
    execFile(program, args, options, (error, stdout, stderr) => {
      const output = error ? stderr.trim() || errorMessage(error) : stdout;
      settle({ works: !error, text: redact(output.trim().split("\n")[0] ?? "") });
    });
  });
}

/** Whether sessions can be written, how many there are, and who holds them. */
export async function checkSessions(folder: string): Promise<Check[]> {
  const place = nearestFolder(folder);
  const hint = "Change that, or set XDG_STATE_HOME to another folder.";
  try {
    if (!statSync(place).isDirectory()) {
      return [problem("sessions", `${place} is no folder. ${hint}`)];
    }
    accessSync(place, constants.W_OK | constants.X_OK);
  } catch (error) {
    return [
      problem(
        "sessions",
        `${place} cannot be written to (${errnoOf(error) ?? errorMessage(error)}). ${hint}`,
      ),
    ];
  }
  if (place !== folder) return [ok("sessions", `${folder}: none yet`)];
  let bytes = 0;
  let count = 0;
  const locks: string[] = [];
  try {
    for (const path of await filesIn(folder)) {
      bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (path.endsWith(".jsonl")) count += 1;
      if (path.endsWith(".jsonl.lock")) locks.push(path);
    }
  } catch (error) {
    return [
      problem("sessions", `${folder} cannot be read (${errnoOf(error) ?? errorMessage(error)}).`),
    ];
  }
  const sessions = count === 1 ? "1 session" : `${count} sessions`;
  return [ok("sessions", `${folder}: ${sessions}, ${sized(bytes)}`), ...locks.map(checkLock)];
}

function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}

/** Sessions are in the folder of the folder that was worked in. */
async function filesIn(folder: string): Promise<string[]> {
  const entries: Dirent[] = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function checkLock(path: string): Check {
  const session = /([^_]*)\.jsonl\.lock$/.exec(basename(path))?.[1] ?? path;
  const holder = readHolder(path);
  const advice = `If no gyre has it open: gyre sessions unlock ${session}`;
  if (holder === undefined) {
    return warning("locks", `Session ${session} is locked, by an unknown process. ${advice}`);
  }
  const { host, pid } = holder;
  if (host !== hostname()) {
    return warning("locks", `Session ${session} is locked by process ${pid} on ${host}. ${advice}`);
  }
  return isRunning(pid)
    ? ok("locks", `Session ${session} is open in process ${pid}`)
    : ok("locks", `Session ${session} was left by process ${pid}: the next one takes it over`);
}

function readHolder(path: string): { pid: number; host: string } | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    const { host, pid } = toRecord(value);
    return typeof pid === "number" && typeof host === "string" ? { pid, host } : undefined;
  } catch {
    // The check then reports a lock of an unknown process.
    return undefined;
  }
}

export function checkTerminal(io: Pick<Io, "env" | "stdin" | "stdout">, platform: string): Check {
  const { env } = io;
  const isTerminal = io.stdout.isTTY === true;
  const hasColor = openTerminal(io.stdout, env).style.bold("x") !== "x";
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  // Other platforms have no such variable, and are UTF-8 these days.
  const isUtf8 = platform !== "linux" || /utf-?8/i.test(locale);
  const facts = [
    isTerminal ? (env["TERM"] ?? "a terminal") : "stdout is no terminal",
    hasColor ? "colors" : "no colors",
  ];
  if (isUtf8) return ok("terminal", [...facts, "UTF-8"].join(", "));
  const hint = `the locale is "${locale}", which is not UTF-8. Set LANG=C.UTF-8.`;
  return warning("terminal", [...facts, hint].join(", "));
}

function sized(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= KILO && unit + 1 < UNITS.length; unit++) value /= KILO;
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}
