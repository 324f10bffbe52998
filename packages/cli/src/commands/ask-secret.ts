import { EXIT, ExitError } from "../core/exit-codes.ts";
import type { Io, Sink } from "../core/io.ts";

/** More than any key has. */
const MAX_SECRET_BYTES = 65_536;

const ESCAPE = "\x1b";
const CTRL_C = "\x03";
const CTRL_D = "\x04";
const CTRL_U = "\x15";
const ENTER = ["\r", "\n"];
const ERASE = ["\x7f", "\b"];
/** What arrow keys and the marks around a pasted text send. */
const KEY_SEQUENCE = new RegExp(`${ESCAPE}(?:\\[[0-?]*[ -/]*[@-~]|O.)`, "g");

/** A terminal whose echo can be switched off. */
interface KeySource extends NodeJS.ReadableStream {
  setRawMode(on: boolean): unknown;
}

/**
 * A secret from standard input: what is piped in, or what is typed, which is not shown.
 * Rejects with `ExitError`: `interrupted` after Ctrl-C, or once `io.signal` has fired.
 */
export async function readSecret(
  io: Pick<Io, "stdin" | "stderr" | "signal">,
  question: string,
): Promise<string> {
  const { signal, stderr, stdin } = io;
  if (!stdin.isTTY) return readPiped(stdin, signal);
  if (!isKeySource(stdin)) {
    throw new ExitError(EXIT.failed, "This terminal cannot hide what is typed: pipe the key in.");
  }
  return readTyped(stdin, stderr, signal, question);
}

function isKeySource(stdin: NodeJS.ReadableStream): stdin is KeySource {
  return "setRawMode" in stdin && typeof stdin.setRawMode === "function";
}

async function readPiped(stdin: NodeJS.ReadableStream, signal: AbortSignal): Promise<string> {
  const interrupt = interruption(signal);
  try {
    return await Promise.race([collect(stdin), interrupt.fired]);
  } finally {
    interrupt.forget();
    // A program that still writes into the pipe is not waited for.
    if ("destroy" in stdin && typeof stdin.destroy === "function") stdin.destroy();
  }
}

async function collect(stdin: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  stdin.setEncoding("utf8");
  for await (const piece of stdin) {
    text += String(piece);
    if (text.length > MAX_SECRET_BYTES) {
      throw new ExitError(EXIT.failed, "What was piped in is too long for a key.");
    }
  }
  return text.trim();
}

/** Rejects when the signal fires. */
function interruption(signal: AbortSignal): { fired: Promise<never>; forget(): void } {
  let forget = (): void => {};
  const fired = new Promise<never>((_settle, reject) => {
    const onAbort = (): void => reject(interrupted());
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    forget = () => signal.removeEventListener("abort", onAbort);
  });
  return { fired, forget };
}

function interrupted(): ExitError {
  return new ExitError(EXIT.interrupted, "Interrupted: nothing was stored.");
}

async function readTyped(
  stdin: KeySource,
  stderr: Sink,
  signal: AbortSignal,
  question: string,
): Promise<string> {
  const interrupt = interruption(signal);
  let onKeys = (_typed: string | Buffer): void => {};
  const typed = new Promise<string>((settle, reject) => {
    let text = "";
    onKeys = (piece) => {
      for (const key of String(piece).replace(KEY_SEQUENCE, "")) {
        if (ENTER.includes(key)) settle(text);
        else if (key === CTRL_C) reject(interrupted());
        else if (key === CTRL_D && text === "") reject(interrupted());
        else if (key === CTRL_U) text = "";
        else if (ERASE.includes(key)) text = text.slice(0, -1);
        else if (key >= " " && text.length < MAX_SECRET_BYTES) text += key;
      }
    };
  });
  stderr.write(question);
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  stdin.on("data", onKeys);
  stdin.resume();
  try {
    return (await Promise.race([typed, interrupt.fired])).trim();
  } finally {
    interrupt.forget();
    stdin.off("data", onKeys);
    stdin.pause();
    stdin.setRawMode(false);
    stderr.write("\n");
  }
}
