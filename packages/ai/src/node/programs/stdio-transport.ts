import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { type Framing, LINES, type MessageReader } from "./framing.ts";
import { withoutInherited } from "./inherited-handles.ts";
import { newRunId, processInfo, ProcessTree, RUN_VARIABLE, runMark } from "./process-tree.ts";
import { noteRun, type RunNote } from "./run-notes.ts";
import { unwatch, watch } from "./running-trees.ts";

/** Of one message; a server that sends more is ended. */
export const MAX_MESSAGE_BYTES: number = 16 * 1024 * 1024;
/** Messages that a server has not read; one that asks and does not listen is ended. */
const MAX_UNREAD = 1_000;
/** A server that is asked to end by the end of its input has this long. */
const END_GRACE_MS = 500;
/** Its output is read to the end for this long after it has exited. */
const READ_GRACE_MS = 100;

export interface StdioProgram<Message> {
  command: string;
  args: readonly string[];
  /** All of it. */
  env: Readonly<Record<string, string>>;
  cwd: string;
  /** A folder (0700) for notes of what runs, by which it is ended after a crash of ours. */
  notesFolder?: string;
  /** Gets what it writes to its standard error. */
  onStderr: (text: string) => void;
  /** Makes a message of a JSON value, or throws. */
  parse: (value: unknown) => Message;
  /** Default: a line a message. */
  framing?: Framing;
}

/**
 * A server as a process that sends and gets JSON messages. It leads a process group of its own, and nothing
 * that it started is left when this is closed, when it exits, or when we exit.
 */
export class StdioTransport<Message> {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: Message) => void;
  readonly #program: StdioProgram<Message>;
  readonly #framing: Framing;
  readonly #reader: MessageReader;
  #child: ChildProcess | undefined;
  #tree: ProcessTree | undefined;
  #note: RunNote | undefined;
  #exited: Promise<void> = Promise.resolve();
  /** Its output came to an end. */
  #read: Promise<unknown> = Promise.resolve();
  #ended: string | undefined;
  #ending: Promise<void> | undefined;
  #isTooLong = false;
  #unread = 0;

  constructor(program: StdioProgram<Message>) {
    this.#program = program;
    this.#framing = program.framing ?? LINES;
    this.#reader = this.#framing.createReader(MAX_MESSAGE_BYTES, (text) => this.#take(text));
  }

  /** How it ended, as the end of a sentence; nothing as long as it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  start(): Promise<void> {
    const { command, args, env, cwd, notesFolder } = this.#program;
    const id = newRunId();
    this.#note = notesFolder === undefined ? undefined : noteRun(notesFolder, id);
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        this.#note?.remove();
        this.#ended ??= "could not be started";
        reject(startError(this.#program, error));
      };
      let child: ChildProcess;
      try {
        child = withoutInherited((further) =>
          spawn(command, [...args], {
            cwd,
            env: { ...env, [RUN_VARIABLE]: runMark(id) },
            detached: process.platform !== "win32",
            stdio: ["pipe", "pipe", "pipe", ...further],
            windowsHide: true,
          }),
        );
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      this.#child = child;
      child.once("error", fail);
      const { pid } = child;
      if (pid === undefined) return;
      const start = processInfo(pid)?.start;
      if (start !== undefined) this.#note?.started(pid, start);
      const tree = new ProcessTree({
        id,
        pid,
        ...(start !== undefined && { start }),
        isWatched: true,
      });
      this.#tree = tree;
      watch(tree);
      this.#exited = new Promise((exited) => {
        child.once("exit", (code, signal) => {
          this.#ended ??= signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
          exited();
          // Not "close": a helper that keeps the pipes must not keep us waiting.
          void this.close();
        });
      });
      this.#listen(child);
      child.once("spawn", resolve);
    });
  }

  send(message: Message): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin || this.#ended !== undefined || this.#ending) {
      return Promise.reject(new Error(`The server ${this.#ended ?? "is being ended"}.`));
    }
    if (this.#unread >= MAX_UNREAD) {
      this.#ended = "did not read what it was sent, and was ended";
      void this.close();
      return Promise.reject(new Error(`The server ${this.#ended}.`));
    }
    this.#unread++;
    return new Promise((resolve, reject) => {
      stdin.write(this.#framing.wrap(JSON.stringify(message)), (error) => {
        this.#unread--;
        if (error) reject(error);
        else resolve();
      });
    });
  }

  /** Ends it and all that it started. Further calls give the same answer. */
  close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    const tree = this.#tree;
    if (child && tree) {
      child.stdin?.end();
      if (this.#ended === undefined) {
        await within(this.#exited, END_GRACE_MS);
        this.#ended ??= "was ended";
      }
      const left = await tree.end();
      unwatch(tree);
      if (left.length === 0) this.#note?.remove();
      // What it said last, and is still on its way.
      if (!this.#isTooLong) await within(this.#read, READ_GRACE_MS);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    }
    this.onclose?.();
  }

  #listen(child: ChildProcess): void {
    const report = (error: Error): void => this.onerror?.(error);
    child.stdin?.on("error", report);
    child.stdout?.on("error", report);
    child.stderr?.on("error", report);
    child.stdout?.on("data", (bytes: Buffer) => this.#feed(bytes));
    const outputs = [child.stdout, child.stderr].filter((stream) => stream !== null);
    this.#read = Promise.all(
      outputs.map((stream) => new Promise((read) => stream.once("close", read))),
    );
    const decoder = new StringDecoder("utf8");
    child.stderr?.on("data", (bytes: Buffer) => this.#program.onStderr(decoder.write(bytes)));
  }

  #feed(bytes: Buffer): void {
    if (this.#isTooLong || this.#reader.feed(bytes)) return;
    this.#isTooLong = true;
    this.#ended ??= `sent a message of more than ${MAX_MESSAGE_BYTES} bytes, and was ended`;
    void this.close();
  }

  #take(line: string): void {
    let message: Message;
    try {
      message = this.#program.parse(JSON.parse(line));
    } catch {
      // Many a server says hello there; it is for the log.
      this.#program.onStderr(`(on standard output) ${line}\n`);
      return;
    }
    this.onmessage?.(message);
  }
}

function startError({ command, cwd }: StdioProgram<unknown>, error: Error): Error {
  const code = "code" in error ? error.code : undefined;
  let reason = error.message;
  if (!existsSync(cwd)) reason = `its working folder ${cwd} is not there.`;
  else if (code === "ENOENT") reason = "there is no such program on the PATH.";
  else if (code === "EACCES") reason = "it may not be executed.";
  return new Error(`Cannot start ${command}: ${reason}`, { cause: error });
}

function within(promise: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
