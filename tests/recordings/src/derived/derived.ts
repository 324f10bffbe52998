import { availableParallelism } from "node:os";
import { createServer } from "node:http";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { Played } from "../responses/ask.ts";
import {
  baseline,
  type Carry,
  check,
  inProcess,
  LOOPBACK_EVERY,
  spread,
  type Subject,
  selectSubjects,
} from "./derive.ts";
import { buildHeaders, loadRecordings } from "../responses/manifest.ts";
import { listen } from "../responses/serve.ts";

/** Changes that a worker is given at a time. */
const PORTION = 250;

interface Job {
  folder: string;
  count: number;
  seed: number;
  only: string;
}

interface Portion {
  subject: number;
  from: number;
  to: number;
}

export interface DerivedResult {
  cases: number;
  problems: string[];
}

/** Plays `count` derived cases of the recordings in `folder`, on all cores. */
export async function playDerived(job: Job): Promise<DerivedResult> {
  const portions = subjectsFor(job).flatMap(({ changes }, subject) =>
    Array.from({ length: Math.ceil(changes.length / PORTION) }, (_, nth) => ({
      subject,
      from: nth * PORTION,
      to: Math.min((nth + 1) * PORTION, changes.length),
    })),
  );
  const result: DerivedResult = { cases: 0, problems: [] };
  const runWorker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: job });
      const feed = (): void => {
        const next = portions.pop();
        if (next) worker.postMessage(next);
        else void worker.terminate().then(() => resolve());
      };
      worker.on("message", ({ cases, problems }: DerivedResult) => {
        result.cases += cases;
        result.problems.push(...problems);
        feed();
      });
      worker.on("error", reject);
      feed();
    });
  await Promise.all(Array.from({ length: availableParallelism() }, runWorker));
  result.problems.sort();
  return result;
}

function subjectsFor({ folder, count, seed, only }: Job): Subject[] {
  const all = loadRecordings(folder);
  const cases = all.cases.filter(({ id }) => id.includes(only));
  const subjects = selectSubjects({ ...all, cases });
  spread(subjects, count, seed);
  return subjects;
}

/** The same pieces through a server on loopback. */
async function overLoopback(): Promise<Carry> {
  let response: { pieces: readonly Uint8Array[]; head: [number, Record<string, string>] };
  const server = createServer((request, out) => {
    request.resume();
    out.writeHead(...response.head);
    for (const piece of response.pieces) out.write(piece);
    out.end();
  });
  const origin = await listen(server);
  return (one, pieces, run) => {
    response = { pieces, head: [one.http_status, buildHeaders(one)] };
    return run(origin);
  };
}

if (!isMainThread) {
  const subjects = subjectsFor(workerData as Job);
  const baselines = new Map<Subject, Played>();
  const loopback = await overLoopback();
  parentPort?.on("message", (portion: Portion) => {
    void work(portion).then((result) => parentPort?.postMessage(result));
  });

  const work = async ({ subject: index, from, to }: Portion): Promise<DerivedResult> => {
    const result: DerivedResult = { cases: 0, problems: [] };
    const subject = subjects[index];
    if (!subject) return result;
    const base = baselines.get(subject) ?? (await baseline(subject));
    baselines.set(subject, base);
    for (const [nth, change] of subject.changes.slice(from, to).entries()) {
      const carry = nth % LOOPBACK_EVERY === 0 ? loopback : inProcess;
      const problem = await check(subject, change, base, carry).catch(
        (error: unknown) => `${subject.one.id} ${JSON.stringify(change)}: threw ${String(error)}`,
      );
      result.cases++;
      if (problem !== undefined) result.problems.push(problem);
    }
    return result;
  };
}
