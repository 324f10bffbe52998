// The programs of docs/observability.md and docs/programs/telemetry.mjs with the SDK of OpenTelemetry, against a receiver on this
// machine, and `logging` with pino and winston. `npm run test:telemetry`. Needs the registry of npm;
// all that it connects to is on loopback.
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { driveProgram, homeIn, installForeign, runForeign } from "./foreign.mjs";

const PACKAGES = {
  "@opentelemetry/api": "1.9.0",
  "@opentelemetry/exporter-metrics-otlp-proto": "0.223.0",
  "@opentelemetry/exporter-trace-otlp-proto": "0.223.1",
  "@opentelemetry/sdk-metrics": "2.12.0",
  "@opentelemetry/sdk-trace-node": "2.12.0",
  pino: "10.4.0",
  winston: "3.19.0",
};
const OLDEST_NODE = 20;

/** What the backends read, in the bytes of what arrives. */
const SPANS = [
  "invoke_agent weather-bot",
  "chat claude-sonnet-4-5",
  "execute_tool weather",
  "execute_tool wether",
  "unknown_tool",
  "gen_ai.conversation.id",
  "gen_ai.input.messages",
  "Do I need an umbrella in Bern?",
  "gen_ai.output.messages",
  "Take an umbrella.",
  "gen_ai.tool.definitions",
  "gen_ai.response.time_to_first_chunk",
  "gyre.usage.cost",
  "server.address",
  "127.0.0.1",
  "server.port",
  "user.id",
  "u-42",
  "langfuse.trace.tags",
];
const METRICS = [
  "gen_ai.client.token.usage",
  "gen_ai.client.operation.duration",
  "gen_ai.client.operation.time_to_first_chunk",
  "gyre.client.operation.cost",
  "gen_ai.token.type",
  "acme",
];

const LOGGERS = `import { Agent, logging } from "@gyre/agent";
import pino from "pino";
import winston from "winston";
const transports = [new winston.transports.Console()];
const loggers = { pino: pino(), winston: winston.createLogger({ transports }), console };
const model = "anthropic/claude-sonnet-4-5";
const agent = new Agent({ model, middleware: [logging(loggers[process.argv[2]])] });
await agent.prompt("Hello?");
`;

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * @typedef {import("./foreign.mjs").Service} Service
 * @typedef {{ problems: string[], figures?: string[] }} Found
 * @typedef {{ folder: string, env: NodeJS.ProcessEnv }} Place
 */

