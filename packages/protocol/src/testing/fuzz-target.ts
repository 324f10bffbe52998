import { type ChildProcess, spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isRecord } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import { createRemoteClient, type RemoteClient } from "../models/remote-client.ts";
import { LOOPBACK } from "../node/base/listen.ts";
import { connectTcp } from "../node/tcp.ts";
import { makeToken } from "../node/base/token.ts";

const PROGRAM = fileURLToPath(new URL("../../dist/testing/fuzzed-server.js", import.meta.url));

const MIB = 1024 * 1024;

/** What V8 gets for the server's heap; the rest of its memory is for us to measure. */
const HEAP_MIB = 256;
/** The most that the server may ever take from the system. */
export const MAX_SERVER_MIB = 384;

/** What the server's model says to everybody. */
export const GREETING = "Hello there, and welcome.";

interface Ports {
  tcp: number;
  http: number;
}

/** A server in another process, which is there to be attacked. */
export class FuzzTarget {
  readonly token: string;
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  #ports: Ports = { tcp: 0, http: 0 };

  private constructor(token: string) {
    this.token = token;
    const args = [`--max-old-space-size=${HEAP_MIB}`, PROGRAM, token];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
  }

  static async start(): Promise<FuzzTarget> {
    const target = new FuzzTarget(makeToken());
    target.#ports = JSON.parse(await target.#line()) as Ports;
    return target;
  }

  get ports(): Ports {
    return this.#ports;
  }

  /** The most memory that it had since its start. */
  async maxMib(): Promise<number> {
    const line = this.#line();
    this.#child.stdin?.write("\n");
    return Number(await line) / MIB;
  }

  /** A connection that says whatever it likes. */
  raw(): RawClient {
    return new RawClient(this.#ports.tcp, this.token);
  }

  /** Another client connects and behaves. Returns the model's answer: the greeting, if all is well. */
  async greetOther(): Promise<string> {
    const { tcp: port } = this.#ports;
    const { token } = this;
    const client: RemoteClient = createRemoteClient({
      connect: (signal) => connectTcp({ port, token, signal }),
    });
    const context = { messages: [{ role: "user" as const, content: "Hello", timestamp: 0 }] };
    const { content, stopReason } = await client.complete(scriptedModelInfo, context);
    await client.close();
    const texts = content.map((block) => (block.type === "text" ? block.text : block.type));
    return stopReason === "stop" ? texts.join("") : stopReason;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.kill("SIGKILL");
    });
  }

  #line(): Promise<string> {
    return new Promise((resolve, reject) => {
      const gone = (code: unknown): void =>
        reject(new Error(`The server is gone (${String(code)}).`));
      this.#child.once("exit", gone);
      this.#lines.once("line", (line) => {
        this.#child.off("exit", gone);
        resolve(line);
      });
    });
  }
}

export type Frame = Record<string, unknown>;

/** Answers get none. */
export const ANSWERS: ReadonlySet<unknown> = new Set(["ack", "nack", "error", "pong", "ready"]);

/** A socket, and the frames that came out of it. */
export class RawClient {
  readonly frames: Frame[] = [];
  readonly socket: Socket;
  isClosed = false;
  /** In place of keeping it. */
  onFrame: (frame: Frame) => void = (frame) => void this.frames.push(frame);
  readonly #token: string;
  #made = 0;
  #waiting: { until: () => boolean; resolve: () => void }[] = [];

  constructor(port: number, token: string) {
    this.#token = token;
    this.socket = connect({ port, host: LOOPBACK, noDelay: true });
    this.socket.on("error", () => this.socket.destroy());
    this.socket.on("close", () => {
      this.isClosed = true;
      this.#look();
    });
    let rest = "";
    this.socket.setEncoding("utf8").on("data", (text: string) => {
      // LF alone ends a frame.
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.onFrame(JSON.parse(line) as Frame);
      this.#look();
    });
  }

  /** Bytes as they are. Settles when the server can take more, or is gone. */
  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.isClosed || this.socket.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.socket.off("drain", done).off("close", done);
        resolve();
      };
      this.socket.on("drain", done).on("close", done);
    });
  }

  frame(frame: Frame): Promise<void> {
    return this.write(`${JSON.stringify(frame)}\n`);
  }

  async hello(): Promise<this> {
    const payload = { versions: [1], token: this.#token };
    await this.frame({ v: 1, type: "hello", id: "h", payload });
    await this.until(() => this.answerTo("h") !== undefined);
    return this;
  }

  /** Whether the server goes on listening: it answers a ping. */
  async isAlive(): Promise<boolean> {
    const id = `ping_${++this.#made}`;
    await this.frame({ v: 1, type: "ping", id });
    await this.until(() => this.answerTo(id) !== undefined || this.isClosed);
    return !this.isClosed;
  }

  /** Sends a request, and gives its answer. */
  async ask(type: string, more: Frame = {}): Promise<Frame> {
    const id = `ask_${++this.#made}`;
    await this.frame({ v: 1, type, id, ...more });
    await this.until(() => this.answerTo(id) !== undefined || this.isClosed);
    return this.answerTo(id) ?? {};
  }

  /** The answers, without the greeting and the events of streams. */
  get answers(): Frame[] {
    return this.frames.slice(1).filter(({ seq, type }) => ANSWERS.has(type) && seq === undefined);
  }

  answerTo(id: string): Frame | undefined {
    return this.frames.findLast(({ re }) => re === id);
  }

  until(until: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ until, resolve });
      this.#look();
    });
  }

  end(): void {
    this.socket.destroy();
  }

  #look(): void {
    const ready = this.#waiting.filter(({ until }) => until());
    this.#waiting = this.#waiting.filter((each) => !ready.includes(each));
    for (const { resolve } of ready) resolve();
  }
}

/** The code of an error, where it is one. */
export function errorCode({ payload }: Frame): unknown {
  return isRecord(payload) ? payload["code"] : undefined;
}
