import { isAbsolute, join, relative } from "node:path";
import type { AgentTool } from "@gyre/agent";
import type { Access } from "../../contract/access.ts";
import type { CommandPart, CommandParts } from "../command/parts.ts";
import { needsNetwork, takesNames } from "../danger/network.ts";
import { listOperands } from "../danger/options.ts";
import {
  hostKey,
  listAddresses,
  nameKey,
  normalizeName,
  parseAddress,
  placeKey,
  stripVersion,
} from "./names.ts";

/** A place that a call reaches, or what it gets from there. */
export interface CallName {
  what: "address" | "path" | "name";
  /** For people. */
  shown: string;
  /** The ways in which a text may name it. */
  keys: readonly string[];
  /** What tracked files are searched for. */
  text: string;
}

/** What is known of a call. */
export interface LookedAt {
  tool: AgentTool;
  args: Readonly<Record<string, unknown>>;
  access: Access | undefined;
  commands: readonly CommandParts[];
  /** A sandbox without a network is around it, and nothing about it is delicate. */
  isLocal: boolean;
  /** The workspace, absolute. */
  root: string;
  home: string;
}

/** Of a call; more are not looked at. */
const MAX_CALL_NAMES = 100;
/** Of the arguments of a tool of others. */
const MAX_STRINGS = 200;

/** Written to or read from without a trace. */
const NOWHERE = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"]);

/** Words behind a program's own command that say what it does, and name nothing. */
const VERBS = new Set("install i add get download pull push run tool image pip clone".split(" "));

/** The hosts, addresses, paths, packages and branches of a call that matter for where it leads. */
export function listCallNames(call: LookedAt): CallName[] {
  return [...findNames(call)].slice(0, MAX_CALL_NAMES);
}

function* findNames(call: LookedAt): Generator<CallName> {
  const { tool, args, access } = call;
  switch (access?.kind) {
    case "none":
    case "agent":
      return;
    case "read":
      for (const path of access.outside ?? []) yield* namePath(path, call);
      return;
    case "write":
      for (const path of access.targets) yield* namePath(path, call);
      return;
    case "run":
      for (const line of call.commands) {
        for (const part of line.parts) yield* namesOfPart(part, call);
      }
      return;
    default:
      if (tool.presentation?.kind === "fetch") {
        // A link within a server that the user named is no news.
        for (const { host } of listAddresses(String(args["url"]))) yield nameHost(host);
        return;
      }
      for (const target of access?.targets ?? []) yield* nameAddresses(target);
      for (const text of listStrings(args)) {
        yield* nameAddresses(text);
        if (/^(?:~?\/|\.{1,2}\/)/.test(text)) yield* namePath(text, call);
        else if (tool.name === "git" && text !== args["action"]) yield nameWord(text);
      }
  }
}

function* namesOfPart({ words, redirects }: CommandPart, call: LookedAt): Generator<CallName> {
  const [first, ...rest] = words;
  const program = first?.literal ? first.text.slice(first.text.lastIndexOf("/") + 1) : "";
  const literal = rest.filter((word) => word.literal).map(({ text }) => text);
  const reaches = !call.isLocal && needsNetwork(program, literal);
  if (!call.isLocal) for (const text of literal) yield* nameAddresses(text);
  const things = reaches && takesNames(program) ? listThings(program, literal) : [];
  for (const word of things) yield nameWord(word);
  const opened = redirects.filter(({ target }) => target.literal).map(({ target }) => target.text);
  const others = literal.filter((word) => !things.includes(word));
  const paths = [...(first?.literal ? [first.text] : []), ...others].flatMap(listPaths);
  for (const path of [...paths, ...opened]) yield* namePath(path, call);
}

/** What a package manager or `git` is to get or to send: operands behind its own commands. */
function listThings(program: string, args: readonly string[]): string[] {
  const operands = listOperands(program, args);
  const [, second = ""] = operands;
  const skipped = /^(?:npx|pnpx|bunx|uvx)$/.test(program) ? 0 : VERBS.has(second) ? 2 : 1;
  const isPlace = (word: string): boolean =>
    /^(?:~|\.{0,2}\/)/.test(word) || (word.includes("/") && parseAddress(word) !== undefined);
  return operands.slice(skipped).filter((word) => !isPlace(word));
}

/** The paths that a word of a command is or has as its value. */
function listPaths(word: string): string[] {
  const value = word.startsWith("-") ? word.slice(word.indexOf("=") + 1) : word;
  const isPath = /^(?:~|\.{0,2}\/)|[^/]\/+[^/]/.test(value) && !value.includes("://");
  return isPath && !/\s/.test(value) && !value.startsWith("-") ? [value] : [];
}

function* nameAddresses(text: string): Generator<CallName> {
  for (const { host, place } of listAddresses(text)) {
    if (!isLikelyHost(host)) continue;
    yield nameHost(host);
    if (place !== undefined) {
      yield { what: "address", shown: place, keys: [placeKey(place)], text: place };
    }
  }
}

/** Names of files have dots, too. */
function isLikelyHost(host: string): boolean {
  return !/\.(?:[cm]?[jt]sx?|json|md|txt|py|rb|go|rs|sh|ya?ml|toml|lock|html?|css|xml|log|git)$/.test(
    host,
  );
}

function nameHost(host: string): CallName {
  return { what: "address", shown: host, keys: [hostKey(host)], text: host };
}

function nameWord(word: string): CallName {
  const name = stripVersion(normalizeName(word));
  return { what: "name", shown: name, keys: [nameKey(name)], text: name };
}

/** Every project has such files. */
const USUAL =
  /^(?:index|main|app|cli|lib|mod|test|tests|setup|config|package|tsconfig|readme|license|changelog|makefile|dockerfile|\.gitignore)(?:\.\w+)?$/i;

function* namePath(written: string, { root, home, args }: LookedAt): Generator<CallName> {
  if (NOWHERE.has(written)) return;
  const cwd = typeof args["cwd"] === "string" ? args["cwd"] : "";
  const plain = normalizeName(written);
  const absolute = plain.startsWith("~/")
    ? join(home, plain.slice(1))
    : isAbsolute(plain)
      ? plain
      : join(root, cwd, plain);
  const inside = relative(root, absolute);
  const isInside = inside !== "" && !inside.startsWith("..") && !isAbsolute(inside);
  const inHome = relative(home, absolute);
  const isInHome = inHome !== "" && !inHome.startsWith("..") && !isAbsolute(inHome);
  const forms = [
    plain,
    absolute,
    ...(isInside ? [inside] : []),
    ...(isInHome ? [`~/${inHome}`] : []),
  ];
  if (absolute === root || absolute === "/" || USUAL.test(inside)) return;
  const keys = [...new Set(forms)].map(nameKey);
  yield { what: "path", shown: written, keys, text: isInside ? inside : plain };
}

function listStrings(value: unknown, found: string[] = []): string[] {
  if (found.length >= MAX_STRINGS) return found;
  if (typeof value === "string") found.push(value);
  else if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) listStrings(inner, found);
  }
  return found;
}
