import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPull, findStranger } from "./access.mjs";
import { findProgram, runAgent } from "./agent.mjs";
import { ApiError, createApi } from "./api.mjs";
import { readInputs } from "./inputs.mjs";
import { errorText, pickText } from "./json.mjs";
import { Reply } from "./reply.mjs";
import { createReport } from "./report.mjs";
import { Repository } from "./repository.mjs";
import { findRequest } from "./request.mjs";
import { createMask, formatEnd, formatProgress } from "./texts.mjs";
import { readDiff, readThread } from "./thread.mjs";

/**
 * @typedef {import("./access.mjs").Pull} Pull
 * @typedef {import("./api.mjs").Api} Api
 * @typedef {import("./inputs.mjs").Environment} Environment
 * @typedef {import("./inputs.mjs").Inputs} Inputs
 * @typedef {import("./request.mjs").Request} Request
 * @typedef {import("./texts.mjs").Outcome} Outcome
 * @typedef {import("./texts.mjs").Published} Published
 * @typedef {ReturnType<typeof createReport>} Report
 * @typedef {{
 *   api: Api, env: Environment, inputs: Inputs, place: Place, report: Report, signal: AbortSignal,
 * }} Job
 * @typedef {{ repository: string, server: string, workspace: string, run: string, runId: string, attempt: string }} Place
 */

const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;
const UNPROCESSABLE = 422;
const FORBIDDEN = 403;
const MAX_TITLE_CHARS = 200;

/**
 * The whole action.
 *
 * @param {Environment} env
 * @param {AbortSignal} signal
 * @returns {Promise<number>} the exit code
 */
export async function runAction(env, signal) {
  const inputs = readInputs(env);
  const mask = createMask([inputs.token, ...Object.values(inputs.keys)]);
  const report = createReport(env, mask);
  try {
    const place = readPlace(env);
    const event = JSON.parse(readFileSync(env["GITHUB_EVENT_PATH"] ?? "", "utf8"));
    const request = findRequest(env["GITHUB_EVENT_NAME"] ?? "", event, inputs, place.runId);
    if ("skip" in request) return skip(report, request.skip);
    const { log } = report;
    const url = env["GITHUB_API_URL"] ?? "https://api.github.com";
    const api = maskBodies(createApi({ url, token: inputs.token, log }), mask);
    const stranger = await findStranger(api, place.repository, request.people);
    if (stranger !== undefined) return skip(report, stranger);
    return await answer(request, { api, env, inputs, place, report, signal });
  } catch (error) {
    report.announce("error", errorText(error));
    report.output({ conclusion: "failure" });
    return 1;
  }
}

/**
 * @param {Report} report
 * @param {string} why
 */
function skip(report, why) {
  report.announce("notice", why);
  report.output({ conclusion: "skipped" });
  return 0;
}

/**
 * @param {Environment} env
 * @returns {Place}
 */
function readPlace(env) {
  const repository = env["GITHUB_REPOSITORY"] ?? "";
  if (!REPOSITORY.test(repository)) throw new Error("GITHUB_REPOSITORY names no repository.");
  const server = env["GITHUB_SERVER_URL"] ?? "https://github.com";
  const runId = env["GITHUB_RUN_ID"] ?? "0";
  return {
    repository,
    server,
    workspace: env["GITHUB_WORKSPACE"] ?? process.cwd(),
    run: `${server}/${repository}/actions/runs/${runId}`,
    runId,
    attempt: env["GITHUB_RUN_ATTEMPT"] ?? "1",
  };
}

/**
 * No key is sent, whatever a model puts into its answer.
 *
 * @param {Api} api
 * @param {(text: string) => string} mask
 * @returns {Api}
 */
function maskBodies(api, mask) {
  return {
    ...api,
    json: (path, call = {}) =>
      api.json(path, {
        ...call,
        ...(call.body !== undefined && { body: JSON.parse(mask(JSON.stringify(call.body))) }),
      }),
  };
}

