import type { Skill } from "../../../guidance/skills.ts";
import type { TerminalCommand } from "../ui/ui.ts";

/** Before the name of a skill. */
export const SKILL_PREFIX = "skill:";

/** `/skill:NAME rest` for each skill: has the model read it, and do the rest by it. */
export function skillCommands(skills: readonly Skill[]): TerminalCommand[] {
  return skills.map(({ name, description }) => ({
    name: `${SKILL_PREFIX}${name}`,
    about: description,
    hint: "what to do",
    run: (rest, world) =>
      world.prompt(rest === "" ? `Use the skill ${name}.` : `Use the skill ${name}: ${rest}`),
  }));
}
