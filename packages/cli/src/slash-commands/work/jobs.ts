import { describeEnd } from "@gyre/coding/internal/conversation/job-notice";
import {
  type CommandContext,
  type CommandPart,
  type CommandResult,
  text,
} from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import type { JobInfo, JobTable } from "@gyre/tools";
import { counted } from "../../text/tool-text.ts";

type JobsContext = Pick<CommandContext, "choose" | "show"> & { harness: Pick<Harness, "toolset"> };

/** Lines of the output of a job. */
const MAX_LINES = 40;
const STOP = "stop";

/** `/jobs`: the background jobs, what one has written, and a way to stop it. */
export async function showJobs(
  rest: string,
  context: JobsContext,
): Promise<CommandResult | string | undefined> {
  const { jobs } = context.harness.toolset;
  const all = jobs.list();
  if (all.length === 0) {
    return "There are no background jobs. `Ctrl+B` moves a running command there.";
  }
  const [first = "", second] = rest.split(/\s+/);
  if (first === STOP) return stopJob(jobs, findJob(all, second));
  if (first !== "") return { show: describeOutput(jobs, findJob(all, first)) };
  const id = await chooseJob(all, context);
  if (id === undefined) return undefined;
  const job = findJob(jobs.list(), id);
  context.show(...describeOutput(jobs, job));
  if (job.end) return undefined;
  const choice = await context.choose({
    title: `${job.id} still runs.`,
    choices: [
      { value: "leave", label: "Leave it running" },
      { value: STOP, label: "Stop it, with all that it started" },
    ],
  });
  return choice === STOP ? stopJob(jobs, job) : undefined;
}

function chooseJob(all: readonly JobInfo[], context: JobsContext): Promise<string | undefined> {
  return context.choose({
    title: "Background jobs. Enter shows what one has written.",
    choices: all.toReversed().map((job) => ({
      value: job.id,
      label: `${job.end ? " " : "●"} ${oneLine(job.command)}`,
      detail: `${job.id}, ${describeEnd(job)}`,
    })),
  });
}

async function stopJob(jobs: JobTable, { id, end }: JobInfo): Promise<string> {
  if (end) return `${id} has ended already.`;
  return `${id} is stopped: ${describeEnd(await jobs.stop(id))}.`;
}

/** A job by its id, or by the number at its end. */
function findJob(all: readonly JobInfo[], id = ""): JobInfo {
  const job = all.find((each) => each.id === id || each.id.endsWith(`-${id}`));
  if (job) return job;
  throw new Error(`There is no job "${id}". There are ${all.map((each) => each.id).join(", ")}.`);
}

function describeOutput(jobs: JobTable, job: JobInfo): CommandPart[] {
  const { stdout, stderr } = jobs.peek(job.id);
  const screen = jobs.screen(job.id)?.rows ?? [];
  const left = [stdout, stderr].map(({ head, tail }) => (tail === "" ? head : tail)).join("");
  const written = [...(left === "" ? [] : [left]), ...screen].join("\n").trimEnd();
  const lines = shownText(written).split("\n");
  const total = stdout.lines + stderr.lines + screen.length;
  const hidden = total - Math.min(lines.length, MAX_LINES);
  return [
    text(`\`${oneLine(job.command)}\`: ${job.id}, ${describeEnd(job)}.`),
    ...(hidden > 0 ? [text(`${counted(hidden, "line")} before:`)] : []),
    written === ""
      ? text("It has written nothing.")
      : { type: "code", text: lines.slice(-MAX_LINES).join("\n") },
  ];
}
