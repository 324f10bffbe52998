// MCP proven with what its project publishes: the reference server on stdio and on streamable
// HTTP as seen by the built program, and the program as a server as seen by the inspector.
// `node scripts/drive/mcp.mjs`, or `node scripts/drive/mcp.mjs PROGRAM` for one that is elsewhere. Needs the
// registry of npm; all that it connects to is on loopback.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { driveProgram, homeIn, installForeign, runForeign } from "./foreign.mjs";

const SERVER = "@modelcontextprotocol/server-everything";
const SERVER_VERSION = "2026.8.31";
const INSPECTOR = "@modelcontextprotocol/inspector";
const INSPECTOR_VERSION = "2.12.0";
/** The inspector runs on this and later ones. */
const OLDEST_NODE = 22;
/** Tools that the reference server has for every client. */
const LEAST_TOOLS = 10;

const root = fileURLToPath(new URL("../..", import.meta.url));
const program = process.argv[2] ?? join(root, "packages/cli/bundle/gyre.js");

/**
 * @typedef {import("./foreign.mjs").Service} Service
 * @typedef {import("./foreign.mjs").Ended} Ended
 * @typedef {{ problems: string[], figures?: string[] }} Found
 * @typedef {{ node: string, server: string, inspector: string }} Installed
 */

/**
 * @param {string} folder
 * @returns {Promise<Installed>} a Node that is new enough, and both programs
 */
async function install(folder) {
  const versions = { [SERVER]: SERVER_VERSION, [INSPECTOR]: INSPECTOR_VERSION };
  const { bin, node } = await installForeign(folder, OLDEST_NODE, versions);
  return {
    node,
    server: bin(SERVER, "mcp-server-everything"),
    inspector: bin(INSPECTOR, "mcp-inspector"),
  };
}

/** A home, and a project in it with the servers of a `.mcp.json`. */
class Place {
  /**
   * @param {string} folder
   * @param {Installed} installed
   * @param {Service} service
   */
  constructor(folder, installed, service) {
    this.installed = installed;
    this.work = join(folder, "work");
    mkdirSync(this.work, { recursive: true });
    this.environment = { ...homeIn(folder, installed.node, service), NO_PROXY: "127.0.0.1" };
  }

  /** @param {object} server */
  use(server) {
    const text = JSON.stringify({ mcpServers: { everything: server } });
    writeFileSync(join(this.work, ".mcp.json"), text);
  }

  /**
   * @param {readonly string[]} args of the program
   * @returns {Promise<Ended>}
   */
  gyre(...args) {
    return this.run(process.execPath, [program, ...args]);
  }

  /**
   * @param {string} file
   * @param {readonly string[]} args
   * @returns {Promise<Ended>}
   */
  run(file, args) {
    return runForeign(file, args, { cwd: this.work, env: this.environment });
  }
}

/** What the model asks for, and what has to be in a request by the end. */
const CALLS = [
  { call: "tool_search", arguments: { query: "echo" }, shows: "mcp__everything__echo" },
  used("echo", { message: "hello" }, "Echo: hello"),
  used("get-sum", { a: 2, b: 40 }, "The sum of 2 and 40 is 42"),
  used("get-sum", { a: "two" }, "Invalid arguments"),
  used("get-tiny-image", {}, '"image/png"'),
  used("trigger-long-running-operation", { duration: 1, steps: 2 }, "completed"),
  used("get-structured-content", { location: "New York" }, "temperature"),
  used("get-resource-reference", { resourceType: "Text", resourceId: 1 }, "Resource"),
  used("no-such-tool", {}, "There is no tool"),
];

/**
 * @param {string} tool
 * @param {object} args
 * @param {string} shows
 */
function used(tool, args, shows) {
  const name = `mcp__everything__${tool}`;
  return { call: "mcp_call", arguments: { tool: name, arguments: args }, shows };
}

/**
 * @param {Place} place
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function client(place, service) {
  const problems = [];
  const refused = await place.gyre("mcp");
  if (!refused.stderr.includes("not trusted")) problems.push("it is used without being trusted");
  const trusted = await place.gyre("trust");
  if (trusted.code !== 0) problems.push(`gyre trust: ${trusted.stderr}`);
  const listed = await place.gyre("mcp", "--json");
  /** @type {{ state: string, tools: string[], problem?: string }[]} */
  const [status] = JSON.parse(listed.stdout);
  const count = status?.tools.length ?? 0;
  if (status?.state !== "ready" || count < LEAST_TOOLS) {
    problems.push(`gyre mcp: ${listed.stdout}${listed.stderr}`);
  }
  service.play([
    ...CALLS.map(({ call, arguments: args }) => ({ say: [{ call, arguments: args }] })),
    { say: "Done." },
  ]);
  const before = service.requests.length;
  const ended = await place.gyre("-p", "--allow", "mcp__everything__*", "--quiet", "Go");
  if (ended.code !== 0 || ended.stdout !== "Done.\n") {
    problems.push(`gyre -p ended with ${ended.code}: ${ended.stdout}${ended.stderr}`);
  }
  const requests = service.requests.slice(before).map(({ text }) => text);
  for (const [index, { arguments: args, shows }] of CALLS.entries()) {
    const next = requests[index + 1] ?? "";
    if (next.includes(shows)) continue;
    problems.push(`${JSON.stringify(args)} does not show ${JSON.stringify(shows)}: ${next}`);
  }
  return { problems, figures: [`${count} tools, ${CALLS.length} calls`] };
}

