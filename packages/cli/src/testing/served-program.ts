import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Connect } from "@gyre/protocol";
import { connectTcp, connectWebSocket } from "@gyre/protocol/node";
import { vi } from "vitest";
import type { Program, Run, RunOptions } from "./program.ts";

/** A program on a busy machine. */
const PATIENCE_MS = 20_000;

/** `gyre serve` that listens, and the way to it. */
export interface ServedProgram {
  run: Run;
  url: string;
  port: number;
  token: string;
  tokenFile: string;
  webSocket: Connect;
  /** Where `--tcp-port` was given. */
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
    tcp: (signal) =>
      connectTcp({ port: Number(shown(run, /^TCP at .*port (\d+)$/m)), token, signal }),
    logged: (event) => vi.waitFor(() => found(run, event), { timeout: PATIENCE_MS, interval: 10 }),
  };
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
