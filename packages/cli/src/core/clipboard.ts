import { spawn } from "node:child_process";
import type { Environment } from "@gyre/coding/internal/core/environment";

/** Terminals take no longer text than about this, in base64. */
export const MAX_SEQUENCE_CHARS = 100_000;
/** A program that has not taken the text by then is killed. */
const MAX_WAIT_MS = 2_000;

/** A program that takes a text for the clipboard. */
export interface ClipboardProgram {
  command: string;
  args: readonly string[];
  encoding: "utf8" | "utf16le";
}

/** Gives a program its input; true where it ended well. Never rejects. */
export type RunClipboard = (program: ClipboardProgram, text: string) => Promise<boolean>;

export interface ClipboardParts {
  env: Environment;
  platform: NodeJS.Platform;
  /** Writes what the terminal obeys; false where it gets no such thing. */
  control: (sequence: string) => boolean;
  run?: RunClipboard;
}

/** What was given the text: the terminal, which does not answer whether it took it, or a program. */
export interface Copied {
  terminal: boolean;
  program?: string;
}

/**
 * Puts a text on the clipboard, by the terminal and by a program where there is one: the
 * terminal reaches the user's own machine from a remote one, and the program works where the
 * terminal does not allow it.
 */
export async function copyText(text: string, parts: ClipboardParts): Promise<Copied> {
  const { control, env, platform } = parts;
  const run = parts.run ?? programRunner(env);
  const sequence = clipboardSequence(text, env);
  const terminal = sequence !== undefined && control(sequence);
  for (const program of clipboardPrograms(env, platform)) {
    if (await run(program, text)) {
      return { terminal, program: program.command };
    }
  }
  return { terminal };
}

/** What a terminal obeys by putting the text on the clipboard; nothing for one that is too long. */
export function clipboardSequence(text: string, env: Environment): string | undefined {
  const data = Buffer.from(text).toString("base64");
  if (data.length > MAX_SEQUENCE_CHARS) return undefined;
  const plain = `\x1b]52;c;${data}\x07`;
  if (!env["TMUX"]) return plain;
  // tmux takes the first where it keeps clipboards, and hands the second on where it may.
  return `${plain}\x1bPtmux;${plain.replaceAll("\x1b", "\x1b\x1b")}\x1b\\`;
}

/** Programs to try, in this order. */
export function clipboardPrograms(
  env: Environment,
  platform: NodeJS.Platform,
): readonly ClipboardProgram[] {
  if (platform === "darwin") return [of("pbcopy")];
  if (platform === "win32") return [WINDOWS];
  return [
    ...(env["WAYLAND_DISPLAY"] ? [of("wl-copy")] : []),
    ...(env["DISPLAY"]
      ? [of("xclip", "-selection", "clipboard"), of("xsel", "--clipboard", "--input")]
      : []),
    ...(env["WSL_DISTRO_NAME"] ? [WINDOWS] : []),
  ];
}

/** It takes letters beyond ASCII in this encoding alone. */
const WINDOWS: ClipboardProgram = { command: "clip.exe", args: [], encoding: "utf16le" };

function of(command: string, ...args: readonly string[]): ClipboardProgram {
  return { command, args, encoding: "utf8" };
}

/** Some of them stay to serve the text: it is over when the first process ends. */
function programRunner(env: Environment): RunClipboard {
  return ({ command, args, encoding }, text) =>
    new Promise((resolve) => {
      const child = spawn(command, args, {
        env,
        stdio: ["pipe", "ignore", "ignore"],
        timeout: MAX_WAIT_MS,
      });
      child.once("error", () => resolve(false));
      child.once("exit", (code) => resolve(code === 0));
      // The exit code reports a program that ends without reading.
      child.stdin.on("error", () => {});
      child.stdin.end(Buffer.from(text, encoding));
    });
}
