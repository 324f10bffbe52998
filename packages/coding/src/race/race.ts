import { join } from "node:path";
import type { Limits } from "@gyre/agent";
import { openSession, type Session } from "@gyre/sessions";
import { type ApprovalAnswer, type ApprovalRequest, rulesFor } from "@gyre/tools";
import { makeWorkCopies, type WorkCopy } from "../copies/work-copy.ts";
import type { Environment } from "../core/environment.ts";
import { sessionHistoryFolder } from "../file-history/lines/folders.ts";
import { HistoryStore } from "../file-history/lines/store.ts";
import { promptText, readPrompts } from "../file-history/prompts.ts";
import type { TreePlace } from "../file-history/rewind/file-tree.ts";
import { putState } from "../file-history/rewind/put-state.ts";
import type { Harness } from "../harness/types.ts";
import {
  createRaceFolder,
  removeRace,
  type RivalRecord,
  type StoredRace,
  writeRace,
} from "./race-folder.ts";
import { Rival, type RivalPlace } from "./rival.ts";

/** So many agents at once. */
export const MAX_RIVALS = 8;

/** The agent of the conversation that rivals go on with. */
export type RacedHarness = Pick<Harness, "fileHistory" | "giveRule" | "session" | "start">;

export interface RaceOptions {
  harness: RacedHarness;
  /** The folder that is worked in, absolute. */
  cwd: string;
  env: Environment;
  /** For each rival the name of a model; undefined: that of the conversation. */
  models: readonly (string | undefined)[];
  /** Absent: the last prompt of the conversation, which is asked again from before it. */
  prompt?: string;
  /** The copies have what git ignores, too. Default: false. */
  withIgnored?: boolean;
}

export interface RunOptions {
  open: (place: RivalPlace) => Promise<Harness>;
  /** Asks the person. Undefined: the question was left, which stops the race. */
  ask: (request: ApprovalRequest, rival: Rival) => Promise<ApprovalAnswer | undefined>;
  test?: string;
  /** US dollars for all rivals together. */
  maxCost?: number;
  now: () => number;
  onChange: () => void;
  signal: AbortSignal;
}

/** Rivals in copies of a folder: made, and ready to run. */
export class Race {
  readonly stored: StoredRace;
  readonly rivals: readonly Rival[];
  /** What git ignores, and the copies do not have. */
  readonly missing: readonly string[];
  readonly #harness: RacedHarness;
  /** Rules that the person gave since it began. */
  readonly #given = new Set<string>();
  #questions: Promise<unknown> = Promise.resolve();

  constructor(
    stored: StoredRace,
    rivals: readonly Rival[],
    missing: readonly string[],
    harness: RacedHarness,
  ) {
    this.stored = stored;
    this.rivals = rivals;
    this.missing = missing;
    this.#harness = harness;
  }

  /** Runs all rivals to their ends. Never rejects: each has a state. The signal stops all of them. */
  async run({ ask, maxCost, signal, test, ...options }: RunOptions): Promise<void> {
    const stop = new AbortController();
    const limits: Limits =
      maxCost === undefined ? {} : { maxCostUsd: maxCost / this.rivals.length };
    const work = {
      ...options,
      prompt: this.stored.record.prompt,
      test,
      limits,
      signal: AbortSignal.any([signal, stop.signal]),
      ask: (request: ApprovalRequest, rival: Rival) =>
        this.#inTurn(async () => {
          if (await this.#isAllowed(request)) {
            return { allow: true, fingerprint: request.fingerprint } as const;
          }
          if (work.signal.aborted) return INTERRUPTED;
          const answer = (await ask(request, rival)) ?? INTERRUPTED;
          const isLeft = answer.allow === false && answer.reason === INTERRUPTED.reason;
          // A question that is withdrawn is not left by the person.
          if (isLeft && request.signal?.aborted !== true) stop.abort();
          if (answer.allow === "always")
            await this.#give([answer.rule, ...(answer.moreRules ?? [])]);
          return answer;
        }),
    };
    await Promise.all(this.rivals.map((rival) => rival.run(work)));
  }

  /** One question at a time. */
  #inTurn(work: () => Promise<ApprovalAnswer>): Promise<ApprovalAnswer> {
    const asked = this.#questions.then(work);
    this.#questions = asked.catch(() => undefined);
    return asked;
  }

  /** Whether the person has allowed it for another rival while it waited. */
  async #isAllowed(request: ApprovalRequest): Promise<boolean> {
    const { access, effects, tool } = request;
    if (this.#given.size === 0 || effects) return false;
    const isEdit = access?.kind === "write" && !access.destructive;
    if (isEdit && this.#given.has(tool)) return true;
    const rules = (await rulesFor(request)) ?? [];
    return rules.length > 0 && rules.every((rule) => this.#given.has(rule));
  }

  async #give(rules: readonly string[]): Promise<void> {
    for (const rule of rules) {
      this.#given.add(rule);
      await this.#harness.giveRule?.(rule);
      for (const rival of this.rivals) await rival.giveRule(rule);
    }
  }
}

