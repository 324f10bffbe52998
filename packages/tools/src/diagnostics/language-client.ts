import { pathToFileURL } from "node:url";
import type { Clock } from "@gyre/ai";
import { HEADERS, StdioTransport } from "@gyre/ai/programs";
import type { ProgramSpec } from "../sandbox/sandbox.ts";

/** A problem in a file. Lines and columns count from 1. */
export interface Problem {
  line: number;
  column: number;
  message: string;
  /** The rule's name or number. */
  code?: string;
}

/** A file as it is now. */
export interface Document {
  /** Absolute. */
  path: string;
  /** As the protocol names it: "typescript". */
  language: string;
  text: string;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { message?: unknown };
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const ERROR_SEVERITY = 1;
const METHOD_NOT_FOUND = -32_601;
/** A server that reports by itself may do so in parts: the last one counts, after such a silence. */
const QUIET_MS = 300;
/** Files that are open in the server; the one that was not used for the longest is closed. */
const MAX_OPEN = 20;

/**
 * A language server, as far as it is needed to find the errors in a file: it is started, gets the
 * text of files, and is asked for their errors, or reports them by itself.
 */
export class LanguageClient {
  readonly #transport: StdioTransport<Message>;
  readonly #root: string;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  /** Versions of open files by address, the last one used at the end. */
  readonly #open = new Map<string, number>();
  readonly #listeners = new Map<
    string,
    (problems: Problem[], version: number | undefined) => void
  >();
  #lastId = 0;
  #isAsked = false;
  #started: Promise<void> | undefined;
  /** Aborted when the server has ended. */
  readonly #gone = new AbortController();

