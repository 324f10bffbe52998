import { errorMessage, systemClock } from "@gyre/ai";
import { type ConnectionState, ProtocolError, WireClient } from "@gyre/protocol";
import { connectUrl } from "@gyre/protocol/node";
import { version } from "@gyre/coding/internal/core/version";
import type { ConnectionFact } from "@gyre/coding/internal/conversation/types";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { runProgram } from "../interactive.ts";
import { readFirstSetup } from "../tui/start/agent-opener.ts";
import type { CreateOpener } from "../tui/start/opener.ts";
import { type AttachPlace, readAttachPlace } from "./place.ts";
import { RemoteOpener } from "./remote-opener.ts";

const PLACEHOLDER = "Ask for something. / commands, @ files, /help for all keys";

/**
 * `gyre attach ADDRESS [SESSION]`: the terminal for a session that runs on a server. Any number of terminals show the
 * same session; leaving one leaves the session as it is.
 */
export async function runAttach(
  args: readonly string[],
  values: Values,
  io: Io,
): Promise<ExitCode> {
  const place = await readAttachPlace(args, values, io);
  if (io.stdin.isTTY !== true || io.stdout.isTTY !== true) {
    throw new UsageError(
      "attach needs a terminal. For programs there is RemoteAgent: docs/serve.md.",
    );
  }
  const { config, draft, "screen-reader": isPlain = false } = values;
  const first = await readFirstSetup({ ...(config !== undefined && { config }) }, io);
  const connection = new Connection(place);
  await connection.open();
  const { client } = connection;
  const createOpener: CreateOpener = (opener) => {
    connection.onChange = () => opener.update();
    connection.warn = (text) => opener.ui.warn(text);
    const { session, wish, describeReturn } = place;
    return new RemoteOpener({
      ...opener,
      ...{ io, client, session, wish, describeReturn },
      setup: first.setup,
      warnings: [...place.warnings, ...first.warnings],
      connection: () => connection.fact,
    });
  };
  const streams = { input: process.stdin, output: process.stdout };
  try {
    const { setup } = first;
    const start = { io, setup, createOpener, draft, isPlain, placeholder: PLACEHOLDER };
    return await runProgram([], start, streams);
  } finally {
    await client.close();
  }
}

/** The connection to the server, which is opened again when it breaks. */
class Connection {
  readonly client: WireClient;
  readonly #address: string;
  fact: ConnectionFact = { type: "connected" };
  onChange: () => void = () => {};
  warn: (text: string) => void = () => {};

  constructor({ address, token }: Pick<AttachPlace, "address" | "token">) {
    this.#address = address;
    this.client = new WireClient({
      connect: connectUrl(address, { token }),
      client: { name: "gyre attach", version: version() },
      onState: (state) => this.#take(state),
      onError: (error, where) => this.warn(`${where}: ${errorMessage(error)}`),
    });
  }

  /** Throws why the server cannot be reached. */
  async open(): Promise<void> {
    try {
      await this.client.connect();
    } catch (error) {
      const code = error instanceof ProtocolError ? error.code : undefined;
      const isRefused = code === "unauthorized";
      const why = isRefused
        ? "the server does not accept the token. Its file is named where gyre serve was started."
        : errorMessage(error);
      const message = `There is no connection to ${this.#address}: ${why}`;
      throw new ExitError(isRefused ? EXIT.auth : EXIT.failed, message, { cause: error });
    }
  }

  #take(state: ConnectionState): void {
    const reason = this.fact.type === "connected" ? "" : this.fact.reason;
    switch (state.type) {
      case "ready":
        this.fact = { type: "connected" };
        break;
      case "connecting":
        if (this.fact.type === "lost") this.fact = { type: "lost", reason };
        break;
      case "waiting":
        this.fact = {
          type: "lost",
          retryAt: systemClock.now() + state.delayMs,
          reason: errorMessage(state.error),
        };
        break;
      case "closed":
        if (state.error) this.fact = { type: "closed", reason: errorMessage(state.error) };
        break;
      default:
        state satisfies never;
    }
    this.onChange();
  }
}
