import type { CommandContext, CommandResult } from "@gyre/coding/internal/conversation/command";
import type { FilePlace, HistoryLine } from "@gyre/coding/internal/file-history/lines/line";
import { type Prompt, readPrompts, promptText } from "@gyre/coding/internal/file-history/prompts";
import { titleText } from "@gyre/coding/internal/text/session-title";
import type { Session } from "@gyre/sessions";
import { agoText } from "../../text/session-text.ts";
import { counted } from "../../text/tool-text.ts";
import { bringFiles, type PlaceContext } from "./bring-files.ts";

/** The newest prompts are offered: to an older one, /tree goes. */
const MAX_PROMPTS = 200;

/** A place to go back to. */
interface Place {
  /** What it is called in a question. */
  title: string;
  label: string;
  detail: string;
  at: number;
  to: FilePlace;
  /** Where the conversation goes on; null: at its beginning. */
  entry: number | null;
  /** What is put into the editor. */
  edit?: string;
}

/** `/rewind`: back to before a prompt, with the conversation, the files or both. */
export async function rewind(
  context: CommandContext & PlaceContext,
): Promise<CommandResult | undefined> {
  const place = await choosePlace(context);
  if (!place) return undefined;
  const { entry, edit, title, to } = place;
  const gone = await bringFiles(context, { title, to, isAlwaysAsked: true, done: "taken back" });
  if (!gone) return undefined;
  const open = { entry, ...(edit !== undefined && { edit }) };
  return { ...(gone.extent !== "files" && { open }), show: gone.show };
}

async function choosePlace({ choose, harness }: PlaceContext): Promise<Place | undefined> {
  const { session, fileHistory } = harness;
  const lines = (await fileHistory?.lines()) ?? [];
  const prompts: Prompt[] = [];
  if (session) {
    for await (const prompt of readPrompts(session)) {
      if (prompts.push(prompt) === MAX_PROMPTS) break;
    }
  }
  const places = [
    ...placesOfPrompts(prompts, lines),
    ...placesOfRewinds(lines),
    ...(session ? findUnfinished(lines, session) : []),
  ];
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
      to: { before: entry },
      entry: parent,
      edit: prompted,
    };
  });
}

/** A rewind can be taken back. */
function placesOfRewinds(lines: readonly HistoryLine[]): Place[] {
  return lines.flatMap((line, index) => {
    if (line.by !== "rewind" || line.changes.length === 0) return [];
    const { at, leaf = null, to } = line;
    const name = to && "after" in to ? "the way to another place" : "the rewind";
    return {
      title: `Back to before ${name}`,
      label: `(${name})`,
      detail: formatDetail([line], at),
      at,
      to: { line: index },
      entry: leaf,
    };
  });
}

/** What was cut off, if nothing happened since: the rest of it can be done. */
function findUnfinished(lines: readonly HistoryLine[], session: Session): Place[] {
  const last = lines.at(-1);
  if (!last?.isCutOff || !last.to || "line" in last.to) return [];
  const { at, to } = last;
  const prompt = "before" in to ? to.before : undefined;
  const entry = "after" in to ? to.after : (session.findBranch(prompt).at(-2) ?? null);
  return [
    {
      title: "Finish what was cut off",
      label: "(finish what was cut off)",
      detail: agoText(at, Date.now()),
      // Before the way back from it, which has the same time.
      at: at + 1,
      to,
      entry,
    },
  ];
}

function formatDetail(lines: readonly HistoryLine[], at: number): string {
  const paths = new Set(lines.flatMap(({ changes }) => changes.map(({ path }) => path)));
  const ago = agoText(at, Date.now());
  return paths.size === 0 ? ago : `${counted(paths.size, "file")}, ${ago}`;
}
