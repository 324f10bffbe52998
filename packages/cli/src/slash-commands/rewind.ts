import { type Choice, type CommandPart, text } from "@gyre/coding/internal/conversation/command";
import type { HistoryLine } from "@gyre/coding/internal/file-history/line";
import { type Prompt, readPrompts, promptText } from "@gyre/coding/internal/file-history/prompts";
import type { FileHistory } from "@gyre/coding/internal/file-history/recorder";
import type { RewindReport } from "@gyre/coding/internal/file-history/rewind-apply";
import type { RewindFrom, RewindPlan, RewindStep } from "@gyre/coding/internal/file-history/rewind";
import { asCode } from "../text/markdown-text.ts";
import { agoText } from "../text/session-text.ts";
import { titleText } from "@gyre/coding/internal/text/session-title";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { counted } from "../text/tool-text.ts";
import type { SlashCommand, SlashContext } from "./command-context.ts";

/** The newest prompts are offered: to an older one, /tree goes. */
const MAX_PROMPTS = 200;
/** Files that are listed in a preview; the rest is counted. */
const MAX_LISTED = 12;
const CANCEL = { value: "cancel", label: "cancel" } as const;

/** A place to go back to. */
interface Place {
  /** What it is called in a question. */
  title: string;
  label: string;
  detail: string;
  at: number;
  from: RewindFrom;
  /** Where the conversation goes on; null: at its beginning. */
  entry: number | null;
  /** What is put into the editor. */
  edit?: string;
}

type Extent = "both" | "files" | "conversation" | "cancel";

/** `/rewind`: back to before a prompt, with the conversation, the files or both. */
export const rewindCommand: SlashCommand = {
  name: "rewind",
  aliases: ["undo"],
  about: "take the conversation, files or both back to before a prompt",
  views: ["terminal", "screen reader"],
  async run(_rest, context) {
    const place = await choosePlace(context);
    if (!place) return undefined;
    const history = context.harness.fileHistory;
    const plan = (await history?.plan(place.from)) ?? { steps: [], leftOut: [] };
    const extent = await chooseExtent(context, place, plan);
    if (extent === undefined || extent === "cancel") return undefined;
    let report: RewindReport | undefined;
    if (history && extent !== "conversation") {
      report = await rewindFiles(context, history, plan);
      if (!report) return undefined;
    }
    const { entry, edit } = place;
    const failed = (report?.failed ?? []).map(({ path, why }): CommandPart => ({
      type: "warning",
      text: `${oneLine(path)} could not be taken back: ${oneLine(why)}.`,
    }));
    return {
      ...(extent !== "files" && { open: { entry, ...(edit !== undefined && { edit }) } }),
      show: [text(reportText(report, extent)), ...failed],
    };
  },
};

async function choosePlace({ choose, harness }: SlashContext): Promise<Place | undefined> {
  const { session, fileHistory } = harness;
  const lines = (await fileHistory?.lines()) ?? [];
  const prompts: Prompt[] = [];
  if (session) {
    for await (const prompt of readPrompts(session)) {
      if (prompts.push(prompt) === MAX_PROMPTS) break;
    }
  }
  const places = [...placesOfPrompts(prompts, lines), ...placesOfRewinds(lines)];
  if (places.length === 0) throw new Error("There is nothing to go back to yet.");
  places.sort((a, b) => b.at - a.at);
  return choose({
    title: "Back to before which prompt?",
    choices: places.map((place) => ({ value: place, label: place.label, detail: place.detail })),
    filter: true,
  });
}

function placesOfPrompts(prompts: readonly Prompt[], lines: readonly HistoryLine[]): Place[] {
  return prompts.map((prompt) => {
    const { entry, parent, at } = prompt;
    const prompted = promptText(prompt);
    const own = lines.filter((line) => line.by === "agent" && line.entry === entry);
    return {
      title: `Back to before “${titleText(prompted)}”`,
      label: titleText(prompted) || "(an image)",
      detail: formatDetail(own, at),
      at,
      from: { entry },
      entry: parent,
      edit: prompted,
    };
  });
}

