import { MODES } from "../../../text/choices.ts";
import { COMMAND_ABOUTS, COMMAND_HINTS, modeText } from "../../../text/command-text.ts";
import type { SettingsSource } from "../../../settings/load.ts";
import type { Choice, CommandWorld, TerminalCommand } from "../ui/ui.ts";
import { codeCell, table } from "./markdown-text.ts";

/** The strongest first. */
const EFFECTS = ["deny", "ask", "allow"] as const;

const SOURCES: Readonly<Record<SettingsSource, string>> = {
  "user file": "your settings",
  "project file": "the project's settings",
  environment: "the environment",
  "command line": "the command line",
};

/** A rule that holds. */
export interface HeldRule {
  effect: (typeof EFFECTS)[number];
  rule: string;
  /** For people. */
  from: string;
}

/** `/permissions [MODE]`: the rules that hold, and another mode. */
export const permissionsCommand: TerminalCommand = {
  name: "permissions",
  about: "show the rules, and what it may do without asking",
  hint: COMMAND_HINTS.mode,
  anytime: true,
  async run(rest, world) {
    if (rest === "") world.ui.say(rulesText(rulesOf(world)));
    await takeMode(rest, world);
  },
  complete: () => modeChoices(),
};

/** `/mode [MODE]`: the same without the rules. */
export const modeCommand: TerminalCommand = {
  name: "mode",
  about: COMMAND_ABOUTS.mode,
  hint: COMMAND_HINTS.mode,
  anytime: true,
  run: takeMode,
  complete: () => modeChoices(),
};

async function takeMode(rest: string, { harness, ui }: CommandWorld): Promise<void> {
  const choices = modeChoices();
  const mode =
    rest === ""
      ? await ui.choose({
          title: `What may it do without asking? Now: ${harness.mode}`,
          choices,
          start: choices.findIndex(({ value }) => value === harness.mode),
        })
      : rest;
  if (mode !== undefined) ui.say(await modeText(mode, harness));
}

function modeChoices(): Choice<string>[] {
  return Object.entries(MODES).map(([value, { description }]) => ({
    value,
    label: value,
    detail: description,
  }));
}

/** The rules that hold, the strongest first, with where each is from. */
export function rulesOf({ harness, setup }: Pick<CommandWorld, "harness" | "setup">): HeldRule[] {
  const { layers = [] } = setup;
  const set = EFFECTS.flatMap((effect) =>
    layers.flatMap(({ source, settings }) =>
      (settings[effect] ?? []).map((rule) => ({ effect, rule, from: SOURCES[source] })),
    ),
  );
  const given = (harness.givenRules ?? []).map((rule): HeldRule => ({
    effect: "allow",
    rule,
    from: "your answer, until this ends",
  }));
  const seen = new Set<string>();
  return [...set, ...given].filter(({ effect, rule }) => {
    const key = `${effect} ${rule}`;
    const isFirst = !seen.has(key);
    seen.add(key);
    return isFirst;
  });
}

function rulesText(rules: readonly HeldRule[]): string {
  if (rules.length === 0) {
    return 'There are no rules: "allow", "ask" and "deny" in the settings make some.';
  }
  const rows = rules.map(({ effect, rule, from }) => [effect, codeCell(rule), from]);
  return table(["", "rule", "from"], rows);
}
