import {
  type CommandContext,
  type CommandResult,
  text,
} from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { listKeptCommands, undoKeptCommand } from "@gyre/tools";
import { asCode } from "../../text/markdown-text.ts";
import { agoText } from "../../text/session-text.ts";
import { counted } from "../../text/tool-text.ts";

/** Offers the commands whose effects were kept, and undoes the one that is chosen. */
export async function undoKeptEffects({
  choose,
  harness,
}: Pick<CommandContext, "choose"> & { harness: Pick<Harness, "toolset"> }): Promise<
  CommandResult | undefined
> {
  const { env } = harness.toolset;
  const kept = await listKeptCommands(env);
  if (kept.length === 0) {
    throw new Error("No command of this folder was kept: there is nothing to undo. See /rewind.");
  }
  const now = Date.now();
  const chosen = await choose({
    title: "Undo what which command changed?",
    choices: kept.map((command) => ({
      value: command,
      label: oneLine(command.title),
      detail: `${counted(command.effects, "change")}, ${agoText(command.at, now)}`,
    })),
    filter: true,
  });
  if (!chosen) return undefined;
  await undoKeptCommand(env, chosen);
  return {
    show: [
      text(`Undone: ${counted(chosen.effects, "change")} of ${asCode(oneLine(chosen.title))}.`),
    ],
  };
}
