import type { ActivationInfo, RunInfo, Runs } from "@gyre/durable";
import { totalTokens } from "@gyre/ai";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import { EXIT, type ExitCode } from "../../core/exit-codes.ts";
import { timeText } from "../../text/session-text.ts";
import { costText, formatCount } from "../../text/usage-text.ts";
import { writeChecks } from "../doctor/write-checks.ts";
import type { Job } from "./runs.ts";
import { shown, statusText, waitingText } from "./run-text.ts";

const INDENT = 2;

export async function show({ runs, io, values }: Job, id: string): Promise<ExitCode> {
  const run = runs.get(id);
  const info = await run.info();
  const activations = await run.activations();
  const text = values.json
    ? JSON.stringify({ ...info, activations, activationCount: info.activations }, undefined, INDENT)
    : infoText(info, activations, await findChildren(runs, info));
  io.stdout.write(`${text}\n`);
  return EXIT.done;
}

/** The runs that work for calls which wait, by the ids of these. */
async function findChildren(runs: Runs, { id, pending }: RunInfo): Promise<Map<string, string>> {
  if (pending.every(({ waitsFor }) => waitsFor !== "child")) return new Map();
  const { runs: children } = await runs.list({ parent: id });
  const infos = await Promise.all(children.map((child) => runs.get(child.id).info()));
  return new Map(infos.flatMap(({ id: child, parent }) => (parent ? [[parent.call, child]] : [])));
}

function infoText(
  info: RunInfo,
  activations: readonly ActivationInfo[],
  children: ReadonlyMap<string, string>,
): string {
  const { id, agent, version, session, tenant, pool, parent, worker, usage, turns, error } = info;
  const ofVersion = version === "" ? "" : `, version ${shown(version)}`;
  const meta = Object.entries(info.meta).map(([key, value]) => `${shown(key)}=${shown(value)}`);
  const lines = [
    `Run ${shown(id)}: ${statusText(info)}`,
    `Agent: ${shown(agent)}${ofVersion}`,
    ...(session === id ? [] : [`Session: ${shown(session)}`]),
    ...(tenant === "" ? [] : [`Tenant: ${shown(tenant)}`]),
    ...(pool === "" ? [] : [`Pool: ${shown(pool)}`]),
    ...(parent ? [`Works for: ${shown(parent.run)}, call ${shown(parent.call)}`] : []),
    ...(meta.length === 0 ? [] : [`Meta: ${meta.join(", ")}`]),
    `Started: ${timeText(info.startedAt.getTime())}`,
    ...(info.endedAt ? [`Ended: ${timeText(info.endedAt.getTime())}`] : []),
    `Turns: ${turns}, ${formatCount(totalTokens(usage))} tokens, for ${costText(usage)}`,
    `Activations: ${info.activations}`,
    ...activations.map(
      (one, at) => `  ${activationText(one, info, at === activations.length - 1)}`,
    ),
    ...(worker === undefined ? [] : [`Worker: ${shown(worker)}`]),
    ...(info.deaths === 0 ? [] : [`Workers that died with it: ${info.deaths}`]),
    ...(error === undefined ? [] : [`Error: ${plainText(error)}`]),
    ...info.pending.flatMap((call) => waitingText(id, call, children.get(call.toolCall.id))),
    ...(info.stuck === undefined ? [] : [`Stuck: ${shown(info.stuck)}`]),
  ];
  return lines.join("\n");
}

function activationText(
  { activation, from, entries, stop }: ActivationInfo,
  { status }: RunInfo,
  isLast: boolean,
): string {
  const isLive = isLast && status === "running";
  const end = stop ?? (isLive ? "goes on" : "its worker ended before it");
  const count = `${entries} ${entries === 1 ? "entry" : "entries"}`;
  return `${activation}: ${timeText(from.getTime())}, ${count}, ${end}`;
}

/** `gyre runs doctor`: ends with 1 if something does not work. */
export async function checkRuns({ runs, io, values }: Job): Promise<ExitCode> {
  const checks = await runs.check();
  const isWell = checks.every(({ status }) => status !== "problem");
  if (values.json)
    io.stdout.write(`${JSON.stringify({ ok: isWell, checks }, undefined, INDENT)}\n`);
  else writeChecks(checks, io);
  return isWell ? EXIT.done : EXIT.failed;
}
