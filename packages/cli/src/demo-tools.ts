import { spawn, spawnSync } from "node:child_process";
import { readdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { type AgentTool, type AgentToolResult, defineTool } from "@gyre/agent";
import { nearNames } from "@gyre/ai";
import type { DiffLine, ToolView } from "./render.ts";

/** A file that is longer is not read. */
export const MAX_READ_BYTES: number = 64 * 1024;
/** Of what a command writes, the end is kept. */
export const MAX_OUTPUT_CHARS: number = 32 * 1024;
export const SHELL_TIMEOUT_MS = 30_000;
/** For pipes that a process outside of the group holds open after the command ended. */
const CLOSE_GRACE_MS = 100;

/** Set by a test runner or a person for this process, and wrong for the one that is started. */
const NOT_HANDED_DOWN = ["NODE_TEST_CONTEXT", "NODE_OPTIONS", "NODE_V8_COVERAGE", "FORCE_COLOR"];

/** The tools of the demo: small and real. `folder` is where they work; it must exist. */
export function demoTools(folder: string): AgentTool[] {
  return [readTool(folder), editTool(folder), shellTool(folder)];
}

/** Reads a file, or lists a folder. Paths that lead out of `folder` are refused. */
export function readTool(folder: string): AgentTool {
  return defineTool({
    name: "read",
    description: "Read a text file, or list the files of a folder.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "Relative to the project" } },
      required: ["path"],
    },
    concurrent: true,
    idempotent: true,
    async execute(_id, { path }) {
      const place = await placeInside(folder, path);
      const { isDirectory, size } = await kindOf(place);
      if (isDirectory) {
        const names = (await readdir(place)).sort();
        return result(names.join("\n"), { type: "summary", text: names.join("  ") });
      }
      if (size > MAX_READ_BYTES) {
        throw new Error(`${path} has ${size} bytes; at most ${MAX_READ_BYTES} are read.`);
      }
      const text = await readFile(place, "utf8");
      return result(text, { type: "summary", text: `${linesOf(text).length} lines` });
    },
  });
}

/** Replaces the one place in a file that has a text. Paths that lead out of `folder` are refused. */
export function editTool(folder: string): AgentTool {
  return defineTool({
    name: "edit",
    description: "Replace a text that occurs exactly once in a file.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "Relative to the project" },
        oldText: { type: "string", minLength: 1 },
        newText: { type: "string" },
      },
      required: ["path", "oldText", "newText"],
    },
    async execute(_id, { path, oldText, newText }) {
      const place = await placeInside(folder, path);
      const before = await readFile(place, "utf8");
      const at = before.indexOf(oldText);
      if (at === -1) throw new Error(`${path} does not contain oldText. Read it and try again.`);
      if (before.indexOf(oldText, at + 1) !== -1) {
        throw new Error(
          `oldText occurs more than once in ${path}. Give more of what is around it.`,
        );
      }
      await writeFile(place, before.slice(0, at) + newText + before.slice(at + oldText.length));
      const lines = diffOf(oldText, newText);
      return result(`Edited ${path}.`, { type: "diff", lines });
    },
  });
}

/**
 * Runs a command in `folder`, in a process group of its own that does not outlive the
 * call: not its end, a time-out, an abort, nor the end of this process. It is started
 * there, not locked in. A command that does not succeed gives an error result.
 */
export function shellTool(folder: string, timeoutMs: number = SHELL_TIMEOUT_MS): AgentTool {
  return defineTool({
    name: "shell",
    description: "Run a command in the project's folder.",
    parameters: {
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
    },
    execute: (_id, { command }, signal, onUpdate) =>
      runCommand(command, { folder, timeoutMs, signal, onUpdate }),
  });
}

interface CommandOptions {
  folder: string;
  timeoutMs: number;
  signal: AbortSignal;
  onUpdate: (partial: AgentToolResult) => void;
}

