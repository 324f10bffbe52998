import type { AgentTool } from "@gyre/agent";
import { nearNames } from "@gyre/ai";
import picomatch from "picomatch";
import type { Access } from "../contract/access.ts";
import { createAddressMatcher } from "./addresses.ts";
import type { CommandPart, CommandParts } from "./command/parts.ts";
import { escapePattern } from "./escape-pattern.ts";

/**
 * Rules by what they do. Each is the name of a tool, or a name and a pattern in brackets:
 * `write`, `shell(git status*)`, `edit(src/**)`, `read(**\/.env*)`,
 * `fetch(https://example.org/docs/**)`, `mcp__tracker__*`. A rule for commands may name where
 * they run: `shell(in packages/*: npm test)`, `shell(unsandboxed: npm publish)`.
 */
export interface RuleList {
  allow?: readonly string[];
  ask?: readonly string[];
  deny?: readonly string[];
}

export type RuleEffect = keyof RuleList;

/** A rule that makes no sense: what is wrong, and where. */
export class RuleError extends Error {
  readonly rule: string;
  /** The list that the rule is in. */
  readonly effect: RuleEffect;
  /** What is wrong with the rule, without where it is. */
  readonly problem: string;
  constructor(rule: string, effect: RuleEffect, where: string, problem: string) {
    super(`${where}, ${JSON.stringify(rule)}, is wrong: ${problem}`);
    this.name = "RuleError";
    this.rule = rule;
    this.effect = effect;
    this.problem = problem;
  }
}

/** A tool that rules may name. Patterns for one that has `locations` are paths. */
export type RuleTool = Pick<AgentTool, "name" | "presentation">;

/** What a rule is held against. */
export interface Subject {
  tool: string;
  /** Absent for a tool without `access`. */
  kind?: Access["kind"];
  /** Resolved: paths, an address, or whatever the tool names. */
  targets: readonly string[];
  /** As the model wrote it. Counts where a rule forbids, never where one allows. */
  asked: readonly string[];
  /** Absolute paths of the targets that are in the workspace: rules that forbid by such a path hold for them. */
  absolute?: readonly string[];
  /** With `run`: what each target would run. */
  commands: readonly CommandParts[];
  /** With `run`: where, from the workspace. Default its own folder. */
  folder?: string;
  /** It would run outside of the sandbox. */
  unsandboxed?: boolean;
}

/** What rules say, and which one, in words. */
export interface Verdict {
  effect: RuleEffect;
  reason: string;
}

/** The tools whose rules hold for everything of a kind: forbidding one way forbids the others. */
const FAMILIES: Partial<Record<Access["kind"], readonly string[]>> = {
  read: ["read"],
  write: ["write", "edit"],
  run: ["shell"],
  network: ["fetch"],
};
/** Of these, a pattern that allows holds for the other tools as well. */
const SHARED_ALLOW = new Set<Access["kind"] | undefined>(["read", "write", "run"]);

/** Tools that show many files at once. */
const READERS = ["grep", "git"];

const RULE = /^([\w*.-]+)(?:\((.*)\))?$/s;
/** Where commands run, before the pattern for them. */
const PLACE = /^(?:(unsandboxed)(?: +in +([^:]+))?|in +([^:]+)):\s*(.*)$/s;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const MAX_PATTERN_CHARS = 1000;

interface Rule {
  effect: RuleEffect;
  source: string;
  names: (tool: string) => boolean;
  /** Absent: all calls of the tool. */
  pattern?: string;
  /** Names what runs outside of the sandbox. */
  unsandboxed: boolean;
  /** Absent: any folder, or where a rule allows one command by its very text, the workspace's own. */
  inFolder?: (folder: string) => boolean;
  matchesPath: (path: string) => boolean;
  matchesText: (text: string) => boolean;
}

/** Rules, checked and ready. Deny takes precedence over ask, and ask over allow. */
export class Rules {
  readonly #rules: Rule[] = [];
  readonly #tools: readonly RuleTool[] | undefined;

