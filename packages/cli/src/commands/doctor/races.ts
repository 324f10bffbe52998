import { listRaces } from "@gyre/coding/internal/race/race-folder";
import type { Environment } from "../../core/io.ts";
import { agoText } from "../../text/session-text.ts";
import { counted } from "../../text/tool-text.ts";
import type { Check } from "./checks.ts";

/** Copies of the folder that a `/race` has left: it was cut off, or one of them was to stay. */
export async function checkRaces(env: Environment, now: number): Promise<Check[]> {
  const { races, broken } = await listRaces(env);
  const left = races.filter(({ isRunning }) => !isRunning);
  return [
    ...left.map(({ folder, record }) => {
      const copies = counted(record.rivals.length, "copy", "copies");
      const when = agoText(record.startedAt, now);
      return warn(
        `a race in ${record.cwd} was cut off, ${when}: ${copies} in ${folder}. To finish or remove it: gyre --resume ${record.session}, then /race.`,
      );
    }),
    ...broken.map((folder) =>
      warn(
        `${folder} is left of a race: look at it, then remove it, and \`git worktree prune\` in its repository.`,
      ),
    ),
  ];
}

function warn(message: string): Check {
  return { name: "races", status: "warning", message };
}
