import {
  type CommandContext,
  type CommandPart,
  type CommandResult,
  text,
} from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { importRivals } from "@gyre/coding/internal/race/finish";
import { removeRace, type StoredRace } from "@gyre/coding/internal/race/race-folder";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { Environment } from "../../core/io.ts";
import { asCode } from "../../text/markdown-text.ts";
import { counted } from "../../text/tool-text.ts";
import { applyPlan } from "../places/bring-files.ts";
import {
  compareRivals,
  describeEnd,
  describeWork,
  type EndedRival,
  nameRival,
} from "./rival-text.ts";

/** What the end of a race works with. */
export interface FinishContext extends Pick<CommandContext, "choose" | "show"> {
  harness: Harness;
  env: Environment;
}

/** Where the conversation goes on, and what was done to files. */
interface Adopted {
  entry: number;
  rival: EndedRival;
  show: readonly CommandPart[];
}

/**
 * Compares the rivals, has the user look at them and adopt one or none, makes all of them branches of the session, and
 * removes their copies.
 */
export async function finishRace(
  stored: StoredRace,
  ended: readonly EndedRival[],
  context: FinishContext,
): Promise<CommandResult> {
  const { env, show } = context;
  show(compareRivals(ended));
  const adopted = await chooseRival(stored, ended, context);
  const leaves = await importAll(stored, ended, context);
  const kept = new Set<number>();
  const { leftOut = [], record } = adopted?.rival.work ?? {};
  if (record && leftOut.length > 0) kept.add(record.number);
  await removeRace(stored, env, kept);
  const others = adopted ? "The others are" : "None is adopted: they are";
  const tree = `${others} branches of /tree, with their files.`;
  if (!adopted) return { show: [text(leaves.size === 0 ? "None has begun." : tree)] };
  const copy =
    record && leftOut.length > 0
      ? [text(`What was not kept is in ${asCode(record.copy.folder)}, which stays.`)]
      : [];
  const name = oneLine(nameRival(adopted.rival));
  const more = leaves.size > 1 ? [text(tree)] : [];
  return {
    open: { entry: adopted.entry },
    show: [text(`Rival ${asCode(name)} is adopted.`), ...adopted.show, ...more, ...copy],
  };
}

/** Undefined: none. */
async function chooseRival(
  stored: StoredRace,
  ended: readonly EndedRival[],
  context: FinishContext,
): Promise<Adopted | undefined> {
  const { choose, show } = context;
  for (;;) {
    const rival = await choose<EndedRival | "none">({
      title: "Look at which one? It can be adopted then.",
      choices: [
        ...ended.map((each) => ({
          value: each,
          label: nameRival(each),
          detail: describeEnd(each),
        })),
        { value: "none", label: "adopt none" },
      ],
    });
    if (rival === undefined || rival === "none") return undefined;
    show(text(`**Rival ${asCode(oneLine(nameRival(rival)))}**`), ...describeWork(rival));
    const answer = await choose<"adopt" | "others" | "none">({
      title: `Adopt ${nameRival(rival)}? Its changes are made in the folder, and its answers are the conversation.`,
      choices: [
        { value: "adopt", label: "adopt it" },
        { value: "others", label: "look at the others" },
        { value: "none", label: "adopt none" },
      ],
    });
    if (answer === "none") return undefined;
    const adopted = answer === "adopt" && (await adopt(stored, ended, rival, context));
    if (adopted) return adopted;
  }
}

/** Undefined: it was left at a question, or there is nothing to adopt. */
async function adopt(
  stored: StoredRace,
  ended: readonly EndedRival[],
  rival: EndedRival,
  context: FinishContext,
): Promise<Adopted | undefined> {
  const { harness, show } = context;
  const leaves = await importAll(stored, ended, context);
  const entry = leaves.get(rival.work.record.number);
  if (entry === undefined) {
    show({ type: "warning", text: "It was never asked: there is nothing to adopt." });
    return undefined;
  }
  const history = harness.fileHistory;
  const plan = await history?.plan({ after: entry });
  const report = history && plan && (await applyPlan(context, history, plan));
  if (history && !report) return undefined;
  const { done = [], failed = [], left = [] } = report ?? {};
  const files = `${counted(done.length, "file")} changed; /rewind undoes that.`;
  const stay = `Left as they are: ${left.map(({ path }) => asCode(path)).join(", ")}.`;
  return {
    entry,
    rival,
    show: [
      text([files, ...(left.length > 0 ? [stay] : [])].join(" ")),
      ...failed.map(({ path, why }): CommandPart => ({
        type: "warning",
        text: `${oneLine(path)} could not be changed: ${oneLine(why)}.`,
      })),
    ],
  };
}

function importAll(
  stored: StoredRace,
  ended: readonly EndedRival[],
  { env, harness }: FinishContext,
): Promise<ReadonlyMap<number, number>> {
  return importRivals(stored, harness, env, ({ number }) => {
    const rival = ended.find(({ work }) => work.record.number === number);
    return rival ? `race ${nameRival(rival)}: ${describeEnd(rival)}` : `race ${number}`;
  });
}