  /** Throws `RuleError` on the first rule that is wrong. `tools`: those that there are. */
  constructor(list: RuleList, tools?: readonly RuleTool[]) {
    this.#tools = tools;
    for (const effect of ["deny", "ask", "allow"] as const) {
      for (const [index, source] of (list[effect] ?? []).entries()) {
        this.add(effect, source, `rules.${effect}[${index}]`);
      }
    }
  }

  /** One more. `where` is for the message if it is wrong. */
  add(effect: RuleEffect, source: string, where = `the new ${effect} rule`): void {
    this.#rules.push(parseRule(effect, source, where, this.#tools));
  }

  /** The same rules and one more. Throws `RuleError` if that is wrong. */
  with(effect: RuleEffect, source: string): Rules {
    const more = new Rules({}, this.#tools);
    more.#rules.push(...this.#rules);
    more.add(effect, source);
    return more;
  }

  /** The same rules but for some of one effect. */
  without(effect: RuleEffect, isLeftOut: (source: string) => boolean): Rules {
    const others = new Rules({}, this.#tools);
    others.#rules.push(
      ...this.#rules.filter((rule) => rule.effect !== effect || !isLeftOut(rule.source)),
    );
    return others;
  }

  /** What forbids a call or wants it asked about, if anything does. */
  objection(subject: Subject): Verdict | undefined {
    for (const effect of ["deny", "ask"] as const) {
      for (const rule of this.#rules) {
        if (rule.effect !== effect || !concerns(rule, subject)) continue;
        const hit = hits(rule, subject);
        if (hit === undefined) continue;
        const action = effect === "deny" ? "forbids it" : "wants it asked about";
        if (hit === "surely") return { effect, reason: `The rule "${rule.source}" ${action}.` };
        return { effect: "ask", reason: `${hit} The rule "${rule.source}" may concern it.` };
      }
    }
    return undefined;
  }

  /**
   * Which rules allow all of a call, if they do. `exact`: only those without wildcards
   * count, which name the one thing that they allow. `named`: only those with a pattern.
   */
  permission(subject: Subject, exact = false, named = false): Verdict | undefined {
    const rules = this.#rules.filter(
      (rule) =>
        rule.effect === "allow" &&
        concerns(rule, subject) &&
        (rule.unsandboxed || !subject.unsandboxed) &&
        (isExact(rule) || !exact) &&
        (rule.pattern !== undefined || !named),
    );
    const used = allowing(rules, subject);
    if (!used) return undefined;
    return { effect: "allow", reason: `Allowed by ${[...used].map(quoted).join(" and ")}.` };
  }

  /**
   * Whether what holds for an address holds for another one of its server, to which that redirects:
   * no rule objects to it, and where a rule allows the first, one allows the second.
   */
  coversRedirect(tool: string, from: string, to: string): boolean {
    const describe = (url: string): Subject => {
      const { origin, pathname } = new URL(url);
      return {
        tool,
        kind: "network",
        targets: [origin + pathname],
        asked: [url],
        commands: [],
      };
    };
    const next = describe(to);
    if (this.objection(next)) return false;
    return !this.permission(describe(from)) || this.permission(next) !== undefined;
  }

