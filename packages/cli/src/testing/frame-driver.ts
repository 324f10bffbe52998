import { mkdir, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { decode, type Envelope, type Payload } from "@gyre/protocol";
import type { Io } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import { type ScriptedService, scriptedService } from "./scripted-service.ts";

/** A program that has frames on stdin and stdout: `runRpc`, `runServe` with `stdio`. */
export type FrameProgram = (values: Values, io: Io) => Promise<number>;

/** A home folder with a folder to work in, and a model service. */
export class FrameWorld {
  readonly home: string;
  readonly cwd: string;
  readonly service: ScriptedService;
  readonly #variables: Record<string, string> = {};

  private constructor(home: string, service: ScriptedService) {
    this.home = home;
    this.cwd = join(home, "work");
    this.service = service;
  }

  static async open(): Promise<FrameWorld> {
    const home = await mkdtemp(join(await realpath(tmpdir()), "gyre-frames-"));
    const world = new FrameWorld(home, await scriptedService());
    await mkdir(world.cwd);
    return world;
  }

  async close(): Promise<void> {
    await this.service.close();
    await rm(this.home, { recursive: true, force: true });
  }

  get env(): Record<string, string | undefined> {
    return {
      HOME: this.home,
      PATH: process.env["PATH"],
      XDG_STATE_HOME: join(this.home, "state"),
      XDG_CONFIG_HOME: join(this.home, "config"),
      ANTHROPIC_API_KEY: "sk-ant-test-0123456789abcdef",
      ANTHROPIC_BASE_URL: this.service.url,
      // A test that counts messages counts those of its own.
      GYRE_FACTS: "0",
      ...this.#variables,
    };
  }

  /** Puts another variable into the environment of what is started from now on. */
  set(name: string, value: string): void {
    this.#variables[name] = value;
  }

  start(program: FrameProgram, values: Values = {}): FrameDriver {
    return new FrameDriver(this, program, values);
  }
}

/** A program and the client that drives it. */
export class FrameDriver {
  readonly frames: Envelope[] = [];
  stdout = "";
  stderr = "";
  readonly code: Promise<number>;
  readonly stdin = new PassThrough();
  readonly #controller = new AbortController();
  readonly #seq = new Map<string, number>();
  #read = 0;
  #made = 0;
  #wake: () => void = () => {};

  constructor(world: FrameWorld, program: FrameProgram, values: Values) {
    this.code = program(
      { cwd: world.cwd, sandbox: "none", ...values },
      {
        stdin: this.stdin,
        stdout: { write: (text) => this.#take(text) },
        stderr: { write: (text) => (this.stderr += text) },
        env: world.env,
        cwd: world.home,
        signal: this.#controller.signal,
      },
    );
    this.code.catch(() => {});
  }

  interrupt(): void {
    this.#controller.abort();
  }

  hello(): Promise<Envelope> {
    return this.ask("hello", { versions: [1] });
  }

  async ask(type: string, payload: Payload = {}, stream?: string): Promise<Envelope> {
    const id = `m_${++this.#made}`;
    const seq = stream === undefined ? undefined : (this.#seq.get(stream) ?? 0) + 1;
    if (stream !== undefined && seq !== undefined) this.#seq.set(stream, seq);
    this.stdin.write(`${JSON.stringify({ v: 1, type, id, stream, seq, payload })}\n`);
    return this.next(({ re }) => re === id);
  }

  async create(options: Payload = {}): Promise<string> {
    await this.hello();
    return String((await this.ask("session_create", options)).payload["session"]);
  }

  /** Attaches to a session, which starts its numbers again, and returns its snapshot. */
  async attach(stream: string): Promise<Payload> {
    const from = this.frames.length;
    this.forget(stream);
    const answer = await this.ask("session_attach", {}, stream);
    if (answer.type !== "ack") throw new Error(JSON.stringify(answer.payload));
    return (await this.next(({ type }) => type === "snapshot", from)).payload;
  }

  /** The last frame on a stream has used no number. */
  skip(stream: string): void {
    this.#seq.set(stream, (this.#seq.get(stream) ?? 1) - 1);
  }

  /** A stream of that name counts from 1 again. */
  forget(stream: string): void {
    this.#seq.delete(stream);
  }

  async next(until: (frame: Envelope) => boolean, from = 0): Promise<Envelope> {
    for (;;) {
      const found = this.frames.slice(from).find(until);
      if (found) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Runs on a prompt to its end. */
  async run(text: string, stream: string): Promise<Envelope> {
    const from = this.frames.length;
    const { type: answer } = await this.ask("prompt", { text }, stream);
    if (answer !== "ack") throw new Error(`The prompt got ${answer}.`);
    return this.next(({ type }) => type === "agent_end", from);
  }

  /** Ends the program by the end of its input. */
  async end(): Promise<number> {
    this.stdin.end();
    return this.code;
  }

  /** The lines of the file of a session. */
  async entries(id: string): Promise<Record<string, unknown>[]> {
    const { payload } = await this.next(({ payload: { session } }) => session === id);
    const text = await readFile(String(payload["file"]), "utf8");
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  }

  #take(text: string): void {
    this.stdout += text;
    for (let at = this.stdout.indexOf("\n", this.#read); at >= 0;) {
      // Whatever is no frame throws here.
      this.frames.push(decode(this.stdout.slice(this.#read, at)));
      this.#read = at + 1;
      at = this.stdout.indexOf("\n", this.#read);
    }
    this.#wake();
  }
}
