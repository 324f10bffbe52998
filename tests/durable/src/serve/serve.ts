import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type AgentEnd, type AgentTool, defineTool } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { Random } from "@gyre/durable/testing";
import { type Transport, type TransportHandler, WireClient } from "@gyre/protocol";
import { RemoteAgent } from "@gyre/server/client";
import { buildProgram, ServerProcess } from "./server-process.ts";
import {
  composeAnswer,
  formatTask,
  startModelService,
  type Task,
  type TaskTool,
} from "./service.ts";

/** Where the servers keep sessions: it is removed at the end. */
interface TrialBackend {
  readonly name: string;
  create(): Promise<string>;
  remove(): Promise<void>;
}

export interface ServeTrial {
  readonly backend: TrialBackend;
  readonly seed: number;
  readonly servers: number;
  readonly clients: number;
  readonly prompts: number;
  readonly timeoutMs: number;
}

const MAX_WORDS = 150;
const TOOL_SHARE = 0.6;
/** Of the tools, those that run at the client; it takes them a while. */
const CLIENT_SHARE = 0.5;
const MAX_NOTE_MS = 1_500;
/** Between two failures. */
const MIN_QUIET_MS = 200;
const MAX_QUIET_MS = 1_500;

/**
 * Real servers of one database, killed, stopped and started again; clients that are cut and come
 * back to another server. Each prompt has to settle with its whole answer; nothing is lost, nothing
 * is done twice, and no byte of the transcript is wrong.
 */
export async function serve(trial: ServeTrial): Promise<boolean> {
  const { backend, seed } = trial;
  const [program, service] = [await buildProgram(), await startModelService(seed)];
  const url = await backend.create();
  const start = (): Promise<ServerProcess> =>
    ServerProcess.start(program, { url, service: service.url, mode: "full" });
  const servers = await Promise.all(Array.from({ length: trial.servers }, start));
  const random = new Random(`serve-${seed}`);
  const problems: string[] = [];
  const clients = Array.from(
    { length: trial.clients },
    (_, nth) => new Client(nth, trial, servers),
  );
  const ended = new AbortController();
  const breaking = breakThings(random, servers, clients, start, ended.signal);
  try {
    const trials = Promise.all(clients.map((client) => client.work(problems)));
    const late = once(AbortSignal.timeout(trial.timeoutMs), "abort").then(() => {
      throw new Error(`not over after ${trial.timeoutMs} ms`);
    });
    await Promise.race([trials, late]);
  } catch (error) {
    problems.push(String(error));
  } finally {
    ended.abort();
  }
  const failures = await breaking;
  const [first] = servers;
  if (first) for (const client of clients) problems.push(...(await client.compare(first)));
  const expected = clients.some(({ commands }) => commands > 0);
  problems.push(...checkEffects(join(program.folder, "work", "effects.txt"), expected));
  const waits = clients.flatMap(({ waits: each }) => each).sort((a, b) => a - b);
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all(servers.map((server) => server.end("SIGKILL")));
  await service.close();
  await backend.remove();
  program.remove();
  const prompts = trial.clients * trial.prompts;
  const counts = Object.entries(failures).map(([what, count]) => `${what} ${count}`);
  const resets = clients.reduce((sum, client) => sum + client.snapshots, 0);
  console.log(
    `serve: ${backend.name}, seed ${seed}: ${waits.length} of ${prompts} prompts settled over ${trial.servers} servers (${counts.join(", ")}); snapshots ${resets}, model asked ${service.requests} times, interrupted ${clients.reduce((sum, { interrupted }) => sum + interrupted, 0)}; longest prompt ${Math.round(waits.at(-1) ?? 0)} ms; problems ${problems.length}: ${problems.length === 0 ? "ok" : "FAILED"}`,
  );
  for (const problem of problems.slice(0, 20)) console.log(`  ${problem}`);
  return problems.length === 0;
}

/** One after the other, so that there is always a server. */
async function breakThings(
  random: Random,
  servers: ServerProcess[],
  clients: readonly Client[],
  start: () => Promise<ServerProcess>,
  signal: AbortSignal,
): Promise<Record<string, number>> {
  const counts = { kill: 0, stop: 0, cut: 0 };
  while (!signal.aborted) {
    const quiet = AbortSignal.timeout(random.between(MIN_QUIET_MS, MAX_QUIET_MS));
    await once(AbortSignal.any([signal, quiet]), "abort");
    if (signal.aborted) break;
    const at = random.below(servers.length);
    const what = random.pick<"kill" | "stop" | "cut">(["kill", "stop", "cut", "cut"]);
    counts[what]++;
    if (what === "cut") for (const client of clients) client.cut();
    else {
      await servers[at]?.end(what === "kill" ? "SIGKILL" : "SIGTERM");
      servers[at] = await start();
    }
  }
  return counts;
}

/** A connection that can break: its client notices, as with a network that is gone. */
class CutTransport implements Transport {
  readonly #inner: Transport;
  #handler: TransportHandler | undefined;
  #isCut = false;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  send(...[frame]: Parameters<Transport["send"]>): void | Promise<void> {
    return this.#isCut ? undefined : this.#inner.send(frame);
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#inner.receive({
      onFrame: (frame) => {
        if (!this.#isCut) handler.onFrame(frame);
      },
      onFault: (error) => handler.onFault(error),
      onClose: (error) => {
        if (!this.#isCut) handler.onClose(error);
      },
    });
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  cut(): void {
    if (this.#isCut) return;
    this.#isCut = true;
    void this.#inner.close();
    this.#handler?.onClose(new Error("cut"));
  }
}

/** A client with a session of its own. */
class Client {
  /** How long each prompt took. */
  readonly waits: number[] = [];
  snapshots = 0;
  /** Prompts that were answered with a result of the shell. */
  commands = 0;
  interrupted = 0;
  /** How often the client tool has run, by task. */
  readonly #notes = new Map<string, number>();
  readonly #name: string;
  readonly #random: Random;
  readonly #servers: readonly ServerProcess[];
  readonly #prompts: number;
  readonly #wire: WireClient;
  #transport: CutTransport | undefined;
  #agent: RemoteAgent | undefined;

