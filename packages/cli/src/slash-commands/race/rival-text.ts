import type { CommandPart } from "@gyre/coding/internal/conversation/command";
import type { RivalFile, RivalWorkDone } from "@gyre/coding/internal/race/finish";
import type { Rival } from "@gyre/coding/internal/race/rival";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { type DiffLine, diffTexts } from "../../modes/tui/transcript/diff-view.ts";
import { dollars } from "../../text/dollars.ts";
import { callText, counted, elapsed } from "../../text/tool-text.ts";

/** Of all files of one of the rivals, lines of their changes. */
const MAX_DIFF_LINES = 400;
const MAX_ANSWER_CHARS = 60;

/** One of the rivals at the end: what it did, and how it was run, where this process has run it. */
export interface EndedRival {
  work: RivalWorkDone;
  run?: Rival | undefined;
}

/** `1 Sonnet`. */
export function nameRival({ work: { record }, run }: EndedRival): string {
  const model = run?.model ?? record.model ?? "";
  return oneLine(`${record.number} ${model}`).trim();
}

/** A row for one that runs: `1 Sonnet · working · shell npm test · $0.02 · 12 s`. */
export function rivalRow(rival: Rival, now: number): string {
  const { activity, error, model, number, state, usage } = rival;
  const isDone = state === "done" || state === "limit" || state === "stopped";
  const what =
    state === "failed"
      ? (error ?? "")
      : activity && !isDone
        ? activity.type === "call"
          ? describeCall(activity.tool, activity.args)
          : activity.type
        : describeTest(rival);
  const cost = usage.cost?.total;
  return [
    `${number} ${oneLine(model)}`.trim(),
    STATES[state],
    ...(what === "" ? [] : [oneLine(what)]),
    ...(cost === undefined ? [] : [dollars(cost)]),
    elapsed(rival.elapsedMs(now)),
  ].join(" · ");
}

const STATES: Readonly<Record<Rival["state"], string>> = {
  starting: "starting",
  working: "working",
  asking: "asks",
  testing: "testing",
  done: "done",
  limit: "at a limit",
  failed: "failed",
  stopped: "stopped",
};

function describeCall(tool: string, args: Readonly<Record<string, unknown>>): string {
  const { name, about } = callText(tool, args);
  return `${name} ${about}`.trim();
}

function describeTest({ passes, testError }: Pick<Rival, "passes" | "testError">): string {
  if (testError !== undefined) return "not tested";
  return passes === undefined ? "" : passes ? "tests pass" : "tests fail";
}

/** How one ended, in short: `tests pass, 2 files +3 -1, $0.02, 12 s`. */
export function describeEnd({ work, run }: EndedRival): string {
  const { added, removed } = countLines(work.files);
  const cost = (run?.usage ?? work.usage).cost?.total;
  const test = run ? describeTest(run) : "";
  return [
    ...(run && run.state !== "done" ? [STATES[run.state]] : []),
    ...(test === "" ? [] : [test]),
    work.files.length === 0
      ? "no files"
      : `${counted(work.files.length, "file")} +${added} -${removed}`,
    ...(cost === undefined ? [] : [dollars(cost)]),
    ...(run ? [elapsed(run.elapsedMs(0))] : []),
  ].join(", ");
}

/** All rivals beside each other. */
export function compareRivals(rivals: readonly EndedRival[]): CommandPart {
  const isTested = rivals.some(({ run }) => run && describeTest(run) !== "");
  return {
    type: "table",
    columns: ["rival", "end", ...(isTested ? ["tests"] : []), "files", "cost", "time", "answer"],
    rows: rivals.map((rival) => {
      const { work, run } = rival;
      const { added, removed } = countLines(work.files);
      const cost = (run?.usage ?? work.usage).cost?.total;
      const lines = work.files.length === 0 ? "" : ` +${added} -${removed}`;
      const test = run ? describeTest(run).replace(/^tests /, "") : "";
      return [
        nameRival(rival),
        run ? STATES[run.state] : "cut off",
        ...(isTested ? [test] : []),
        `${work.files.length}${lines}`,
        cost === undefined ? "not known" : dollars(cost),
        run ? elapsed(run.elapsedMs(0)) : "",
        shortAnswer(run?.error ?? work.answer),
      ];
    }),
  };
}

function shortAnswer(answer: string): string {
  const line = oneLine(shownText(answer).trim().split("\n", 1)[0] ?? "");
  return line.length <= MAX_ANSWER_CHARS ? line : `${line.slice(0, MAX_ANSWER_CHARS - 1)}…`;
}

function countLines(files: readonly RivalFile[]): { added: number; removed: number } {
  const sum = { added: 0, removed: 0 };
  for (const { before, after } of files) {
    if (before === undefined || after === undefined) continue;
    for (const { type } of diffTexts(before ?? "", after ?? "")) {
      if (type === "added" || type === "removed") sum[type]++;
    }
  }
  return sum;
}

/** What one has done, in full: its changes as a diff, what was not kept, and its answer. */
export function describeWork({ work, run }: EndedRival): CommandPart[] {
  const { answer, files, leftOut } = work;
  const lines = files.flatMap(diffLines);
  const more = lines.length - MAX_DIFF_LINES;
  const shown = [
    ...lines.slice(0, MAX_DIFF_LINES),
    ...(more > 0 ? [`and ${counted(more, "line")} more`] : []),
  ];
  return [
    files.length === 0
      ? { type: "text", markdown: "It changed no files." }
      : { type: "code", text: shownText(shown.join("\n")) },
    ...leftOut.map(({ path, why }): CommandPart => ({
      type: "warning",
      text: `${oneLine(path)} was not kept: ${oneLine(why)}.`,
    })),
    ...(run?.testError === undefined
      ? []
      : [{ type: "warning" as const, text: `It was not tested: ${oneLine(run.testError)}` }]),
    { type: "text", markdown: answer === "" ? "It gave no answer." : shownText(answer) },
  ];
}

function diffLines({ path, before, after }: RivalFile): string[] {
  const what = before === null ? ", new" : after === null ? ", removed" : "";
  const head = `${oneLine(path)}${what}`;
  if (before === undefined || after === undefined) return [head, "  (no text)"];
  return [head, ...diffTexts(before ?? "", after ?? "").map(diffLine)];
}

function diffLine(line: DiffLine): string {
  switch (line.type) {
    case "added":
      return `+ ${line.text}`;
    case "removed":
      return `- ${line.text}`;
    case "same":
      return `  ${line.text}`;
    case "note":
      return `  ${line.text}`;
    case "gap":
      return "  ⋯";
  }
}
