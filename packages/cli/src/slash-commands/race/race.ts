import {
  type CommandContext,
  type CommandResult,
  text,
} from "@gyre/coding/internal/conversation/command";
import { readWork } from "@gyre/coding/internal/race/finish";
import { prepareRace, type Race, type RunOptions } from "@gyre/coding/internal/race/race";
import {
  findLeftRaces,
  leaveRace,
  removeRace,
  type StoredRace,
} from "@gyre/coding/internal/race/race-folder";
import type { Rival } from "@gyre/coding/internal/race/rival";
import { titleText } from "@gyre/coding/internal/text/session-title";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { agoText } from "../../text/session-text.ts";
import { asCode } from "../../text/markdown-text.ts";
import { counted } from "../../text/tool-text.ts";
import { finishRace, type FinishContext } from "./finish.ts";
import { parseRace } from "./parse.ts";
import { type EndedRival, rivalRow } from "./rival-text.ts";

/** Names of what a copy lacks that are listed. */
const MAX_MISSING = 4;

/** What `/race` works with. */
export type RaceContext = CommandContext &
  FinishContext & {
    setup: { cwd: string; settings?: Pick<Settings, "maxCost" | "raceTest"> };
    /** Opens an agent in a copy of the folder, with the rights of the one that is open. */
    openRival?: RunOptions["open"];
    /** Asks the user about a call of another agent than the one that is open. */
    askFor?: (
      request: Parameters<RunOptions["ask"]>[0],
      asker: { name: string; folder: string },
    ) => ReturnType<RunOptions["ask"]>;
    /** Shows these rows while the command is at work, drawn again and again. Gives what ends that. */
    showRows?: (rows: () => readonly string[]) => () => void;
  };

/** `/race`: rivals go on with the conversation, each in a copy of the folder; one of them is adopted. */
export async function race(
  rest: string,
  context: RaceContext,
): Promise<CommandResult | string | undefined> {
  const { askFor, openRival } = context;
  if (!askFor || !openRival) throw new Error("/race works in the terminal that runs the agent.");
  const { env, harness, setup } = context;
  if (rest === "") {
    const [left] = await findLeftRaces(env, setup.cwd);
    if (left) return finishLeft(left, context);
  }
  const request = await parseRace(rest, (name) => harness.findModel(name));
  const { maxCost, raceTest } = setup.settings ?? {};
  const test = request.test ?? raceTest;
  const { models, prompt, withIgnored } = request;
  const running = await prepareRace({
    ...{ harness, cwd: setup.cwd, env, models, withIgnored },
    ...(prompt !== undefined && { prompt }),
  });
  describeStart(running, test, context);
  return attended(running.stored, async () => {
    await runRivals(running, context, {
      open: openRival,
      ask: (asked, rival) =>
        askFor(asked, { name: describeRival(rival), folder: rival.record.copy.cwd }),
      ...(test !== undefined && { test }),
      ...(maxCost !== undefined && { maxCost }),
    });
    const ended = await Promise.all(
      running.rivals.map(async (run) => ({ work: await readWork(run.record, env), run })),
    );
    return finishRace(running.stored, ended, context);
  });
}

/** A race that fails is found again, and can be finished. */
async function attended<T>(stored: StoredRace, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await leaveRace(stored);
    throw error;
  }
}

function describeStart(
  { missing, rivals, stored }: Race,
  test: string | undefined,
  { show }: Pick<CommandContext, "show">,
): void {
  const { prompt } = stored.record;
  const kind = rivals[0]?.record.copy.kind === "worktree" ? "worktree" : "copy of the folder";
  const each = rivals.length === 1 ? "" : "each ";
  show(text(`${counted(rivals.length, "rival")}, ${each}in a ${kind}: “${titleText(prompt)}”.`));
  if (test === undefined || missing.length === 0) return;
  const names = missing.slice(0, MAX_MISSING).join(", ");
  const more = missing.length > MAX_MISSING ? " and more" : "";
  show({
    type: "warning",
    text: oneLine(
      `What git ignores is not in the worktrees: ${names}${more}. /race --with-ignored copies it.`,
    ),
  });
}

async function runRivals(
  running: Race,
  { show, showRows, signal }: RaceContext,
  options: Pick<RunOptions, "open" | "ask" | "test" | "maxCost">,
): Promise<void> {
  const { rivals } = running;
  const now = (): number => Date.now();
  const endRows = showRows?.(() => rivals.map((rival) => rivalRow(rival, now())));
  const seen = new Map<Rival, string>();
  const onChange = (): void => {
    // Where nothing can be drawn again, each state is a line.
    if (showRows) return;
    for (const rival of rivals) {
      if (seen.get(rival) === rival.state) continue;
      seen.set(rival, rival.state);
      show(text(rivalRow(rival, now())));
    }
  };
  try {
    await running.run({ ...options, now, onChange, signal });
  } finally {
    endRows?.();
  }
}

function describeRival({ model, number }: Rival): string {
  return `rival ${number} (${oneLine(model)})`;
}

/** A race of a process that has ended: what its rivals did so far is there. */
async function finishLeft(
  left: StoredRace,
  context: RaceContext,
): Promise<CommandResult | undefined> {
  const { env, harness } = context;
  const { prompt, rivals, session, startedAt } = left.record;
  const isHere = harness.session?.header.id === session;
  const answer = await context.choose<"finish" | "remove" | "leave">({
    title: `A race was cut off: “${titleText(prompt)}”, ${agoText(startedAt, Date.now())}`,
    about: [
      `${counted(rivals.length, "copy", "copies")} in ${left.folder}`,
      ...(isHere ? [] : [`It is of another session: gyre --resume ${session}`]),
    ],
    choices: [
      ...(isHere ? [{ value: "finish", label: "compare what they did so far" } as const] : []),
      { value: "remove", label: "remove the copies, and what they did" },
      { value: "leave", label: "leave it" },
    ],
  });
  if (answer === "remove") {
    await removeRace(left, env);
    return { show: [text(`Removed: ${asCode(left.folder)}.`)] };
  }
  if (answer !== "finish") return undefined;
  const ended: EndedRival[] = [];
  for (const record of rivals) ended.push({ work: await readWork(record, env) });
  return finishRace(left, ended, context);
}
