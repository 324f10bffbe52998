import { once } from "node:events";
import { Writable } from "node:stream";
import { errorMessage } from "@gyre/ai";
import { openStdio } from "@gyre/protocol/stdio";
import { serveSessions } from "@gyre/server";
import { EXIT, type ExitCode } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { createWritable, redirectConsole } from "../../core/streams.ts";
import { RpcHost, type RpcSetup, rpcSetup } from "./host.ts";
import { version } from "@gyre/coding/internal/core/version";

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
    const gone = new AbortController();
    const ended = AbortSignal.any([io.signal, gone.signal]);
    const output = io.stdout instanceof Writable ? io.stdout : createWritable(io.stdout);
    const transport = openStdio({ input: io.stdin, output });
    const service = serveSessions(transport, new RpcHost(values, setup, { start: io.cwd }), {
      server: { name: "gyre", version: version() },
      onError: (error, where) => log(`${where}: ${errorMessage(error)}`),
      onDisconnect: (_reason, error) => {
        if (error) log(errorMessage(error));
        gone.abort();
      },
    });
    if (!ended.aborted) await once(ended, "abort");
    await service.close();
    return io.signal.aborted ? EXIT.interrupted : EXIT.done;
  } finally {
    restoreConsole();
  }
}
