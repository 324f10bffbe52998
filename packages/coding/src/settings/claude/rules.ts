import { isAbsolute, join, relative, resolve, sep } from "node:path";

/** The lists that rules are in, there and here. */
export const RULE_LISTS = ["allow", "ask", "deny"] as const;
export type RuleEffect = (typeof RULE_LISTS)[number];

/** What paths in rules are from. */
export interface RulePlace {
  /** The folder that is worked in, links followed: rules of ours are from there. */
  cwd: string;
  /** What a path with one slash before it is from. Default: `cwd`. */
  root?: string;
  home: string;
}

/** The name of a tool of Claude Code, and a pattern for its calls. */
const RULE = /^([A-Z][A-Za-z]*)(?:\((.*)\))?$/s;
const MCP_SERVER = /^mcp__[^_*]+(?:_[^_*]+)*$/;

/** What our tools for the same are called; where a rule allows all calls, each needs a name of its own. */
const TOOLS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  Bash: ["shell"],
  Read: ["read"],
  Edit: ["edit", "write"],
  MultiEdit: ["edit"],
  NotebookEdit: ["edit"],
  Write: ["write"],
  Glob: ["find"],
  Grep: ["grep"],
  LS: ["ls"],
  WebFetch: ["fetch"],
  Task: ["task"],
  Agent: ["task"],
};
/** Tools of theirs that there are none of here: nothing of them can be allowed or denied. */
const ABSENT: ReadonlySet<string> = new Set([
  ...["AskUserQuestion", "BashOutput", "EnterPlanMode", "ExitPlanMode", "KillBash", "KillShell"],
  ...["ListMcpResourcesTool", "NotebookRead", "PowerShell", "ReadMcpResourceTool", "SlashCommand"],
  ...["TodoRead", "TodoWrite", "WebSearch"],
]);
const PATHS: ReadonlySet<string> = new Set(["read", "edit", "write"]);
const DOMAIN = /^domain:((?:\*\.)?[\w.-]+|\*)$/;

/** Whether a rule is written as Claude Code has it: its tools begin with a capital letter, ours do not. */
export function isClaudeRule(rule: string): boolean {
  const [, name = ""] = RULE.exec(rule.trim()) ?? [];
  return name in TOOLS || ABSENT.has(name) || MCP_SERVER.test(rule.trim());
}

/**
 * The rules of ours that say what a rule of Claude Code does; none where it is about a tool that there is none of here.
 * Undefined where there is no way to say it.
 */
export function translateRule(
  effect: RuleEffect,
  rule: string,
  place: RulePlace,
): readonly string[] | undefined {
  const text = rule.trim();
  if (MCP_SERVER.test(text)) return [`${text}__*`];
  if (text.startsWith("mcp__")) return [text];
  const [, name = "", pattern] = RULE.exec(text) ?? [];
  if (ABSENT.has(name)) return [];
  const tools = TOOLS[name];
  if (!tools) return undefined;
  if (pattern === undefined || pattern === "*" || pattern === "**") {
    return effect === "allow" ? tools : tools.slice(0, 1);
  }
  const [tool] = tools;
  const patterns = translatePattern(effect, tool, pattern, place);
  return patterns?.map((each) => `${tool}(${each})`);
}

function translatePattern(
  effect: RuleEffect,
  tool: string,
  pattern: string,
  place: RulePlace,
): readonly string[] | undefined {
  if (pattern.trim() === "") return undefined;
  if (tool === "shell") return commandPatterns(pattern);
  if (tool === "fetch") return addressPatterns(effect, pattern);
  return PATHS.has(tool) ? pathPatterns(effect, pattern, place) : undefined;
}

/** A command and all that may follow it: `git status:*` and `git status *` are the same there, and not `git statusx`. */
function commandPatterns(pattern: string): readonly string[] | undefined {
  const [, start] = /^(.*?)(?::\*| \*)$/s.exec(pattern) ?? [];
  if (start === undefined) return [pattern];
  return start.trim() === "" ? undefined : [start, `${start} *`];
}

function addressPatterns(effect: RuleEffect, pattern: string): readonly string[] | undefined {
  const [, host] = DOMAIN.exec(pattern.trim()) ?? [];
  if (host === undefined || host === "*") return undefined;
  // What is allowed is https alone, with a query or without; what is not, holds for both ways to reach a host.
  return effect === "allow"
    ? [`https://${host}/**`, `https://${host}/**?**`]
    : [`https://${host}/**`, `http://${host}/**`];
}

/** Paths as in a `.gitignore`: a name alone is meant at any depth, and a folder with all that is in it. */
function pathPatterns(
  effect: RuleEffect,
  pattern: string,
  { cwd, root = cwd, home }: RulePlace,
): readonly string[] {
  const isFolder = pattern.endsWith("/");
  const path = isFolder ? pattern.slice(0, -1) : pattern;
  const found = path.startsWith("//")
    ? path.slice(1)
    : path.startsWith("~/")
      ? join(escapeGlob(home), path.slice(2))
      : path.startsWith("/")
        ? fromWorkspace(join(escapeGlob(root), path), escapeGlob(cwd))
        : /^\.\.?\//.test(path)
          ? fromWorkspace(resolve(escapeGlob(cwd), path), escapeGlob(cwd))
          : path.includes("/")
            ? path
            : `**/${path}`;
  const plain = found.replaceAll(sep, "/");
  // A rule of ours that forbids holds for what is in a folder by itself.
  if (effect !== "allow" || plain.endsWith("*")) return [plain];
  return isFolder ? [`${plain}/**`] : [plain, `${plain}/**`];
}

/** As rules of ours name it: from the workspace, or absolute where it is outside. */
function fromWorkspace(path: string, cwd: string): string {
  const inside = relative(cwd, path);
  return inside === "" ? "**" : inside.startsWith("..") || isAbsolute(inside) ? path : inside;
}

/** The names of folders on the way are no patterns. */
function escapeGlob(path: string): string {
  return path.replaceAll(/[[\](){}!*?+@]/g, String.raw`\$&`);
}

/** Lists of rules in which those of Claude Code are ours. `failed` has those that have no equal, which are left out. */
export function translateLists<T extends { readonly [K in RuleEffect]?: readonly string[] }>(
  lists: T,
  place: RulePlace,
): { lists: T; failed: readonly string[] } {
  const own = { ...lists };
  const failed: string[] = [];
  for (const effect of RULE_LISTS) {
    const rules: readonly string[] | undefined = lists[effect];
    if (!rules?.some(isClaudeRule)) continue;
    const translated = rules.flatMap((rule) => {
      if (!isClaudeRule(rule)) return [rule];
      const found = translateRule(effect, rule, place);
      if (!found) failed.push(`the ${effect} rule ${JSON.stringify(rule)}`);
      return found ?? [];
    });
    Object.assign(own, { [effect]: translated });
  }
  return { lists: own, failed };
}
