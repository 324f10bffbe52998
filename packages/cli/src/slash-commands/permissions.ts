import { type Choice, type CommandPart, text } from "@gyre/coding/internal/conversation/command";
import type { SettingsSource } from "@gyre/coding/internal/settings/load";
import { MODE_NAMES, MODES, parseMode } from "@gyre/coding/internal/text/choices";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { RuleScope } from "@gyre/tools";
import type { ShownCommand, ShownContext, SlashCommand, SlashContext } from "./command-context.ts";

/** The strongest first. */
const EFFECTS = ["deny", "ask", "allow"] as const;

const SOURCES: Readonly<Record<SettingsSource, string>> = {
  "policy file": "the administrator's policy",
  "user file": "your settings",
  "Claude Code file": "Claude Code's settings",
  "project file": "the project's settings",
  environment: "the environment",
  "command line": "the command line",
  program: "the program",
};

const SCOPES: Readonly<Record<RuleScope, string>> = {
  session: "your answer, until this ends",
  project: "your answer, for this project",
  everywhere: "your answer, everywhere",
};

/** A rule that holds. */
interface HeldRule {
  effect: (typeof EFFECTS)[number];
  rule: string;
  /** For people. */
  from: string;
}

/** `/permissions [MODE | forget RULE]`: the rules that hold, another mode, or one rule less. */
export const permissionsCommand: SlashCommand = {
  name: "permissions",
  aliases: ["allowed-tools"],
  about: "show the rules, and what it may do without asking",
  hint: `${MODE_NAMES.join(", ")}, forget RULE`,
  allowWhileRunning: true,
  async run(rest, context) {
    const rule = /^forget\s+(.+)$/.exec(rest)?.[1];
    if (rule !== undefined) return forgetRule(rule, context);
    if (rest === "") {
      context.show(rulesPart(listRules(context)));
      const { policy } = context.harness;
      if (policy) context.show(text(`The policy ${policy.path} holds: ${policy.describe()}.`));
    }
    return setMode(rest, context);
  },
  complete: (_typed, { harness }) => modeChoices(harness),
};

/** `/mode [MODE]`: the same without the rules. */
export const modeCommand: ShownCommand = {
  name: "mode",
  about: "show what it may do without asking, or change that",
  hint: MODE_NAMES.join(", "),
  allowWhileRunning: true,
  run: setMode,
  complete: (_typed, { harness }) => modeChoices(harness),
};

async function forgetRule(rule: string, { harness }: SlashContext): Promise<string> {
  if (await harness.revokeRule?.(rule)) return `${rule} is asked about again.`;
  const given = (harness.givenRules ?? []).map((each) => each.rule);
  const known = given.length === 0 ? "You gave none." : `You gave: ${given.join(", ")}.`;
  throw new Error(`There is no rule ${rule} of an answer. ${known}`);
}

async function setMode(rest: string, context: ShownContext): Promise<string | undefined> {
  const { harness } = context;
  const choices = modeChoices(harness);
  const given =
    rest === ""
      ? await context.choose({
          title: `What may it do without asking? Now: ${harness.mode}`,
          choices,
          start: choices.findIndex(({ value }) => value === harness.mode),
        })
      : rest;
  if (given === undefined) return undefined;
  const mode = parseMode(given);
  if (mode === undefined) {
    throw new Error(`There is no mode "${given}". The modes are ${MODE_NAMES.join(", ")}.`);
  }
  await harness.setMode(mode);
  return `The mode is ${mode} now. ${MODES[mode].description}`;
}

function modeChoices({ modes = MODE_NAMES }: ShownAgent): Choice<string>[] {
  return modes.map((value) => ({ value, label: value, detail: MODES[value].description }));
}

/** The rules that hold, the strongest first, with where each is from. */
function listRules({ harness, setup }: SlashContext): HeldRule[] {
  const { layers = [] } = setup;
  const set = EFFECTS.flatMap((effect) =>
    layers.flatMap(({ source, settings }) =>
      (settings[effect] ?? []).map((rule) => ({ effect, rule, from: SOURCES[source] })),
    ),
  );
  const given = (harness.givenRules ?? []).map(({ rule, scope }): HeldRule => ({
    effect: "allow",
    rule,
    from: SCOPES[scope],
  }));
  const seen = new Set<string>();
  return [...set, ...given].filter(({ effect, rule }) => {
    const key = `${effect} ${rule}`;
    const isFirst = !seen.has(key);
    seen.add(key);
    return isFirst;
  });
}

function rulesPart(rules: readonly HeldRule[]): CommandPart {
  if (rules.length === 0) {
    return text('There are no rules: "allow", "ask" and "deny" in the settings make some.');
  }
  return {
    type: "table",
    columns: ["", "rule", "from"],
    rows: rules.map(({ effect, rule, from }) => [effect, { code: rule }, from]),
  };
}