/**
 * @param {Request} request from people who may ask
 * @param {Job} job
 * @returns {Promise<number>}
 */
async function answer(request, job) {
  const { api, env, inputs, place, report } = job;
  const { log } = report;
  const reply =
    inputs.comment && request.thread ? new Reply(api, place.repository, request, log) : undefined;
  const top = env["RUNNER_TEMP"] ?? tmpdir();
  mkdirSync(top, { recursive: true });
  const folder = mkdtempSync(join(top, "gyre-"));
  try {
    await react(request, job);
    reply?.update(formatProgress([], place.run));
    const { outcome, published } = await work(request, job, folder, reply);
    const text = formatEnd(outcome, published, place.run);
    await reply?.end(text);
    report.summarize(text);
    report.output({
      conclusion: outcome.error === undefined ? "success" : "failure",
      text: outcome.text,
      branch: published?.branch ?? "",
      commit: published?.commit ?? "",
      "pull-request": published?.pull ?? "",
      comment: reply?.url ?? "",
      turns: String(outcome.turns),
      cost: outcome.cost === undefined ? "" : String(outcome.cost),
      "session-file": outcome.sessionFile,
    });
    if (outcome.error === undefined) return 0;
    report.announce("error", outcome.error);
    return 1;
  } catch (error) {
    const message = `gyre did not get to the end: ${errorText(error)}\n\n[Run](${place.run})`;
    report.summarize(message);
    try {
      await reply?.end(message);
    } catch (failure) {
      log(`The comment could not be written. ${errorText(failure)}`);
    }
    throw error;
  } finally {
    // The session file stays, for a step that keeps it.
    for (const name of ["repository.git", "program", "thread.md", "diff.patch"]) {
      rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
}

/**
 * Shows at once that the request was seen.
 *
 * @param {Request} request
 * @param {Job} job
 */
async function react({ comment }, { api, place, report }) {
  if (comment === undefined) return;
  const kind = comment.kind === "review" ? "pulls" : "issues";
  const path = `/repos/${place.repository}/${kind}/comments/${comment.id}/reactions`;
  try {
    await api.json(path, { method: "POST", body: { content: "eyes" } });
  } catch (error) {
    report.log(`There is no reaction. ${errorText(error)}`);
  }
}

/**
 * @param {Request} request
 * @param {Job} job
 * @param {string} folder
 * @param {Reply | undefined} reply
 * @returns {Promise<{ outcome: Outcome, published: Published | undefined }>}
 */
async function work(request, job, folder, reply) {
  const { api, env, inputs, place, signal } = job;
  const { thread } = request;
  const { workspace } = place;
  const pull = thread?.isPull ? await findPull(api, place.repository, thread.number) : undefined;
  if (thread?.isPull && pull === undefined) {
    throw new Error(
      "The code of this pull request is in a fork. gyre has keys here, and runs for branches of the repository itself alone.",
    );
  }
  const address = `${place.server}/${place.repository}.git`;
  const repository = new Repository({ workspace, folder, env, address, token: inputs.token });
  await repository.checkCredentials();
  if (pull) await repository.checkOut(pull.head);
  const before = await repository.open();
  /** @type {Record<string, string>} */
  const context = {};
  if (thread) {
    context["thread.md"] = await readThread(api, place.repository, thread, request.at);
  }
  if (thread && pull) context["diff.patch"] = await readDiff(api, place.repository, thread.number);
  const program = await findProgram(inputs, env, folder);
  /** @type {string[]} */
  const steps = [];
  const outcome = await runAgent({
    program,
    inputs,
    env,
    workspace,
    folder,
    context,
    text: request.text,
    signal,
    onStep: (step) => {
      steps.push(step);
      reply?.update(formatProgress(steps, place.run));
    },
  });
  const published =
    inputs.publish === "none" || outcome.error !== undefined
      ? undefined
      : await publish(request, job, { repository, before, pull, outcome });
  return { outcome, published };
}

/**
 * Pushes what has changed: to the branch of the pull request, or to a new one.
 *
 * @param {Request} request
 * @param {Job} job
 * @param {{
 *   repository: Repository, before: import("./repository.mjs").Snapshot, pull: Pull | undefined, outcome: Outcome,
 * }} done
 * @returns {Promise<Published | undefined>}
 */
async function publish(request, job, { repository, before, pull, outcome }) {
  const { place } = job;
  const { thread } = request;
  const message = formatMessage(request, place);
  const { commit, leftOut } = await repository.commit(before, message);
  const nothing = { commit: "", branch: "", pull: "", compare: "", leftOut, note: "" };
  if (commit === undefined) return leftOut.length === 0 ? undefined : { ...nothing };
  const kind =
    thread === undefined ? "run" : `${thread.isPull ? "pull" : "issue"}-${thread.number}`;
  const own = `gyre/${kind}-${place.runId}-${place.attempt}`;
  if (pull) {
    const refused = await repository.push(commit, pull.head);
    if (refused === undefined) return { ...nothing, commit, branch: pull.head };
    job.report.log(`The branch ${pull.head} did not take the commit. ${refused}`);
  }
  const refused = await repository.push(commit, own);
  if (refused !== undefined) throw new Error(`The changes could not be pushed: ${refused}`);
  const note = pull
    ? `The branch of the pull request has changed in the meantime, so this is on a branch of its own.`
    : "";
  const pushed = { ...nothing, commit, branch: own, note };
  const base = pull?.head ?? (await findDefaultBranch(job));
  const compare = `${place.server}/${place.repository}/compare/${encodeURIComponent(base)}...${encodeURIComponent(own)}`;
  if (job.inputs.publish === "branch") return { ...pushed, compare };
  return { ...pushed, ...(await openPull(request, job, { base, head: own, outcome, compare })) };
}

/**
 * @param {Request} request
 * @param {Place} place
 */
function formatMessage({ sender, thread }, { run }) {
  const title = thread === undefined ? "Changes by gyre" : `Changes by gyre for #${thread.number}`;
  const by = sender
    ? [`Co-authored-by: ${sender.login} <${sender.id}+${sender.login}@users.noreply.github.com>`]
    : [];
  return [title, run, ...by].join("\n\n");
}

/** @param {Job} job */
async function findDefaultBranch({ api, place }) {
  const found = pickText(await api.json(`/repos/${place.repository}`), "default_branch");
  if (found === undefined) throw new Error("The repository has no default branch.");
  return found;
}

/**
 * @param {Request} request
 * @param {Job} job
 * @param {{ base: string, head: string, outcome: Outcome, compare: string }} branches
 * @returns {Promise<Partial<Published>>}
 */
async function openPull({ thread }, { api, place, report }, { base, head, outcome, compare }) {
  const title = await findTitle(api, place, thread);
  const closes = thread && !thread.isPull ? `Closes #${thread.number}` : "";
  const body = [formatEnd(outcome, undefined, place.run), closes].filter(Boolean).join("\n\n");
  try {
    const path = `/repos/${place.repository}/pulls`;
    const made = await api.json(path, { method: "POST", body: { title, head, base, body } });
    return { pull: pickText(made, "html_url") ?? "" };
  } catch (error) {
    const isRefused =
      error instanceof ApiError && [FORBIDDEN, UNPROCESSABLE].includes(error.status);
    if (!isRefused) throw error;
    // Settings of the repository may forbid it to workflows: the branch is there.
    report.announce("warning", `The pull request could not be opened. ${errorText(error)}`);
    return { compare };
  }
}

/**
 * @param {Api} api
 * @param {Place} place
 * @param {Request["thread"]} thread
 */
async function findTitle(api, { repository }, thread) {
  if (thread === undefined) return "Changes by gyre";
  const issue = await api.json(`/repos/${repository}/issues/${thread.number}`);
  const title = (pickText(issue, "title") ?? "").replaceAll(/\s+/g, " ").slice(0, MAX_TITLE_CHARS);
  return title || `Changes by gyre for #${thread.number}`;
}
