import { PassThrough } from "node:stream";
import type { Io } from "../core/io.ts";

/** An `Io` of texts: what goes in, and what came out. */
export interface TextIo extends Io {
  out(): string;
  err(): string;
}

/** Standard input has `input` and ends; of the environment there is `env` alone. */
export function textIo(options: Partial<Io> & { input?: string } = {}): TextIo {
  let out = "";
  let err = "";
  const stdin = new PassThrough();
  stdin.end(options.input ?? "");
  return {
    stdin,
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    env: {},
    cwd: process.cwd(),
    signal: new AbortController().signal,
    ...options,
    out: () => out,
    err: () => err,
  };
}