/** A rewind can be taken back. */
function placesOfRewinds(lines: readonly HistoryLine[]): Place[] {
  return lines.flatMap((line, index) => {
    if (line.by !== "rewind") return [];
    const { at, leaf = null } = line;
    return {
      title: "Back to before the rewind",
      label: "(the rewind)",
      detail: formatDetail([line], at),
      at,
      from: { line: index },
      entry: leaf,
    };
  });
}

function formatDetail(lines: readonly HistoryLine[], at: number): string {
  const paths = new Set(lines.flatMap(({ changes }) => changes.map(({ path }) => path)));
  const ago = agoText(at, Date.now());
  return paths.size === 0 ? ago : `${counted(paths.size, "file")}, ${ago}`;
}

function chooseExtent(
  { choose, harness }: SlashContext,
  { title }: Place,
  plan: RewindPlan,
): Promise<Extent | undefined> {
  const hasFiles = plan.steps.some(({ conflict }) => !conflict?.isFinal);
  const choices: Choice<Extent>[] = [
    ...(hasFiles
      ? [
          { value: "both", label: "conversation and files" } as const,
          { value: "files", label: "files only" } as const,
        ]
      : []),
    { value: "conversation", label: "conversation only" },
    CANCEL,
  ];
  const about = harness.fileHistory ? formatPreview(plan) : ["Files are not recorded here."];
  return choose({ title, about, choices });
}

/** What would be done, a line a file. */
function formatPreview({ steps, leftOut }: RewindPlan): string[] {
  const clear = steps.filter(({ conflict }) => !conflict).map(stepText);
  const conflicts = steps.flatMap(({ path, conflict }) =>
    conflict ? [`! ${path} stays: ${conflict.why}`] : [],
  );
  const left = leftOut.map(({ path, why }) => `? ${path} was not kept: ${why}`);
  const all = [...shortened(clear), ...shortened(conflicts), ...shortened(left)];
  return all.length > 0 ? all : ["No file is to be taken back."];
}

function stepText({ action, path, lines }: RewindStep): string {
  const counts = lines ? `  +${lines.added} -${lines.removed}` : "";
  switch (action) {
    case "restore":
      return `~ ${path}${counts}`;
    case "recreate":
      return `+ ${path} comes back${counts}`;
    case "remove":
      return `- ${path} is removed${counts}`;
  }
}

function shortened(list: readonly string[]): string[] {
  if (list.length <= MAX_LISTED) return [...list];
  return [...list.slice(0, MAX_LISTED), `  and ${list.length - MAX_LISTED} more`];
}

/** Takes files back, after a question about those with changes from outside. Undefined: it was left. */
async function rewindFiles(
  { choose }: SlashContext,
  history: FileHistory,
  plan: RewindPlan,
): Promise<RewindReport | undefined> {
  const conflicts = plan.steps.flatMap(({ path, conflict }) =>
    conflict && !conflict.isFinal ? [`! ${path}: ${conflict.why}`] : [],
  );
  if (conflicts.length === 0) return history.apply(plan, { withConflicts: false });
  const answer = await choose<"leave" | "replace" | "cancel">({
    title: `${counted(conflicts.length, "file")} may hold changes from outside of this session`,
    about: shortened(conflicts),
    choices: [
      { value: "leave", label: "leave them as they are" },
      { value: "replace", label: "take them back too" },
      CANCEL,
    ],
  });
  if (answer === undefined || answer === "cancel") return undefined;
  return history.apply(plan, { withConflicts: answer === "replace" });
}

function reportText(report: RewindReport | undefined, extent: Extent): string {
  const parts = [
    ...(extent === "files" ? [] : ["The conversation goes on from here."]),
    ...(report ? [`${counted(report.done.length, "file")} taken back; /rewind undoes that.`] : []),
    ...(report && report.left.length > 0
      ? [`Left as they are: ${report.left.map(({ path }) => asCode(path)).join(", ")}.`]
      : []),
  ];
  return parts.join(" ");
}
