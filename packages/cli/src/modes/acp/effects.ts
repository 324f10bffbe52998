import type { PermissionOption, ToolCallContent } from "@agentclientprotocol/sdk";
import type { EffectsReport, ShownEffect } from "@gyre/tools";
import { canKeep, effectText, summarizeEffects } from "../../text/effects-text.ts";
import { absolute } from "./tool-call.ts";

/** Of what a command did, so many effects are shown as changes of files. */
const MAX_DIFFS = 50;
/** And so many are named. */
const MAX_LINES = 200;
/** Picked one by one; the rest is decided by one answer. */
export const MAX_PICKED = 50;

/** What a command did in a layer: a summary, then the changes of files. */
export function effectsContent(report: EffectsReport, cwd: string): ToolCallContent[] {
  const { effects } = report;
  const lines = effects.slice(0, MAX_LINES).map((effect) => `- ${explainEffect(effect)}`);
  const more = effects.length - lines.length;
  if (more > 0) lines.push(`- and ${more} more`);
  const text = [summarizeEffects(report), lines.join("\n")].filter(Boolean).join("\n\n");
  return [
    { type: "content", content: { type: "text", text } },
    ...effects.flatMap((effect) => effectDiff(effect, cwd)).slice(0, MAX_DIFFS),
  ];
}

/** One effect, with what stands in its way. */
export function effectContent(effect: ShownEffect, cwd: string): ToolCallContent[] {
  const text = explainEffect(effect);
  return [{ type: "content", content: { type: "text", text } }, ...effectDiff(effect, cwd)];
}

function explainEffect(effect: ShownEffect): string {
  const { conflict, notes } = effect;
  const problems = [...(conflict === undefined ? [] : [`not kept: it ${conflict}`]), ...notes];
  return [effectText(effect), ...problems].join("; ");
}

function effectDiff({ path, kind, texts }: ShownEffect, cwd: string): ToolCallContent[] {
  if (!texts) return [];
  const { before, after } = texts;
  return [
    {
      type: "diff",
      path: absolute(path, cwd),
      newText: after,
      ...(kind !== "create" && { oldText: before }),
    },
  ];
}

/** What a person may answer to what a command did. */
export function effectOptions(
  { effects }: EffectsReport,
  rule: string | undefined,
): PermissionOption[] {
  const keepable = effects.filter(canKeep).length;
  const once = (optionId: string, name: string): PermissionOption => ({
    optionId,
    name,
    kind: "allow_once",
  });
  const rest = keepable < effects.length ? " that can be kept" : "";
  return [
    ...(keepable > 0 ? [once("keep", `Keep what it did${rest}`)] : []),
    ...(keepable > 1 ? [once("pick", "Pick what to keep")] : []),
    ...(rule === undefined || keepable === 0
      ? []
      : [
          {
            optionId: "always",
            name: `Keep it, and always run ${rule} directly`,
            kind: "allow_always" as const,
          },
        ]),
    once("direct", "Discard it, and run it directly"),
    { optionId: "discard", name: "Discard it", kind: "reject_once" },
  ];
}

/** The answers about one effect of several. */
export function pickOptions(left: number): PermissionOption[] {
  const more: PermissionOption[] =
    left === 0
      ? []
      : [
          { optionId: "keep-rest", name: `Keep this and the other ${left}`, kind: "allow_once" },
          {
            optionId: "leave-rest",
            name: `Discard this and the other ${left}`,
            kind: "reject_once",
          },
        ];
  return [
    { optionId: "keep", name: "Keep this", kind: "allow_once" },
    { optionId: "leave", name: "Discard this", kind: "reject_once" },
    ...more,
  ];
}
