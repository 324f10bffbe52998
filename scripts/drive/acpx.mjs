// The built program driven by acpx, a client of the Agent Client Protocol that others wrote:
// `npm run test:acpx`, or `node scripts/drive/acpx.mjs PROGRAM` for one that is elsewhere. Needs the
// registry of npm; the service is on loopback.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { driveProgram, homeIn, installForeign, runForeign } from "./foreign.mjs";

const ACPX_VERSION = "0.19.1";
/** acpx runs on this and later ones. */
const OLDEST_NODE = 24;
/** Its code for a prompt that was answered, with something denied on the way. */
const ACPX_DENIED = 5;
/** Of the process that keeps a session between two commands; it is ended before. */
const IDLE_SECONDS = 60;

const root = fileURLToPath(new URL("../..", import.meta.url));
const program = process.argv[2] ?? join(root, "packages/cli/bundle/gyre.js");

/**
 * @typedef {import("./foreign.mjs").Service} Service
 * @typedef {import("./foreign.mjs").Ended} Ended
 * @typedef {{ problems: string[], figures?: string[] }} Found
 */

/**
 * @param {string} folder
 * @returns {Promise<{ node: string, client: string }>} a Node that is new enough, and acpx
 */
async function install(folder) {
  const { bin, node } = await installForeign(folder, OLDEST_NODE, { acpx: ACPX_VERSION });
  return { node, client: bin("acpx", "acpx") };
}

/** The client with a home of its own, in which the program is the agent. */
class Client {
  /**
   * @param {string} folder
   * @param {{ node: string, client: string }} installed
   * @param {Service} service
   */
  constructor(folder, installed, service) {
    this.installed = installed;
    this.work = join(folder, "work");
    mkdirSync(this.work);
    this.environment = homeIn(folder, installed.node, service);
  }

  /**
   * @param {readonly string[]} args
   * @returns {Promise<Ended>}
   */
  run(...args) {
    const { node, client } = this.installed;
    // In the mode that asks, whether there is a sandbox or not.
    const agent = `${JSON.stringify(node)} ${JSON.stringify(program)} acp --mode ask`;
    const all = [client, "--agent", agent, "--cwd", this.work, ...args];
    return runForeign(node, all, { cwd: this.work, env: this.environment });
  }

  /** @param {string} name */
  file(name) {
    const path = join(this.work, name);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  }
}

/**
 * @param {string} what
 * @param {Ended} ended
 * @param {{ code?: number, shows?: readonly string[] }} expected
 */
function differences(what, ended, { code = 0, shows = [] }) {
  const output = `${ended.stdout}\n${ended.stderr}`;
  const wrong = ended.code === code ? [] : [`it ended with ${ended.code}, not ${code}`];
  for (const text of shows) {
    if (!output.includes(text)) wrong.push(`it does not show ${JSON.stringify(text)}`);
  }
  return wrong.map((each) => `${what}: ${each}:\n${output}`);
}

/**
 * @param {Client} client
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function approved(client, service) {
  const write = { call: "write", arguments: { path: "a.txt", content: "hello\n" } };
  service.play([{ say: [{ text: "I write." }, write] }, { say: "Written." }]);
  const ended = await client.run("--approve-all", "exec", "Write a.txt");
  const shows = ["session/request_permission", "Write `a.txt`", "Written.", "[done] end_turn"];
  const problems = differences("exec --approve-all", ended, { shows });
  if (client.file("a.txt") !== "hello\n") problems.push("a.txt was not written");
  return { problems };
}

/**
 * @param {Client} client
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function denied(client, service) {
  const write = { call: "write", arguments: { path: "b.txt", content: "hello\n" } };
  service.play([{ say: [write] }, { say: "Then not." }]);
  const ended = await client.run("--deny-all", "--format", "json", "exec", "Write b.txt");
  const shows = ['"stopReason":"end_turn"', "Denied"];
  const problems = differences("exec --deny-all", ended, { code: ACPX_DENIED, shows });
  if (client.file("b.txt") !== undefined) problems.push("b.txt was written");
  for (const line of ended.stdout.split("\n").slice(0, -1)) {
    try {
      JSON.parse(line);
    } catch {
      problems.push(`this is no message: ${line}`);
    }
  }
  return { problems };
}

/**
 * A session that is kept between commands, gone on with and closed.
 *
 * @param {Client} client
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function kept(client, service) {
  service.play([{ say: "First." }, { say: "Second." }]);
  const asked = service.requests.length;
  const ask = ["--ttl", String(IDLE_SECONDS), "prompt"];
  /** @type {[string[], string[]][]} */
  const steps = [
    [["sessions", "new"], []],
    [
      [...ask, "One"],
      ["First.", "[done] end_turn"],
    ],
    [["set-mode", "plan"], ["plan"]],
    [["set", "thinking", "low"], ["thinking=low"]],
    [
      [...ask, "Two"],
      ["Second.", "[done] end_turn"],
    ],
    [["sessions", "list"], ["One"]],
    [["sessions", "close"], []],
  ];
  const problems = [];
  for (const [args, shows] of steps) {
    problems.push(...differences(args.join(" "), await client.run(...args), { shows }));
  }
  const last = service.requests.at(-1)?.text ?? "";
  if (service.requests.length !== asked + 2) problems.push("the service was not asked twice");
  if (!last.includes("One") || !last.includes("First.")) {
    problems.push("the second prompt does not go on with the first");
  }
  return { problems };
}

/**
 * @param {Client} client
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function refused(client, service) {
  service.play([{ status: 401, message: "invalid x-api-key" }]);
  const ended = await client.run("exec", "Hi");
  if (ended.code === 0) return { problems: [`it ended with 0:\n${ended.stdout}`] };
  return {
    problems: differences("a key that is refused", ended, { code: ended.code, shows: ["uth"] }),
  };
}

await driveProgram(program, async (folder, service) => {
  const client = new Client(folder, await install(folder), service);
  return [
    { name: "approved", check: () => approved(client, service) },
    { name: "denied", check: () => denied(client, service) },
    { name: "kept", check: () => kept(client, service) },
    { name: "refused", check: () => refused(client, service) },
  ];
});
