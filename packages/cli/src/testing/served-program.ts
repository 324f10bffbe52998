import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentMessage } from "@gyre/agent";
import type { Model } from "@gyre/ai";
import { type Connect, createRemoteClient } from "@gyre/protocol";
import { connectUrl, connectWebSocket } from "@gyre/protocol/node";
import { RemoteAgent } from "@gyre/server/client";
import { vi } from "vitest";
import { buildProgram, type Program, type Run, type RunOptions } from "./program.ts";
import { type ScriptedService, scriptedService } from "./scripted-service.ts";

/** For a program on a busy machine, in milliseconds. */
export const PATIENCE: { timeout: number; interval: number } = { timeout: 60_000, interval: 10 };

/** `gyre serve` that listens, and the way to it. */
export interface ServedProgram {
  run: Run;
  url: string;
  port: number;
  token: string;
  tokenFile: string;
  webSocket: Connect;
  /** Where `--tcp-port` or `--listen` asks for TCP. */
  tcp: Connect;
  /** Settles when the log has an event of that name. */
  logged(event: string): Promise<Record<string, unknown>>;
}

/** Starts it on a free port, unless the arguments say otherwise. */
export async function startServer(
  program: Program,
  args: readonly string[],
  options: RunOptions,
): Promise<ServedProgram> {
  const place = args.includes("--port") ? [] : ["--port", "0"];
  const run = await program.start(["serve", "--sandbox", "none", ...place, ...args], options);
  await run.shows("The token is in ");
  const url = shown(run, /^Serving at (\S+)$/m);
  const tokenFile = shown(run, /^The token is in (.+)$/m);
  const token = readFileSync(tokenFile, "utf8").trim();
  const port = Number(new URL(url).port);
  return {
    run,
    url,
    port,
    token,
    tokenFile,
    webSocket: (signal) => connectWebSocket(`ws://127.0.0.1:${port}/api/ws`, { token, signal }),
    tcp: (signal) => connectUrl(shown(run, /^Also at (tcp:\S+)$/m), { token })(signal),
    logged: (event) => vi.waitFor(() => found(run, event), PATIENCE),
  };
}

/** The program, with a service of its own for each test; servers and clients end with the test. */
export class ServeWorld {
  readonly program: Program;
  #service: ScriptedService | undefined;
  /** What is closed after a test, the newest first. */
  #open: (() => unknown)[] = [];

  private constructor(program: Program) {
    this.program = program;
  }

  static async open(): Promise<ServeWorld> {
    return new ServeWorld(await buildProgram());
  }

  get service(): ScriptedService {
    if (!this.#service) throw new Error("No test has begun.");
    return this.#service;
  }

  async begin(): Promise<void> {
    this.#service = await scriptedService();
  }

  async end(): Promise<void> {
    for (const close of this.#open.toReversed()) await close();
    this.#open = [];
    await this.service.close();
  }

  remove(): Promise<void> {
    return this.program.remove();
  }

  async serve(args: readonly string[] = [], options: RunOptions = {}): Promise<ServedProgram> {
    const server = await startServer(this.program, args, { service: this.service, ...options });
    this.ends(server.run);
    return server;
  }

  /** A new session, over WebSocket. */
  async createAgent({ webSocket }: ServedProgram): Promise<RemoteAgent> {
    const agent = await RemoteAgent.create({ connect: webSocket });
    this.closes(agent);
    return agent;
  }

  /** One that the server lists. */
  async findModel({ webSocket }: ServedProgram): Promise<Model> {
    const client = createRemoteClient({ connect: webSocket });
    this.closes(client);
    const [first] = await client.models();
    if (!first) throw new Error("There is no model.");
    const { id, provider } = first;
    return { id, provider, name: id, api: "anthropic-messages" };
  }

  closes(client: { close(): Promise<void> }): void {
    this.#open.push(() => client.close());
  }

  /** Nothing is left of it, however the test went. */
  ends(run: Run): void {
    this.#open.push(() => {
      run.kill("SIGKILL");
      return run.end;
    });
  }
}

/** What a model has said in a message. */
export function readText(message: AgentMessage | undefined): string {
  if (message?.role !== "assistant") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The file with the token where none is named. */
export function usualTokenFile(home: string): string {
  return join(home, "state", "gyre", "serve-token");
}

function shown({ stdout }: Run, pattern: RegExp): string {
  const [, found] = pattern.exec(stdout) ?? [];
  if (found === undefined) throw new Error(`It did not show ${pattern}:\n${stdout}`);
  return found;
}

function found({ stderr }: Run, event: string): Record<string, unknown> {
  const whole = stderr.slice(0, stderr.lastIndexOf("\n") + 1);
  for (const line of whole.split("\n").slice(0, -1)) {
    const entry: Record<string, unknown> = JSON.parse(line);
    if (entry["event"] === event) return entry;
  }
  throw new Error(`There is no "${event}" in the log:\n${stderr}`);
}