const INTERRUPTED = { allow: false, reason: "interrupted" } as const;

/** Where the rivals go on, and with what. */
interface Start {
  prompt: string;
  at: number | null;
  base?: TreePlace;
}

/** Makes the copies and sessions of a race. Where that fails nothing is left, and an error for people is thrown. */
export async function prepareRace(options: RaceOptions): Promise<Race> {
  const { harness, cwd, env, models, withIgnored = false } = options;
  if (models.length > MAX_RIVALS) throw new Error(`A race has at most ${MAX_RIVALS} rivals.`);
  await harness.start();
  const { session } = harness;
  if (session?.path === undefined) {
    throw new Error("A race needs a session that is written to a file, for its branches.");
  }
  const start = await findStart(options, session);
  const folder = await createRaceFolder(env);
  const folders = models.map((_model, index) => join(folder, String(index + 1)));
  const { copies, missing } = await makeWorkCopies(cwd, folders, { env, withIgnored });
  const records: RivalRecord[] = [];
  const sessions: Session[] = [];
  const stored = { startedAt: Date.now(), session: session.header.id, cwd, ...start };
  try {
    if (start.base) await putFiles(harness, session, start.base, copies, env);
    const source = await openSession(session.path, { readOnly: true });
    try {
      for (const [index, copy] of copies.entries()) {
        const path = join(folder, `${index + 1}.jsonl`);
        const own = await source.fork(path, { id: start.at, cwd: copy.cwd });
        sessions.push(own);
        const model = models[index];
        const { id } = own.header;
        const number = index + 1;
        const from = own.leaf;
        records.push({ number, copy, path, id, from, ...(model !== undefined && { model }) });
      }
    } finally {
      await source.close();
    }
    const written = await writeRace(folder, { ...stored, rivals: records });
    const rivals = records.flatMap((record, index) => {
      const own = sessions[index];
      return own ? [new Rival(record, own)] : [];
    });
    return new Race(written, rivals, missing, harness);
  } catch (error) {
    for (const own of sessions) await own.close();
    const rivals = copies.map((copy, index) => ({
      ...{ number: index + 1, copy, from: null, path: join(folder, `${index + 1}.jsonl`) },
      id: records[index]?.id ?? "none",
    }));
    const record = { version: 1 as const, pid: process.pid, ...stored, rivals };
    await removeRace({ folder, record }, env);
    throw error;
  }
}

async function findStart({ prompt }: RaceOptions, session: Session): Promise<Start> {
  if (prompt !== undefined) return { prompt, at: session.leaf };
  for await (const last of readPrompts(session)) {
    return { prompt: promptText(last), at: last.parent, base: { before: last.entry } };
  }
  throw new Error("There is no prompt yet to race again: /race 3 fix the flaky test");
}

/** Has copies of the folder have the files of a place, but for those that hold changes from outside. */
async function putFiles(
  { fileHistory }: RacedHarness,
  session: Session,
  base: TreePlace,
  copies: readonly WorkCopy[],
  env: Environment,
): Promise<void> {
  const plan = await fileHistory?.plan(base);
  const steps = (plan?.steps ?? []).filter(({ conflict }) => !conflict);
  if (steps.length === 0) return;
  const store = await HistoryStore.open(sessionHistoryFolder(env, session.header.id));
  for (const { cwd } of copies) {
    for (const { path, target } of steps) await putState(store, cwd, path, target);
  }
}
