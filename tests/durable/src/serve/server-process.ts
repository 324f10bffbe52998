import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Transport } from "@gyre/protocol";
import { connectWebSocket } from "@gyre/protocol/node";

const BUNDLER = "scripts/release/bundle-cli.mjs";
const ROOT = findRoot(dirname(fileURLToPath(import.meta.url)));
const MAX_REPORT_BYTES = 16_000_000;

/** Both the source of this file and what is built from it are somewhere below it. */
function findRoot(folder: string): string {
  return existsSync(join(folder, BUNDLER)) ? folder : findRoot(dirname(folder));
}

/** The program, made from the sources as they are now. */
export interface Program {
  readonly folder: string;
  readonly entry: string;
  remove(): void;
}

export async function buildProgram(): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), "gyre-serve-"));
  const into = join(folder, "bundle");
  const script = join(ROOT, BUNDLER);
  const args = [script, "--sources", "--json", "--into", into];
  await promisify(execFile)(process.execPath, args, { maxBuffer: MAX_REPORT_BYTES });
  copyFileSync(join(ROOT, "packages/cli/package.json"), join(folder, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
  for (const name of ["work", "tmp"]) mkdirSync(join(folder, name));
  return {
    folder,
    entry: join(into, "gyre.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A real `gyre serve`. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #token: string;
  isAlive = true;

  private constructor(child: ChildProcess, port: number, token: string) {
    this.#child = child;
    this.#port = port;
    this.#token = token;
    child.once("exit", () => (this.isAlive = false));
  }

  static async start(
    program: Program,
    options: { url: string; service: string; mode: string },
  ): Promise<ServerProcess> {
    const { folder, entry } = program;
    const args = ["serve", "--port", "0", "--database", options.url, "--sandbox", "none"];
    const child = spawn(
      process.execPath,
      [entry, ...args, "--allow-unsandboxed", "--mode", options.mode, "--quiet", "--drain", "3"],
      {
        cwd: join(folder, "work"),
        env: {
          PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
          ...{ HOME: folder, TMPDIR: join(folder, "tmp"), LANG: "C.UTF-8" },
          ...{
            ANTHROPIC_API_KEY: "sk-ant-test-0123456789abcdef",
            ANTHROPIC_BASE_URL: options.service,
          },
        },
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    let stdout = "";
    for await (const chunk of child.stdout) {
      stdout += String(chunk);
      if (stdout.includes("The token is in ")) break;
    }
    const [, port] = /^Serving at http:\/\/[^:]+:(\d+)$/m.exec(stdout) ?? [];
    const [, file] = /^The token is in (.+)$/m.exec(stdout) ?? [];
    if (port === undefined || file === undefined) throw new Error(`gyre serve: ${stdout}`);
    return new ServerProcess(child, Number(port), readFileSync(file, "utf8").trim());
  }

  connect(signal: AbortSignal): Promise<Transport> {
    const url = `ws://127.0.0.1:${this.#port}/api/ws`;
    return connectWebSocket(url, { token: this.#token, signal });
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (!this.isAlive) return;
    this.#child.kill(signal);
    await once(this.#child, "exit");
  }
}