/** @returns {Promise<{ url: string, bodies: Map<string, Buffer[]>, close: () => void }>} */
async function startReceiver() {
  /** @type {Map<string, Buffer[]>} */
  const bodies = new Map();
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    const answer = (/** @type {Buffer} */ body) => {
      bodies.set(path, [...(bodies.get(path) ?? []), body]);
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    };
    buffer(request).then(answer, (error) => response.destroy(error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("There is no port.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    bodies,
    close: () => void server.close(),
  };
}

/**
 * @param {Place} place
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function checkPage({ folder, env }, service) {
  const page = readFileSync(join(root, "docs/observability.md"), "utf8");
  const [, program = ""] = /^```js\n([\s\S]*?)^```$/m.exec(page) ?? [];
  writeFileSync(join(folder, "page.mjs"), program);
  service.play([
    { say: [{ call: "wether", arguments: { city: "Bern" } }] },
    { say: [{ call: "weather", arguments: { city: "Bern" } }] },
    { say: "Take an umbrella." },
  ]);
  const { bodies, close, url } = await startReceiver();
  const problems = [];
  try {
    const ended = await runForeign(process.execPath, ["page.mjs"], {
      cwd: folder,
      env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: url },
    });
    if (ended.code !== 0 || ended.stdout !== "Take an umbrella.\n" || ended.stderr !== "") {
      problems.push(`the program ended with ${ended.code}: ${ended.stdout}${ended.stderr}`);
    }
  } finally {
    close();
  }
  for (const [path, expected] of Object.entries({ "/v1/traces": SPANS, "/v1/metrics": METRICS })) {
    const arrived = Buffer.concat(bodies.get(path) ?? []);
    for (const text of expected) {
      if (!arrived.includes(text)) problems.push(`${path} has no ${JSON.stringify(text)}`);
    }
  }
  const figures = [...bodies].map(([path, all]) => `${path} ${Buffer.concat(all).length} bytes`);
  return { problems, figures };
}

/**
 * @param {Place} place
 * @param {Service} service
 * @returns {Promise<Found>}
 */
async function checkProgram({ folder, env }, service) {
  copyFileSync(join(root, "docs/programs/telemetry.mjs"), join(folder, "telemetry.mjs"));
  service.play([{ say: "Green." }]);
  const { bodies, close, url } = await startReceiver();
  const problems = [];
  try {
    const ended = await runForeign(process.execPath, ["telemetry.mjs"], {
      cwd: folder,
      env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: url },
    });
    const { code, stdout, stderr } = ended;
    if (code !== 0 || stderr !== "") problems.push(`it ended with ${code}: ${stderr}`);
    for (const text of ["run_start", "model_call", "\nGreen.\n"]) {
      if (!stdout.includes(text)) problems.push(`it prints no ${JSON.stringify(text)}: ${stdout}`);
    }
  } finally {
    close();
  }
  const spans = Buffer.concat(bodies.get("/v1/traces") ?? []);
  for (const text of ["invoke_agent", "chat claude-sonnet-4-5", "Which tea?"]) {
    if (!spans.includes(text)) problems.push(`no span has ${JSON.stringify(text)}`);
  }
  return { problems };
}

/**
 * @param {Place} place
 * @param {Service} service
 * @param {"pino" | "winston" | "console"} name
 * @returns {Promise<Found>}
 */
async function checkLogger({ folder, env }, service, name) {
  service.play([{ say: "Hello." }]);
  writeFileSync(join(folder, "log.mjs"), LOGGERS);
  const ended = await runForeign(process.execPath, ["log.mjs", name], { cwd: folder, env });
  const problems = ended.code === 0 ? [] : [`it ended with ${ended.code}: ${ended.stderr}`];
  for (const event of ["run_start", "model_call", "run_end"]) {
    const line = ended.stdout.split("\n").find((text) => text.includes(event)) ?? "";
    if (line === "") problems.push(`${name} has no ${event}`);
    if (name === "console" || line === "") continue;
    /** @type {Record<string, unknown>} */
    const entry = JSON.parse(line);
    const message = entry["msg"] ?? entry["message"];
    if (message !== event) problems.push(`${name} has the message ${JSON.stringify(message)}`);
    for (const field of ["level", "time"]) {
      const count = line.split(`"${field}":`).length - 1;
      if (count > 1) problems.push(`${name} has ${field} ${count} times: ${line}`);
    }
    if (entry["provider"] !== "anthropic") problems.push(`${name} has no fields: ${line}`);
  }
  return { problems };
}

await driveProgram(join(root, "packages/agent/dist/index.js"), async (folder, service) => {
  await installForeign(folder, OLDEST_NODE, PACKAGES);
  mkdirSync(join(folder, "node_modules/@gyre"));
  for (const name of ["agent", "ai"]) {
    symlinkSync(join(root, "packages", name), join(folder, "node_modules/@gyre", name));
  }
  const env = { ...homeIn(folder, process.execPath, service), NO_PROXY: "127.0.0.1" };
  const place = { folder, env };
  return [
    { name: "the short program", check: () => checkProgram(place, service) },
    { name: "the page", check: () => checkPage(place, service) },
    { name: "pino", check: () => checkLogger(place, service, "pino") },
    { name: "winston", check: () => checkLogger(place, service, "winston") },
    { name: "console", check: () => checkLogger(place, service, "console") },
  ];
});