  /** Whether a tool that shows many files has to leave this one out. `absolute`: the same path, if it is in the workspace. */
  forbidsReading(tool: string, path: string, absolute?: string): boolean {
    return this.#readRules(tool).some(
      (rule) =>
        rule.matchesPath(path) ||
        (absolute !== undefined &&
          isAbsolutePath(rule.pattern ?? "") &&
          rule.matchesPath(absolute)),
    );
  }

  /** Whether there are files that are not to be read, or to be asked about. */
  get forbidsFiles(): boolean {
    return READERS.some((tool) => this.#readRules(tool).length > 0);
  }

  #readRules(tool: string): Rule[] {
    const subject: Subject = { tool, kind: "read", targets: [], asked: [], commands: [] };
    return this.#rules.filter(
      (rule) => rule.effect !== "allow" && rule.pattern !== undefined && concerns(rule, subject),
    );
  }

  /**
   * Why a command may be one that a rule forbids or wants asked about, though it does not look
   * like it: what it runs is not looked into, or it names such a command.
   */
  suspicion(subject: Subject): Verdict | undefined {
    for (const rule of this.#rules) {
      const { effect, pattern, unsandboxed } = rule;
      if (effect === "allow" || pattern === undefined || !concerns(rule, subject)) continue;
      if (unsandboxed && !subject.unsandboxed) continue;
      const why = suspect(pattern, subject.commands);
      if (why !== undefined) {
        return { effect: "ask", reason: `${why} The rule "${rule.source}" may concern it.` };
      }
    }
    return undefined;
  }

  /** Whether a rule forbids certain commands: what is unclear may then be one of them. */
  get forbidsCommands(): boolean {
    return this.#rules.some(
      ({ effect, pattern, names }) => effect !== "allow" && pattern !== undefined && names("shell"),
    );
  }
}

