import {
  type Choice,
  type CommandContext,
  type CommandPart,
  text,
} from "@gyre/coding/internal/conversation/command";
import type { FilePlace } from "@gyre/coding/internal/file-history/lines/line";
import type { FileHistory } from "@gyre/coding/internal/file-history/recorder";
import type { RewindReport } from "@gyre/coding/internal/file-history/rewind/apply";
import type { RewindPlan, RewindStep } from "@gyre/coding/internal/file-history/rewind/plan";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import { asCode } from "../../text/markdown-text.ts";
import { counted } from "../../text/tool-text.ts";

/** Files that are listed in a preview; the rest is counted. */
const MAX_LISTED = 12;
const CANCEL = { value: "cancel", label: "cancel" } as const;

/** What the commands that go to another place work with. */
export type PlaceContext = Pick<CommandContext, "choose"> & {
  harness: Pick<Harness, "fileHistory" | "session">;
};

/** What goes to another place. */
export type Extent = "both" | "files" | "conversation";

export interface Going {
  /** What the place is called in the question. */
  title: string;
  to: FilePlace;
  /** Whether files can go alone. Default: true. */
  allowFilesOnly?: boolean;
  /** It is asked also where no file would change. Default: false. */
  isAlwaysAsked?: boolean;
  /** What became of files: "taken back". */
  done: string;
}

/** How it ended. */
export interface Gone {
  extent: Extent;
  /** How many files were changed. */
  files: number;
  /** What to show. */
  show: readonly CommandPart[];
}

/**
 * Asks what goes to a place, with a preview of the files, and brings the files there. The conversation is the
 * caller's. Undefined: the question was left, and nothing has happened.
 */
export async function bringFiles(context: PlaceContext, going: Going): Promise<Gone | undefined> {
  const history = context.harness.fileHistory;
  const plan = await history?.plan(going.to);
  const hasNews = plan !== undefined && plan.steps.length + plan.leftOut.length > 0;
  if (!hasNews && !going.isAlwaysAsked) return { extent: "conversation", files: 0, show: [] };
  const extent = await chooseExtent(context, going, plan);
  if (extent === undefined || extent === "cancel") return undefined;
  let report: RewindReport | undefined;
  if (history && plan && extent !== "conversation") {
    report = await applyPlan(context, history, plan);
    if (!report) return undefined;
  }
  const failed = (report?.failed ?? []).map(({ path, why }): CommandPart => ({
    type: "warning",
    text: `${oneLine(path)} could not be ${going.done}: ${oneLine(why)}.`,
  }));
  const files = report?.done.length ?? 0;
  return { extent, files, show: [text(reportText(report, extent, going.done)), ...failed] };
}

function chooseExtent(
  { choose }: PlaceContext,
  { title, allowFilesOnly = true }: Going,
  plan: RewindPlan | undefined,
): Promise<Extent | "cancel" | undefined> {
  const hasFiles = plan?.steps.some(({ conflict }) => !conflict?.isFinal) ?? false;
  const choices: Choice<Extent | "cancel">[] = [
    ...(hasFiles ? [{ value: "both", label: "conversation and files" } as const] : []),
    ...(hasFiles && allowFilesOnly ? [{ value: "files", label: "files only" } as const] : []),
    { value: "conversation", label: "conversation only" },
    CANCEL,
  ];
  return choose({
    title,
    about: plan ? formatPreview(plan) : ["Files are not recorded here."],
    choices,
  });
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

/** Does it, after a question about files with changes from outside. Undefined: it was left. */
export async function applyPlan(
  { choose }: Pick<PlaceContext, "choose">,
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

function reportText(report: RewindReport | undefined, extent: Extent, done: string): string {
  const parts = [
    ...(extent === "files" ? [] : ["The conversation goes on from here."]),
    ...(report ? [`${counted(report.done.length, "file")} ${done}; /rewind undoes that.`] : []),
    ...(report && report.left.length > 0
      ? [`Left as they are: ${report.left.map(({ path }) => asCode(path)).join(", ")}.`]
      : []),
  ];
  return parts.join(" ");
}
