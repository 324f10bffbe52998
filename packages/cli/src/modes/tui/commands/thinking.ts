import { THINKING } from "../../../text/choices.ts";
import { COMMAND_ABOUTS, COMMAND_HINTS, thinkingText } from "../../../text/command-text.ts";
import type { Choice, TerminalCommand } from "../ui/ui.ts";

/** `/thinking [LEVEL]`: takes another level, from a list where none is named. */
export const thinkingCommand: TerminalCommand = {
  name: "thinking",
  about: COMMAND_ABOUTS.thinking,
  hint: COMMAND_HINTS.thinking,
  anytime: true,
  async run(rest, { harness, ui }) {
    const current = harness.agent.state.thinkingLevel;
    const level =
      rest === ""
        ? await ui.choose({
            title: "How much should it think?",
            choices: LEVELS.map((choice) =>
              choice.value === current ? { ...choice, detail: "now" } : choice,
            ),
            start: LEVELS.findIndex(({ value }) => value === current),
          })
        : rest;
    if (level !== undefined) ui.say(await thinkingText(level, harness));
  },
  complete: () => LEVELS,
};

const LEVELS: readonly Choice<string>[] = Object.entries(THINKING).map(([value, name]) => ({
  value,
  label: value,
  search: name,
}));