function parseRule(
  effect: RuleEffect,
  source: string,
  where: string,
  tools: readonly RuleTool[] | undefined,
): Rule {
  const wrong = (what: string): RuleError => new RuleError(source, effect, where, what);
  const [, name, inBrackets] = RULE.exec(source.trim()) ?? [];
  if (name === undefined) {
    throw wrong("write the name of a tool, or a name and a pattern, as in shell(git status*).");
  }
  const names = wildcard(name);
  if (tools && !name.startsWith("mcp__") && !tools.some((tool) => names(tool.name))) {
    const known = tools.map((tool) => tool.name);
    const near = nearNames(name, known);
    const hint =
      near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Available: ${known.join(", ")}.`;
    throw wrong(`there is no tool "${name}". ${hint}`);
  }
  const [, out, outFolder, folder = outFolder, placed] =
    (names("shell") ? PLACE.exec(inBrackets ?? "") : undefined) ?? [];
  const pattern = placed ?? inBrackets;
  const inFolder = folder === undefined ? undefined : folderMatcher(folder, effect);
  if (typeof inFolder === "string") throw wrong(inFolder);
  if (folder !== undefined && isUnresolved(folder)) throw wrong(RELATIVE);
  const rule = {
    effect,
    source: source.trim(),
    names,
    unsandboxed: out !== undefined,
    ...(inFolder && { inFolder }),
  };
  if (pattern === undefined) return { ...rule, matchesPath: () => true, matchesText: () => true };
  if (pattern.trim() === "")
    throw wrong("its pattern is empty. Leave the brackets out for all calls.");
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw wrong(`its pattern has more than ${MAX_PATTERN_CHARS} characters.`);
  }
  if (SCHEME.test(pattern)) {
    const matches = createAddressMatcher(pattern, { forbids: effect !== "allow" });
    if (typeof matches === "string") throw wrong(matches);
    return { ...rule, pattern, matchesPath: matches, matchesText: matches };
  }
  const takesPaths = tools?.some(
    (tool) => tool.name === name && tool.presentation?.locations !== undefined,
  );
  if (takesPaths && isUnresolved(pattern)) throw wrong(RELATIVE);
  const glob = pathMatcher(pattern, effect);
  if (typeof glob === "string" && takesPaths) throw wrong(glob);
  return {
    ...rule,
    pattern,
    matchesPath: typeof glob === "string" ? () => effect !== "allow" : glob,
    matchesText: wildcard(pattern),
  };
}

const RELATIVE =
  'paths are relative to the workspace, or absolute: neither "~" nor ".." is followed.';

function isUnresolved(pattern: string): boolean {
  return /^(?:~|\.\.(?:\/|$))/.test(pattern);
}

/** Whether a path or a pattern for paths begins at the root of the system. */
function isAbsolutePath(path: string): boolean {
  return /^(?:\/|[A-Za-z]:\/)/.test(path);
}

/** Whether a rule names the one thing that it is about. */
function isExact({ pattern }: Rule): boolean {
  return pattern !== undefined && !pattern.includes("*");
}

/** Text in which `*` stands for anything. In time that grows with both lengths at most. */
function wildcard(pattern: string): (text: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  return (text) => {
    if (last === undefined) return text === first;
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = text.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}

function pathMatcher(pattern: string, effect: RuleEffect): ((path: string) => boolean) | string {
  const relative = pattern.replace(/^(?:\.\/)+/, "");
  const forbids = effect !== "allow";
  const options = {
    dot: true,
    nonegate: true,
    noextglob: true,
    strictBrackets: true,
    nocase: forbids,
  };
  const isAbsolute = isAbsolutePath(relative);
  try {
    // Where it forbids, it holds for what is in a folder, too, and a file system that does
    // not care for case is not a way around it.
    const matches = picomatch(forbids ? [relative, `${relative}/**`] : relative, options);
    // Which folder of the workspace an absolute path is in is not known here: such a rule holds at any depth of it.
    const beside = picomatch([`**/${relative}`, `**/${relative}/**`], options);
    if (!forbids) return (path) => isAbsolutePath(path) === isAbsolute && matches(path);
    return (path) => {
      // A wildcard ends at a line break, which a name may have.
      const plain = path.replace(/[\n\r\u2028\u2029]/g, "_");
      return isAbsolutePath(path) && !isAbsolute ? beside(plain) : matches(plain);
    };
  } catch (error) {
    return `its pattern is not a path pattern: ${error instanceof Error ? error.message : String(error)}.`;
  }
}

function folderMatcher(pattern: string, effect: RuleEffect): ((path: string) => boolean) | string {
  const matches = pathMatcher(pattern.trim(), effect);
  const isRoot = /^(?:\.\/?|(?:\.\/)?\*\*)$/.test(pattern.trim());
  if (typeof matches === "string") return matches;
  return (folder) => (folder === "." ? isRoot : matches(folder));
}

function concerns({ effect, pattern, names }: Rule, { tool, kind }: Subject): boolean {
  if (names(tool)) return true;
  const family = kind === undefined ? [] : (FAMILIES[kind] ?? []);
  if (effect === "allow" && (pattern === undefined || !SHARED_ALLOW.has(kind))) return false;
  return family.some((member) => names(member));
}

/** Whether a forbidding rule is meant: surely, or why perhaps. */
function hits(rule: Rule, subject: Subject): string | undefined {
  const { kind, targets, asked, commands, folder = "." } = subject;
  if (rule.pattern === undefined) return "surely";
  if (kind === undefined) return `What "${subject.tool}" would do is not known.`;
  if (kind === "run") {
    if (rule.unsandboxed && !subject.unsandboxed) return undefined;
    const hit = hitsCommands(rule, rule.pattern, commands);
    if (!rule.inFolder || hit === undefined || rule.inFolder(folder)) return hit;
    const moves = commands.some((line) => line.moves);
    return moves ? "It changes folders." : undefined;
  }
  const matches = kind === "read" || kind === "write" ? rule.matchesPath : rule.matchesText;
  const absolute = isAbsolutePath(rule.pattern) ? (subject.absolute ?? []) : [];
  return [...targets, ...asked, ...absolute].some((target) => matches(target))
    ? "surely"
    : undefined;
}

function hitsCommands(
  { matchesText }: Rule,
  pattern: string,
  commands: readonly CommandParts[],
): string | undefined {
  const parts = commands.flatMap((line) => line.parts);
  const isMeant = ({ text, plain, guesses }: CommandPart): boolean =>
    [text, ...plain, ...guesses].some(matchesText);
  if (parts.some(isMeant)) return "surely";
  const perhaps = parts.find(({ behindValues }) => behindValues?.some(matchesText));
  if (perhaps) return `"${perhaps.text}" may be it, with options before.`;
  const [fixed = ""] = pattern.split("*", 1);
  const open = parts.find(({ known }) =>
    known?.some((start) => start.startsWith(fixed) || fixed.startsWith(start)),
  );
  return open && `A part of "${open.text}" is not known before it runs.`;
}

/** Why lines may run what a pattern is about, if they may. */
function suspect(pattern: string, lines: readonly CommandParts[]): string | undefined {
  const parts = lines.flatMap((line) => line.parts);
  const hidden = parts.flatMap(({ escapes }) => escapes).find(({ runs }) => runs);
  if (hidden) return `${hidden.why}.`;
  const mentions = createMention(pattern);
  const runsText = parts.some((part) => part.runsText);
  const runsFiles = parts.some((part) => part.runsFiles);
  // What `printf` and the like make a line break or a tab of is no letter before a name.
  const isNamed = (text: string): boolean =>
    mentions?.test(text) || (mentions?.test(text.replaceAll(/\\[abefnrtv]/g, " ")) ?? false);
  const named = parts.find(({ hints = "", passesOn = "", redirects }) => {
    if (isNamed(hints)) return true;
    const isRun = runsText || (runsFiles && redirects.some(({ kind }) => kind === "write"));
    return isRun && isNamed(passesOn);
  });
  return named && `"${named.text}" may run what it names.`;
}

/** Finds the fixed beginning of a pattern in a text of any language: `"git", "push"`. */
function createMention(pattern: string): RegExp | undefined {
  const [fixed = ""] = pattern.split("*", 1);
  const words = fixed.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return undefined;
  const isWhole = fixed === pattern || /\s$/.test(fixed);
  return new RegExp(
    `(?<![\\w.-])${words.map(escapePattern).join("\\W+")}${isWhole ? "(?![\\w.-])" : ""}`,
  );
}

/** The rules that allow all of a call together; nothing if something is left. */
function allowing(rules: readonly Rule[], subject: Subject): Set<string> | undefined {
  const { kind, targets, asked, commands, folder = "." } = subject;
  const used = new Set<string>();
  const isAllowed = (test: (rule: Rule) => boolean): boolean => {
    const rule = rules.find(test);
    if (rule) used.add(rule.source);
    return rule !== undefined;
  };
  if (kind === "run") {
    const all = commands.every(
      (line) =>
        line.unclear === undefined &&
        line.parts.every(
          (part) =>
            part.inert ||
            isAllowed((rule) => allowsPart(rule, part) && holdsIn(rule, folder, line, part)),
        ),
    );
    return all && commands.length > 0 && used.size > 0 ? used : undefined;
  }
  // An address that was asked for may have more to it than the place that it leads to.
  const all = kind === "network" ? [...targets, ...asked] : targets;
  const matches = (rule: Rule, target: string): boolean =>
    rule.pattern === undefined ||
    (kind === "read" || kind === "write" ? rule.matchesPath(target) : rule.matchesText(target));
  if (all.length === 0) return isAllowed(({ pattern }) => pattern === undefined) ? used : undefined;
  return all.every((target) => isAllowed((rule) => matches(rule, target))) ? used : undefined;
}

function allowsPart(
  { pattern, matchesText }: Rule,
  { text, shape, escapes }: CommandPart,
): boolean {
  if (pattern === undefined) return true;
  // A rule with a wildcard may have the very text of a pattern of files, and means it.
  if (pattern !== text && !matchesText(shape)) return false;
  if (pattern === text && !pattern.includes("*")) return true;
  const named = pattern.split(/[\s*]+/);
  return escapes.every(({ word }) => named.includes(word));
}

/** Whether a rule that allows a part does so where the part runs. */
function holdsIn(rule: Rule, folder: string, line: CommandParts, part: CommandPart): boolean {
  if (!rule.inFolder && !isExact(rule)) return true;
  if (line.moves && !part.moves) return false;
  return rule.inFolder ? rule.inFolder(folder) : folder === ".";
}

function quoted(text: string): string {
  return `"${text}"`;
}
