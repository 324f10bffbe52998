import type { Decision } from "@gyre/agent";
import type { Run, WaitingCall } from "@gyre/durable";
import { EXIT, type ExitCode, ExitError } from "../../core/exit-codes.ts";
import type { Job } from "./runs.ts";
import { shown } from "./run-text.ts";

export async function approve(job: Job, id: string, call: string): Promise<ExitCode> {
  return decide(job, id, call, ({ fingerprint }) => ({
    type: "approve",
    ...(fingerprint !== undefined && { fingerprint }),
  }));
}

export async function deny(job: Job, id: string, call: string): Promise<ExitCode> {
  const { reason } = job.values;
  return decide(job, id, call, () => ({ type: "deny", ...(reason !== undefined && { reason }) }));
}

/** What the tool is to have returned: for a tool that asks a person. */
export async function answer(job: Job, id: string, call: string, text: string): Promise<ExitCode> {
  return decide(job, id, call, () => ({
    type: "result",
    result: { content: [{ type: "text", text }] },
  }));
}

async function decide(
  job: Job,
  id: string,
  callId: string,
  choose: (call: WaitingCall) => Decision,
): Promise<ExitCode> {
  const run = job.runs.get(id);
  const decision = choose(await findWaiting(run, callId));
  await run.decide({ [callId]: decision });
  const done = { approve: "Approved", deny: "Denied", result: "Answered", wait: "Left" };
  return report(job, { run: id, call: callId, decision: decision.type }, `${done[decision.type]}.`);
}

async function findWaiting(run: Run, callId: string): Promise<WaitingCall> {
  const { status, pending } = await run.info();
  const call = pending.find(({ toolCall }) => toolCall.id === callId);
  if (call?.waitsFor === "decision") return call;
  const what = `Call "${callId}" of run "${run.id}"`;
  if (call) {
    const other = call.waitsFor === "child" ? "another run" : "a time";
    throw new ExitError(EXIT.failed, `${what} waits for ${other}, not for a decision.`);
  }
  const waiting = pending.filter(({ waitsFor }) => waitsFor === "decision");
  const names = waiting.map(({ toolCall }) => `${toolCall.id} (${shown(toolCall.name)})`);
  const hint =
    status === "ended"
      ? "The run has ended."
      : names.length > 0
        ? `These wait: ${names.join(", ")}.`
        : "None waits now.";
  throw new ExitError(EXIT.failed, `${what} does not wait for a decision. ${hint}`);
}

export async function steer(job: Job, id: string, text: string): Promise<ExitCode> {
  await job.runs.get(id).steer(text);
  return report(job, { run: id }, "Sent.");
}

export async function abort(job: Job, id: string): Promise<ExitCode> {
  const { reason } = job.values;
  await job.runs.get(id).abort(reason === undefined ? {} : { reason });
  const { stuck } = await job.runs.get(id).info();
  const hint =
    stuck === undefined
      ? `It is asked to end. To see that: gyre runs watch ${shown(id)}`
      : `It ends, and asks no model, when a worker claims it. ${shown(stuck)}`;
  return report(job, { run: id }, hint);
}

export async function retry(job: Job, id: string): Promise<ExitCode> {
  const run = job.runs.get(id);
  const { status } = await run.info();
  if (status !== "ended" && status !== "aside") {
    throw new ExitError(
      EXIT.failed,
      `Run "${id}" is ${status}: only one that has ended, or was set aside, can be retried.`,
    );
  }
  await run.retry();
  return report(job, { run: id }, "It is ready for a worker.");
}

export async function release(job: Job, worker: string): Promise<ExitCode> {
  await job.runs.release(worker);
  return report(job, { worker }, "Released: other workers go on with what it had.");
}

/** Writes what was done. */
export function report({ io, values }: Job, facts: object, text: string): ExitCode {
  io.stdout.write(`${values.json ? JSON.stringify({ ok: true, ...facts }) : text}\n`);
  return EXIT.done;
}