  constructor(nth: number, { seed, prompts }: ServeTrial, servers: readonly ServerProcess[]) {
    this.#name = `${seed}-${nth}`;
    this.#random = new Random(`client-${this.#name}`);
    this.#servers = servers;
    this.#prompts = prompts;
    this.#wire = new WireClient({ connect: (signal) => this.#connect(signal) });
  }

  async #connect(signal: AbortSignal): Promise<Transport> {
    const alive = this.#servers.filter(({ isAlive }) => isAlive);
    const server = alive[this.#random.below(alive.length)];
    if (!server) throw new Error("There is no server now.");
    this.#transport = new CutTransport(await server.connect(signal));
    return this.#transport;
  }

  /** Breaks the connection. */
  cut(): void {
    if (this.#random.chance(0.5)) this.#transport?.cut();
  }

  async work(problems: string[]): Promise<void> {
    const agent = await RemoteAgent.create(this.#wire, {}, { onSnapshot: () => this.snapshots++ });
    this.#agent = agent;
    const ended = new Set<unknown>();
    agent.subscribe((event) => {
      if (event.type !== "message_end") return;
      const print = JSON.stringify(event.message);
      if (ended.has(print)) problems.push(`${this.#name}: a message ended twice: ${print}`);
      ended.add(print);
    });
    await agent.registerTools([this.#createTool()]);
    for (let nth = 0; nth < this.#prompts; nth++) {
      const tool = this.#pickTool();
      const task: Task = {
        id: `${this.#name}-${nth}`,
        words: this.#random.between(1, MAX_WORDS),
        ...(tool && { tool }),
      };
      const from = performance.now();
      const end = await agent.prompt(formatTask(task));
      this.waits.push(performance.now() - from);
      problems.push(...this.#check(task, end));
    }
  }

  #pickTool(): TaskTool | undefined {
    if (!this.#random.chance(TOOL_SHARE)) return undefined;
    return this.#random.chance(CLIENT_SHARE) ? "note" : "shell";
  }

  /** It runs in this process, whichever servers die meanwhile. */
  #createTool(): AgentTool {
    return defineTool({
      name: "note",
      description: "Makes a note.",
      parameters: {
        type: "object",
        properties: { id: { type: "string" } },
        required: ["id"],
      },
      execute: async ({ id }) => {
        this.#notes.set(id, (this.#notes.get(id) ?? 0) + 1);
        await once(AbortSignal.timeout(this.#random.between(1, MAX_NOTE_MS)), "abort");
        return `done ${id}`;
      },
    });
  }

  #check(task: Task, end: AgentEnd): string[] {
    const where = `${task.id}:`;
    if (end.stop !== "done") return [`${where} it ended with ${end.stop}: ${end.errorMessage}`];
    const roles = end.messages.map(({ role }) => role).join(" ");
    // The first prompt of a conversation brings the facts of the start along.
    const asked = task.id.endsWith("-0") ? "user notice" : "user";
    const expected = `${asked} ${task.tool ? "assistant toolResult assistant" : "assistant"}`;
    const problems = roles === expected ? [] : [`${where} it has ${roles}`];
    const last = end.messages.at(-1);
    const text = last?.role === "assistant" ? textOf(last) : "";
    if (text !== composeAnswer(task)) problems.push(`${where} the answer is wrong: ${text}`);
    const result = end.messages.find((message) => message.role === "toolResult");
    if (result?.role !== "toolResult") return problems;
    const output = textOf(result);
    if (task.tool === "note") {
      // A client tool outlives servers and workers.
      const times = this.#notes.get(task.id) ?? 0;
      if (times !== 1) problems.push(`${where} the client tool ran ${times} times`);
      if (output !== `done ${task.id}`) problems.push(`${where} the client's result is ${output}`);
    } else if (output.includes("Interrupted")) this.interrupted++;
    else if (output.includes(`done ${task.id}`)) this.commands++;
    else problems.push(`${where} the result is ${output}`);
    return problems;
  }

  /** What the client has, against what a server has that it may never have been at. */
  async compare(server: ServerProcess): Promise<string[]> {
    const agent = this.#agent;
    if (!agent) return [];
    const client = new WireClient({ connect: (signal) => server.connect(signal) });
    const fresh = await RemoteAgent.attach(client, agent.sessionId);
    const { messages: stored } = fresh.state;
    const { messages: own } = agent.state;
    await client.close();
    const at = stored.findIndex((message, nth) => !isDeepStrictEqual(message, own[nth]));
    if (at < 0 && stored.length === own.length) return [];
    const [has, hasNot] = [stored[at], own[at]].map((message) => JSON.stringify(message));
    return [`${this.#name}: message ${at} of the client is ${hasNot}, the store has ${has}`];
  }

  async close(): Promise<void> {
    await this.#agent?.close();
    await this.#wire.close();
  }
}

/** Each effect is made at most once. */
function checkEffects(file: string, isExpected: boolean): string[] {
  let lines: string[];
  try {
    lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch {
    return isExpected ? ["no tool has had an effect"] : [];
  }
  const twice = lines.filter((line, at) => lines.indexOf(line) !== at);
  return twice.map((id) => `the effect ${id} was made twice`);
}
