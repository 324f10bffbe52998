import type { RunFilter, RunStatus, RunSummary } from "@gyre/durable";
import { EXIT, type ExitCode, UsageError } from "../../core/exit-codes.ts";
import { OPTIONS } from "../../core/options.ts";
import { alignColumns } from "../../text/columns.ts";
import { agoText } from "../../text/session-text.ts";
import { costText } from "../../text/usage-text.ts";
import { readTime } from "./duration.ts";
import type { Job } from "./runs.ts";
import { shown, statusText } from "./run-text.ts";

const PAGE = 100;
const INDENT = 2;
const FILTERS: ReadonlySet<string> = new Set(["status", "tenant", "agent", "stuck", "since"]);

export async function list(job: Job): Promise<ExitCode> {
  const { io, values } = job;
  const { found, hasMore } = await findRuns(job);
  if (values.json) io.stdout.write(`${JSON.stringify(found, undefined, INDENT)}\n`);
  else writeRuns(found, job);
  if (hasMore) io.stderr.write(`These are the newest ${PAGE}. All of them: --all.\n`);
  return EXIT.done;
}

async function findRuns({ runs, values }: Job): Promise<{ found: RunSummary[]; hasMore: boolean }> {
  const filter = readFilter(values);
  const found: RunSummary[] = [];
  let after: string | undefined;
  do {
    const page = await runs.list({ ...filter, limit: PAGE, ...(after && { after }) });
    found.push(...page.runs);
    after = page.next;
  } while (after !== undefined && (values.all || found.length < PAGE));
  return { found, hasMore: after !== undefined };
}

function readFilter({ status, tenant, agent, stuck, since }: Job["values"]): RunFilter {
  return {
    ...(status !== undefined && { status: readStatus(status) }),
    ...(stuck && status === undefined && { status: ["ready", "aside"] }),
    ...(tenant !== undefined && { tenant }),
    ...(agent !== undefined && { agent }),
    ...(stuck && { stuck }),
    ...(since !== undefined && { since: readTime("since", since, Date.now()) }),
  };
}

function readStatus(text: string): RunStatus[] {
  const known: readonly RunStatus[] = OPTIONS.status.complete;
  return text.split(",").map((word) => {
    const status = known.find((each) => each === word.trim());
    if (status) return status;
    throw new UsageError(`--status takes ${known.join(", ")}, with commas; not "${word}".`);
  });
}

function writeRuns(found: readonly RunSummary[], { io, values }: Job): void {
  if (found.length === 0) {
    const what = Object.keys(values).some((name) => FILTERS.has(name)) ? "such runs" : "runs";
    io.stderr.write(`There are no ${what}.\n`);
    return;
  }
  const now = Date.now();
  const hasTenants = found.some(({ tenant }) => tenant !== "");
  const rows = found.map((run) => [
    shown(run.id),
    statusText(run),
    shown(run.agent),
    ...(hasTenants ? [shown(run.tenant)] : []),
    `${run.turns} ${run.turns === 1 ? "turn" : "turns"}`,
    run.usage.cost ? costText(run.usage) : "-",
    agoText(run.startedAt.getTime(), now),
  ]);
  for (const [at, line] of alignColumns(rows).entries()) {
    const stuck = found[at]?.stuck;
    io.stdout.write(`${line}\n${stuck === undefined ? "" : `  ${shown(stuck)}\n`}`);
  }
}

export async function listWorkers({ runs, io, values }: Job): Promise<ExitCode> {
  const workers = await runs.workers();
  if (values.json) {
    io.stdout.write(`${JSON.stringify(workers, undefined, INDENT)}\n`);
    return EXIT.done;
  }
  if (workers.length === 0) io.stderr.write("There are no workers.\n");
  const rows = workers.map(({ id, host, pid, agents, pools, live, startedAt, leaseMs }) => [
    shown(id),
    `${shown(host)} ${pid}`,
    agents.map(({ name, version }) => shown(`${name}@${version}`)).join(","),
    pools.map((pool) => shown(pool) || '""').join(","),
    `${live} ${live === 1 ? "run" : "runs"}`,
    leaseMs < 0 ? "no sign of life" : `since ${agoText(startedAt.getTime(), Date.now())}`,
  ]);
  for (const row of alignColumns(rows)) io.stdout.write(`${row}\n`);
  return EXIT.done;
}
