import { Console } from "node:console";
import { Writable } from "node:stream";
import { openStdio } from "@gyre/protocol/stdio";
import { serveSessions } from "@gyre/server";
import { EXIT, type ExitCode } from "../../core/exit-codes.ts";
import type { Io, Sink } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { RpcHost, type RpcSetup, rpcSetup } from "./host.ts";
import { version } from "../../core/version.ts";

/**
 * `gyre rpc`: the session frames of the protocol, one a line, on stdin and stdout. stdout
 * has nothing but frames. At the end of stdin, or when the program is asked to end, runs are
 * aborted, everything is written down, and it ends.
 */
export async function runRpc(
  values: Values,
  io: Io,
  setup: RpcSetup = rpcSetup(io),
): Promise<ExitCode> {
  // What is wrong with the command line ends the program before the first frame.
  await setup(values);
  const log = (text: string): void => void io.stderr.write(`gyre: ${text}\n`);
  const restoreConsole = redirectConsole(io.stderr);
  try {
    const ended = later();
    const transport = openStdio({ input: io.stdin, output: createWritable(io.stdout) });
    const service = serveSessions(transport, new RpcHost(values, setup), {
      server: { name: "gyre", version: version() },
      onError: (error, where) => log(`${where}: ${describeError(error)}`),
      onDisconnect: (_reason, error) => {
        if (error) log(describeError(error));
        ended.resolve();
      },
    });
    io.signal.addEventListener("abort", ended.resolve);
    if (io.signal.aborted) ended.resolve();
    await ended.promise;
    await service.close();
    return io.signal.aborted ? EXIT.interrupted : EXIT.done;
  } finally {
    restoreConsole();
  }
}

/** Whatever is written to the console goes to stderr, until what this gives is called. */
export function redirectConsole(stderr: Sink): () => void {
  const output = createWritable(stderr);
  const own: object = new Console(output, output);
  const before = { ...console };
  Object.assign(console, own);
  return () => void Object.assign(console, before);
}

/** A stream for what only has a `write`. */
export function createWritable(sink: Sink): Writable {
  if (sink instanceof Writable) return sink;
  return new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      sink.write(text);
      done();
    },
  });
}

function later(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
