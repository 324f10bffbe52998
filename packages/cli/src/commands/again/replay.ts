import { readPrompts, promptText } from "@gyre/coding/internal/file-history/prompts";
import type { HistoryLine } from "@gyre/coding/internal/file-history/lines/line";
import { openHarness } from "@gyre/coding/internal/harness/harness";
import { readSpending, type Spending } from "@gyre/coding/internal/harness/session/spending";
import { titleText } from "@gyre/coding/internal/text/session-title";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { AgentMessage } from "@gyre/agent";
import type { Session } from "@gyre/sessions";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { createStored, openStore, readSetup } from "../../core/setup.ts";
import { alignColumns } from "../../text/columns.ts";
import { dollars } from "../../text/dollars.ts";
import { runQuietly } from "./run-quietly.ts";

/** One run of the prompts, recorded or again. */
interface Run {
  model: string;
  requests: number;
  cost: string;
  /** What the files that it changed hold at its end; null: it removed one. */
  files: ReadonlyMap<string, string | null>;
  test?: boolean;
}

/**
 * `gyre replay ID [-- COMMAND]`: sends the prompts of a session again, in a copy of the folder as it was before
 * the first of them, and compares what came of it.
 */
export async function runReplay(
  [id, ...command]: readonly string[],
  values: Values,
  io: Io,
): Promise<ExitCode> {
  if (id === undefined) throw new UsageError("replay takes a session: gyre replay ID --model NAME");
  const store = await openStore(io);
  const session = await store.open(id);
  try {
    const prompts: string[] = [];
    for await (const prompt of readPrompts(session)) prompts.unshift(promptText(prompt));
    if (prompts.length === 0) throw new ExitError(EXIT.failed, "This session has no prompts.");
    const { CopyInTime } = await import("@gyre/coding/internal/file-history/rewind/copy-in-time");
    const copy = await CopyInTime.make(session.header.cwd, session.header.id, io.env);
    try {
      const test = async (): Promise<{ test?: boolean }> =>
        command.length === 0 ? {} : { test: await runQuietly(command, copy.folder, io.signal) };
      const recorded = { ...(await readRecorded(session, copy.lines)), ...(await test()) };
      await copy.goTo(0);
      const again = await sendAgain(prompts, { ...values, cwd: copy.folder }, io);
      const compared = { ...again.run, ...(await test()) };
      io.stdout.write(compare(recorded, compared));
      const keep = values.keep ? `The copy is in ${copy.folder}\n` : "";
      io.stdout.write(`${keep}gyre sessions show ${again.session}\n`);
      return EXIT.done;
    } finally {
      if (!values.keep) await copy.remove();
    }
  } finally {
    await session.close();
  }
}

async function readRecorded(session: Session, lines: readonly HistoryLine[]): Promise<Run> {
  const context = await session.context();
  return describeRun(context.messages, await readSpending(session, context), lines);
}

async function sendAgain(
  prompts: readonly string[],
  values: Values,
  io: Io,
): Promise<{ run: Run; session: string }> {
  const { settings, explicit, ...setup } = await readSetup(values, io);
  // No person is there to be asked.
  const own = values.mode === undefined ? { ...settings, mode: "auto" as const } : settings;
  const store = await openStore(io);
  const session = await createStored(store, setup.cwd);
  try {
    const options = { env: io.env, approvals: "deny", fileHistory: true, session } as const;
    const asked = { settings: own, explicit: new Set([...explicit, "mode" as const]) };
    const harness = await openHarness({ ...setup, ...asked, ...options });
    const abort = (): void => harness.agent.abort();
    io.signal.addEventListener("abort", abort, { once: true });
    try {
      for (const [index, text] of prompts.entries()) {
        io.stderr.write(`${index + 1} of ${prompts.length}: ${oneLine(titleText(text))}\n`);
        const { end } = await harness.prompt({ text, signal: io.signal });
        if (end.stop !== "done") io.stderr.write(`It ended: ${end.stop}\n`);
        if (io.signal.aborted) throw new ExitError(EXIT.failed, "Interrupted.");
      }
      const lines = (await harness.fileHistory?.lines()) ?? [];
      const run = describeRun(harness.agent.state.messages, harness.spending, lines);
      return { run, session: session.header.id };
    } finally {
      io.signal.removeEventListener("abort", abort);
      await harness.close();
    }
  } finally {
    await session.close();
  }
}

function describeRun(
  messages: readonly AgentMessage[],
  spending: Spending,
  lines: readonly HistoryLine[],
): Run {
  const answers = messages.filter((message) => message.role === "assistant");
  const models = new Set(answers.map(({ model }) => model));
  const { cost } = spending.session;
  const files = new Map<string, string | null>();
  const first = new Map<string, string | null>();
  for (const { path, before, after } of lines.flatMap(({ changes }) => changes)) {
    if (!first.has(path)) first.set(path, before?.hash ?? null);
    files.set(path, after?.hash ?? null);
  }
  // What is as it was before is no change.
  for (const [path, hash] of first) if (files.get(path) === hash) files.delete(path);
  return {
    model: [...models].join(", "),
    requests: answers.length,
    cost: cost ? dollars(cost.total) : "not known",
    files,
  };
}

/** Both runs beside each other, and the files that differ. */
function compare(recorded: Run, again: Run): string {
  const both = [...recorded.files.keys()].filter((path) => again.files.has(path));
  const isSame = (path: string): boolean => recorded.files.get(path) === again.files.get(path);
  const only = (one: Run, other: Run): string[] =>
    [...one.files.keys()].filter((path) => !other.files.has(path));
  const row = (name: string, pick: (run: Run) => string): string[] => [
    name,
    pick(recorded),
    pick(again),
  ];
  const table = alignColumns([
    ["", "recorded", "again"],
    row("model", ({ model }) => model),
    row("requests", ({ requests }) => String(requests)),
    row("cost", ({ cost }) => cost),
    row("files changed", ({ files }) => String(files.size)),
    ...(again.test === undefined
      ? []
      : [row("the command", ({ test }) => (test ? "passes" : "fails"))]),
  ]);
  const list = (title: string, paths: readonly string[]): string[] =>
    paths.length === 0 ? [] : [`${title}: ${oneLine(paths.toSorted().join(", "))}`];
  return `${[
    ...table,
    ...list("the same", both.filter(isSame)),
    ...list(
      "different",
      both.filter((path) => !isSame(path)),
    ),
    ...list("only recorded", only(recorded, again)),
    ...list("only again", only(again, recorded)),
  ].join("\n")}\n`;
}