function runCommand(command: string, options: CommandOptions): Promise<AgentToolResult> {
  const { folder, timeoutMs, signal, onUpdate } = options;
  return new Promise((settle, reject) => {
    signal.throwIfAborted();
    const child = spawn(command, {
      cwd: folder,
      env: environment(),
      shell: true,
      detached: process.platform !== "win32",
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let left = 0;
    let ending: string | undefined;

    const collect = (stream: NodeJS.ReadableStream): void => {
      const decoder = new StringDecoder("utf8");
      stream.on("data", (bytes: Buffer) => {
        output += decoder.write(bytes);
        if (output.length > MAX_OUTPUT_CHARS) {
          left += output.length - MAX_OUTPUT_CHARS;
          output = output.slice(-MAX_OUTPUT_CHARS);
        }
        onUpdate(result(output, { type: "output", text: output }));
      });
      stream.on("end", () => (output += decoder.end()));
    };
    collect(child.stdout);
    collect(child.stderr);

    const killGroup = (): void => endGroup(child.pid);
    const stop = (why: string): void => {
      ending ??= why;
      killGroup();
    };
    const abort = (): void => stop("was aborted");
    const timer = setTimeout(
      () => stop(`took longer than ${timeoutMs} ms and was ended`),
      timeoutMs,
    );
    signal.addEventListener("abort", abort, { once: true });
    process.once("exit", killGroup);
    const release = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      process.removeListener("exit", killGroup);
    };

    child.once("error", (error) => {
      release();
      reject(new Error(`The command could not be started: ${error.message}`, { cause: error }));
    });
    child.once("exit", () => {
      // What the command left running in its group goes with it.
      killGroup();
      setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, CLOSE_GRACE_MS).unref();
    });
    child.once("close", (code, killedBy) => {
      release();
      const fault = ending ?? (killedBy === null ? undefined : `was ended by ${killedBy}`);
      const exit = fault === undefined ? `exit code ${code}` : `The command ${fault}.`;
      const cut = left > 0 ? `(${left} characters left out)\n` : "";
      const said = output === "" || output.endsWith("\n") ? output : `${output}\n`;
      settle({
        ...result(`${cut}${said}${exit}`, { type: "output", text: output, exit }),
        isError: fault !== undefined || code !== 0,
      });
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  if (process.platform === "win32") {
    spawnSync("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore" });
    return;
  }
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // Nobody is left, or (on macOS) only those who have ended and were not yet noticed.
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/** `node` in a command is the Node that runs this, wherever it is installed. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => name.toUpperCase() !== "PATH" && !NOT_HANDED_DOWN.includes(name),
  );
  const path = [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  return { ...Object.fromEntries(kept), PATH: path, NO_COLOR: "1" };
}

function result(text: string, details: ToolView): AgentToolResult<ToolView> {
  return { content: [{ type: "text", text }], details };
}

/** Where a path leads, links followed. Throws if that is not inside, or not there. */
async function placeInside(folder: string, path: string): Promise<string> {
  const root = await realpath(folder);
  const wanted = resolve(root, path);
  // Told before it is looked at: whether something outside exists is nobody's business.
  if (!isInside(root, wanted)) throw outside(path);
  let place: string;
  try {
    place = await realpath(wanted);
  } catch (cause) {
    const names = await readdir(dirname(wanted)).catch(() => []);
    const near = nearNames(basename(wanted), names);
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw new Error(`There is no ${path} in the project.${hint}`, { cause });
  }
  if (!isInside(root, place)) throw outside(path);
  return place;
}

function isInside(root: string, place: string): boolean {
  const way = relative(root, place);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function outside(path: string): Error {
  return new Error(`${path} is outside the project's folder, and was not touched.`);
}

async function kindOf(place: string): Promise<{ isDirectory: boolean; size: number }> {
  const found = await stat(place);
  return { isDirectory: found.isDirectory(), size: found.size };
}

/** Removed and added lines, without the lines that both begin or end with. */
function diffOf(before: string, after: string): DiffLine[] {
  const old = linesOf(before);
  const fresh = linesOf(after);
  const shortest = Math.min(old.length, fresh.length);
  let start = 0;
  while (start < shortest && old[start] === fresh[start]) start++;
  let end = 0;
  while (end < shortest - start && old.at(-1 - end) === fresh.at(-1 - end)) end++;
  return [
    ...old.slice(start, old.length - end).map((text) => ({ sign: "-", text }) as const),
    ...fresh.slice(start, fresh.length - end).map((text) => ({ sign: "+", text }) as const),
  ];
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
