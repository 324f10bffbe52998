import type { Readable, Writable } from "node:stream";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import type { McpOffer } from "./offer.ts";
import { createServerMaker } from "./server.ts";

export interface ServeMcpOptions extends McpOffer {
  stdin: Readable;
  /** Gets the protocol, and nothing else may write there. */
  stdout: Writable;
  /** Ends it. */
  signal: AbortSignal;
}

/**
 * Offers tools, resources and prompts to a client of the Model Context Protocol, on standard input and
 * output, until either ends. Calls of agents' tools pass the same validation and middleware as those
 * of an agent; one that middleware leaves pending for a person is refused.
 */
export async function serveMcp(options: ServeMcpOptions): Promise<void> {
  const { stdin, stdout, signal, warn } = options;
  const [maker, { serveStdio, StdioServerTransport }] = await Promise.all([
    createServerMaker(options),
    import("@modelcontextprotocol/server/stdio"),
  ]);
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MAX_MESSAGE_BYTES });
  const handle = serveStdio(({ era }) => maker.create(era), {
    transport,
    onerror: (error) => warn?.(error.message),
  });
  await new Promise<void>((settle) => {
    stdin.once("end", settle);
    stdin.once("close", settle);
    stdout.once("close", settle);
    signal.addEventListener("abort", () => settle(), { once: true });
    if (signal.aborted) settle();
  });
  await handle.close();
}
