import { isClaudeRule } from "@gyre/coding/internal/settings/claude/rules";
import { UsageError } from "../exit-codes.ts";
import type { OptionName } from "../options.ts";

/** An option of Claude Code, and what is written here for the same. */
export interface ClaudeOption {
  /** Taken as if this stood there. */
  readonly as?: OptionName;
  /** What its values are here; undefined for one that has no equal. Default: the same. */
  readonly value?: (given: string) => string | undefined;
  /** Takes no value. */
  readonly isBare?: boolean;
  /** Takes rules, several of them in one value or one after the other. */
  readonly takesRules?: boolean;
  /** Left out: what it asks for is so anyway. */
  readonly isLeftOut?: boolean;
  /** An option that does the same in another way, if the command takes it. */
  readonly see?: OptionName;
  /** What to do instead, behind the name of that option or without one. */
  readonly instead?: string;
}

const OUTPUTS: Readonly<Record<string, string>> = { text: "text", "stream-json": "claude" };
const rules = (as: OptionName): ClaudeOption => ({ as, takesRules: true });

/** The options of Claude Code that are not called the same here, without `--`. */
export const CLAUDE_OPTIONS: Readonly<Record<string, ClaudeOption>> = {
  "output-format": {
    as: "output",
    value: (given) => OUTPUTS[given],
    see: "output",
    instead:
      "`--output json` prints one object of gyre, `--output claude` the lines of Claude Code; the last is its result",
  },
  "input-format": {
    isLeftOut: true,
    value: (given) => (given === "text" ? given : undefined),
    instead: "`gyre rpc` takes lines of JSON",
  },
  "permission-mode": { as: "mode" },
  "dangerously-skip-permissions": {
    isBare: true,
    see: "mode",
    instead: "`--mode full` asks about nothing",
  },
  "allow-dangerously-skip-permissions": {
    isBare: true,
    see: "mode",
    instead: "`--mode full` asks about nothing",
  },
  allowedTools: rules("allow"),
  "allowed-tools": rules("allow"),
  disallowedTools: rules("deny"),
  "disallowed-tools": rules("deny"),
  "max-budget-usd": { as: "max-cost" },
  "fork-session": { as: "fork", isBare: true },
  "no-session-persistence": { as: "no-session", isBare: true },
  effort: { as: "thinking" },
  "fallback-model": { instead: 'Set "fallbackModels" in the settings' },
  "json-schema": { see: "schema", instead: "`--schema FILE` takes a JSON Schema in a file" },
  "mcp-config": { instead: "Servers are in .mcp.json and the settings: see `gyre mcp add`" },
  "strict-mcp-config": { isBare: true, instead: "Servers are in .mcp.json and the settings" },
  settings: { see: "config", instead: "`--config FILE` takes the place of your settings" },
  "setting-sources": { see: "config", instead: "`--config FILE` takes the place of your settings" },
  "session-id": {
    see: "history",
    instead: "Sessions get their own ids; `--history FILE` goes on with a file that you name",
  },
  "system-prompt-file": { see: "system-prompt", instead: '`--system-prompt "$(cat FILE)"`' },
  "append-system-prompt-file": {
    see: "append-system-prompt",
    instead: '`--append-system-prompt "$(cat FILE)"`',
  },
  debug: {
    isBare: true,
    see: "verbose",
    instead: "`--verbose` writes all that is sent and received",
  },
  "include-partial-messages": {
    isBare: true,
    see: "output",
    instead: "`--output stream-json` has each piece of an answer",
  },
  "permission-prompt-tool": {
    see: "allow",
    instead: "Nothing is asked with -p: `--mode` and `--allow` give permission beforehand",
  },
  agents: { instead: "Sub-agents are files in .gyre/agents or .claude/agents" },
  ide: { isBare: true, instead: "`gyre acp` is for editors" },
};

/**
 * A command line in which options of Claude Code that have an equal are ours. Those that have none are an error that
 * says what to do instead; it names no option that the command, whose options are `known`, does not take.
 */
export function translateOptions(
  args: readonly string[],
  known: readonly OptionName[],
): readonly string[] {
  const translated: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") return [...translated, ...args.slice(at)];
    const [, name = "", joined] = /^--([A-Za-z-]+)(?:=([^]*))?$/.exec(word) ?? [];
    const option = Object.hasOwn(CLAUDE_OPTIONS, name) ? CLAUDE_OPTIONS[name] : undefined;
    if (!option) {
      translated.push(word);
      continue;
    }
    const { as, isBare, isLeftOut, takesRules } = option;
    if ((!as && !isLeftOut) || (as && !known.includes(as))) throw noEqual(name, option, known);
    if (isBare) {
      translated.push(`--${as}`);
      continue;
    }
    const given = joined ?? args[++at];
    if (given === undefined) throw new UsageError(`Option "--${name}" needs a value.`);
    const values = takesRules ? splitRules(given) : [given];
    while (takesRules && joined === undefined && isRules(args[at + 1])) {
      values.push(...splitRules(args[++at] ?? ""));
    }
    for (const value of values) {
      const own = option.value ? option.value(value) : value;
      if (own === undefined) throw noEqual(`${name} ${value}`, option, known);
      if (as) translated.push(`--${as}=${own}`);
    }
  }
  return translated;
}

function noEqual(
  name: string,
  { see, instead = "" }: ClaudeOption,
  known: readonly OptionName[],
): UsageError {
  const hint = instead === "" || (see && !known.includes(see)) ? "" : ` ${instead}.`;
  return new UsageError(`There is no option "--${name}" here.${hint}`);
}

/** Rules with commas or blanks between them, which may be in brackets as well. */
function splitRules(text: string): string[] {
  return [...text.matchAll(/(?:\([^)]*\)|[^\s,(])+/g)].map(([rule]) => rule);
}

function isRules(word: string | undefined): boolean {
  return word !== undefined && splitRules(word).some(isClaudeRule);
}