  constructor(program: ProgramSpec, root: string, clock: Clock) {
    const [command = "", ...args] = program.argv;
    this.#root = root;
    this.#clock = clock;
    this.#transport = new StdioTransport<Message>({
      ...{ command, args, cwd: program.cwd, env: program.env, framing: HEADERS },
      onStderr: () => {},
      parse: (value) => {
        if (typeof value === "object" && value !== null) return value;
        throw new TypeError("not a message");
      },
    });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
    this.#transport.onmessage = (message) => this.#take(message);
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
    this.#transport.onclose = () => this.#gone.abort(this.#describeEnd());
  }

  /** The errors in a file as it is now. Rejects where the server ended, or the signal aborts. */
  async check(document: Document, until: AbortSignal): Promise<Problem[]> {
    const signal = AbortSignal.any([until, this.#gone.signal]);
    this.#started ??= this.#start();
    await abortable(this.#started, signal);
    const uri = pathToFileURL(document.path).href;
    if (this.#isAsked) {
      await this.#sync(uri, document);
      const report = await abortable(
        this.#request("textDocument/diagnostic", { textDocument: { uri } }),
        signal,
      );
      return readProblems(report, "items");
    }
    return abortable(this.#listen(uri, document, signal), signal);
  }

  async close(): Promise<void> {
    if (this.#started && this.#transport.ended === undefined) {
      // It is ended anyway: by the end of its input, and then by force.
      this.#notify("exit").catch(() => {});
    }
    await this.#transport.close();
  }

  async #start(): Promise<void> {
    await this.#transport.start();
    const uri = pathToFileURL(this.#root).href;
    const answer = await this.#request("initialize", {
      processId: null,
      clientInfo: { name: "gyre" },
      rootUri: uri,
      workspaceFolders: [{ uri, name: "workspace" }],
      capabilities: {
        general: { positionEncodings: ["utf-16"] },
        textDocument: {
          synchronization: { didSave: true },
          publishDiagnostics: { versionSupport: true },
          diagnostic: { dynamicRegistration: false },
        },
        workspace: { configuration: true, workspaceFolders: true },
      },
    });
    this.#isAsked =
      readField(readField(answer, "capabilities"), "diagnosticProvider") !== undefined;
    await this.#notify("initialized", {});
    // Some look at nothing before they have settings.
    await this.#notify("workspace/didChangeConfiguration", { settings: {} });
  }

  /** Gives the server the text of a file. */
  async #sync(uri: string, { language, text }: Document): Promise<number> {
    const known = this.#open.get(uri);
    const version = (known ?? 0) + 1;
    this.#open.delete(uri);
    this.#open.set(uri, version);
    if (known === undefined) {
      const [oldest] = this.#open.keys();
      if (this.#open.size > MAX_OPEN && oldest !== undefined) {
        this.#open.delete(oldest);
        await this.#notify("textDocument/didClose", { textDocument: { uri: oldest } });
      }
      const textDocument = { uri, languageId: language, version, text };
      await this.#notify("textDocument/didOpen", { textDocument });
    } else {
      const textDocument = { uri, version };
      await this.#notify("textDocument/didChange", { textDocument, contentChanges: [{ text }] });
    }
    await this.#notify("textDocument/didSave", { textDocument: { uri } });
    return version;
  }

  /** What the server reports of a file by itself, when it has said nothing more for a while. */
  async #listen(uri: string, document: Document, signal: AbortSignal): Promise<Problem[]> {
    const reports: Problem[][] = [];
    let reported = (): void => {};
    const wanted = (this.#open.get(uri) ?? 0) + 1;
    this.#listeners.set(uri, (problems, version) => {
      if (version !== undefined && version < wanted) return;
      reports.push(problems);
      reported();
    });
    try {
      await this.#sync(uri, document);
      while (reports.length === 0) await new Promise<void>((resolve) => (reported = resolve));
      let count = 0;
      while (count < reports.length && !signal.aborted) {
        count = reports.length;
        await new Promise<void>((resolve) => void this.#clock.after(QUIET_MS, resolve));
      }
      return reports.at(-1) ?? [];
    } finally {
      this.#listeners.delete(uri);
    }
  }

  async #request(method: string, params: unknown): Promise<unknown> {
    const id = ++this.#lastId;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    try {
      await this.#send({ id, method, params });
      return await answer;
    } finally {
      this.#waiting.delete(id);
    }
  }

  #notify(method: string, params?: unknown): Promise<void> {
    return this.#send(params === undefined ? { method } : { method, params });
  }

  #send(message: Message): Promise<void> {
    return this.#transport.send({ ...{ jsonrpc: "2.0" }, ...message });
  }

  #take({ id, method, params, result, error }: Message): void {
    if (method === undefined) {
      const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined;
      if (error) waiting?.reject(new Error(String(error.message)));
      else waiting?.resolve(result);
      return;
    }
    if (id !== undefined) return this.#answer(id, method, params);
    if (method !== "textDocument/publishDiagnostics") return;
    const [uri, version] = [readField(params, "uri"), readField(params, "version")];
    const listener = this.#listeners.get(normalizeUri(uri));
    listener?.(
      readProblems(params, "diagnostics"),
      typeof version === "number" ? version : undefined,
    );
  }

  /** Servers ask their client, and some wait for the answer. */
  #answer(id: number | string, method: string, params: unknown): void {
    const items = readField(params, "items");
    const reply = {
      "workspace/configuration": Array.isArray(items) ? items.map(() => null) : [],
      "workspace/workspaceFolders": [{ uri: pathToFileURL(this.#root).href, name: "workspace" }],
      "client/registerCapability": null,
      "client/unregisterCapability": null,
      "window/workDoneProgress/create": null,
    }[method];
    const error = { code: METHOD_NOT_FOUND, message: `Not supported: ${method}` };
    const answer = reply === undefined ? { id, error } : { id, result: reply };
    // A server that has ended needs no answer.
    this.#send(answer).catch(() => {});
  }

  #describeEnd(): Error {
    return new Error(`The language server ${this.#transport.ended ?? "was ended"}.`);
  }
}

/** Servers may write an address in another way than they were given it. */
function normalizeUri(uri: unknown): string {
  try {
    return new URL(String(uri)).href;
  } catch {
    return "";
  }
}

function readField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** The errors of a report, which a program of others made. */
function readProblems(report: unknown, name: string): Problem[] {
  const items = readField(report, name);
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    // A server that leaves the severity out leaves it to the client: they are shown.
    const severity = readField(item, "severity") ?? ERROR_SEVERITY;
    const start = readField(readField(item, "range"), "start");
    const [line, column] = [readField(start, "line"), readField(start, "character")];
    const [message, code] = [readField(item, "message"), readField(item, "code")];
    if (severity !== ERROR_SEVERITY || typeof message !== "string") return [];
    if (typeof line !== "number" || typeof column !== "number") return [];
    const hasCode = typeof code === "string" || typeof code === "number";
    return [
      { line: line + 1, column: column + 1, message, ...(hasCode && { code: String(code) }) },
    ];
  });
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
