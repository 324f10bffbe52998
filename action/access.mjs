import { ApiError } from "./api.mjs";
import { pickText } from "./json.mjs";

/**
 * @typedef {import("./api.mjs").Api} Api
 * @typedef {{ head: string, base: string, title: string, author: string }} Pull branches of the repository itself
 */

const NOT_FOUND = 404;

/**
 * Why one of the people must not have gyre work for them; undefined where all may.
 *
 * @param {Api} api
 * @param {string} repository
 * @param {readonly string[]} people
 * @returns {Promise<string | undefined>}
 */
export async function findStranger(api, repository, people) {
  for (const login of people) {
    if (!(await canWrite(api, repository, login))) {
      return `@${login} has no write access to ${repository}.`;
    }
  }
  return undefined;
}

/**
 * @param {Api} api
 * @param {string} repository
 * @param {string} login
 */
async function canWrite(api, repository, login) {
  const path = `/repos/${repository}/collaborators/${encodeURIComponent(login)}/permission`;
  try {
    const permission = pickText(await api.json(path), "permission");
    return permission === "admin" || permission === "write";
  } catch (error) {
    if (error instanceof ApiError && error.status === NOT_FOUND) return false;
    throw error;
  }
}

/**
 * The branches of a pull request. Undefined where its code is that of a fork, or of a repository that is gone.
 *
 * @param {Api} api
 * @param {string} repository
 * @param {number} number
 * @returns {Promise<Pull | undefined>}
 */
export async function findPull(api, repository, number) {
  const pull = await api.json(`/repos/${repository}/pulls/${number}`);
  const from = pickText(pull, "head", "repo", "full_name");
  const head = pickText(pull, "head", "ref");
  const base = pickText(pull, "base", "ref");
  if (from !== repository || head === undefined || base === undefined) return undefined;
  return {
    head,
    base,
    title: pickText(pull, "title") ?? "",
    author: pickText(pull, "user", "login") ?? "",
  };
}