/**
 * @param {Place} place
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function overStdio(place, service) {
  const { server } = place.installed;
  place.use({ command: process.execPath, args: [server, "stdio"] });
  return client(place, service);
}

/**
 * @param {Place} place
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function overHttp(place, service) {
  const port = await freePort();
  const child = spawn(process.execPath, [place.installed.server, "streamableHttp"], {
    cwd: place.work,
    env: { ...place.environment, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  try {
    await new Promise((resolve, reject) => {
      let output = "";
      child.stderr.setEncoding("utf8").on("data", (text) => {
        output += text;
        if (output.includes("listening")) resolve(undefined);
      });
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`the reference server has ended: ${output}`)));
    });
    place.use({ type: "http", url: `http://127.0.0.1:${port}/mcp` });
    return await client(place, service);
  } finally {
    child.kill("SIGKILL");
  }
}

/** @returns {Promise<number>} a port that is free now */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/**
 * @param {Place} place
 * @returns {Promise<Found>}
 */
async function inspected(place) {
  writeFileSync(join(place.work, "a.txt"), "hello from a file\n");
  // The inspector passes on the home of the user, and no other variable that names the place.
  const skill = join(place.work, "../.config/gyre/skills/brew-tea");
  mkdirSync(skill, { recursive: true });
  writeFileSync(join(skill, "SKILL.md"), "---\nname: brew-tea\ndescription: Tea\n---\nPour.\n");
  /**
   * @param {readonly string[]} options of the program
   * @param {readonly string[]} args of the inspector
   */
  const inspect = (options, ...args) => {
    const { node, inspector } = place.installed;
    const target = [process.execPath, program, "mcp", "serve", ...options];
    return place.run(node, [inspector, "--cli", ...target, ...args]);
  };
  /** @param {string} name @param {readonly string[]} args */
  const call = (name, ...args) => [
    ...["--method", "tools/call", "--tool-name", name],
    ...args.flatMap((arg) => ["--tool-arg", arg]),
  ];
  const write = call("write", "path=b.txt", "content=x");
  /** @type {[string, Ended, string[]][]} */
  const seen = [
    [
      "tools/list",
      await inspect([], "--method", "tools/list"),
      ['"name": "read"', '"name": "ls"', '"name": "find"', '"name": "grep"', "readOnlyHint"],
    ],
    ["read", await inspect([], ...call("read", "path=a.txt")), ["hello from a file"]],
    ["grep", await inspect([], ...call("grep", "pattern=hello")), ["a.txt"]],
    ["outside", await inspect([], ...call("read", "path=/etc/hostname")), ['"isError": true']],
    [
      "resources/list",
      await inspect([], "--method", "resources/list"),
      ['"uri": "gyre://skills/brew-tea"'],
    ],
    ["prompts/list", await inspect([], "--method", "prompts/list"), ['"name": "skill:brew-tea"']],
    ["unknown", await inspect([], ...write), ["not found"]],
    ["denied", await inspect(["--tools", "write"], ...write), ["Denied"]],
  ];
  const problems = seen.flatMap(([what, { stdout, stderr }, shows]) =>
    shows
      .filter((text) => !`${stdout}${stderr}`.includes(text))
      .map((text) => `${what} does not show ${JSON.stringify(text)}:\n${stdout}${stderr}`),
  );
  if (existsSync(join(place.work, "b.txt"))) problems.push("a file was written without permission");
  const allowed = await inspect(["--tools", "write", "--mode", "auto-edit"], ...write);
  if (!existsSync(join(place.work, "b.txt"))) {
    problems.push(`--mode auto-edit does not write: ${allowed.stdout}${allowed.stderr}`);
  }
  return { problems, figures: [`${seen.length + 1} commands`] };
}

await driveProgram(program, async (folder, service) => {
  const installed = await install(folder);
  /** @param {string} name */
  const place = (name) => new Place(join(folder, name), installed, service);
  return [
    { name: "stdio", check: () => overStdio(place("stdio"), service) },
    { name: "http", check: () => overHttp(place("http"), service) },
    { name: "inspector", check: () => inspected(place("inspector")) },
  ];
});
