import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type RunInfo, type ToolInvocation, toResult } from "@gyre/agent";
import { createSession, type Session } from "@gyre/sessions";
import { type Access, type GuardedTool, openWorkspace, type Workspace } from "@gyre/tools";
import { findPresentation } from "../core/presentations.ts";
import { FileRecorder, type RecorderOptions } from "../file-history/recorder.ts";

export const RUN: RunInfo = {
  fallbacks: [],
  sessionId: "test",
  model: { id: "none", name: "none", api: "none", provider: "none" },
};

/** A folder with a session and a history of its files, and an agent that is played by a test. */
export interface HistoryWorld {
  /** The folder that is worked in. */
  root: string;
  /** Where histories are kept. */
  folder: string;
  session: Session;
  workspace: Workspace;
  recorder: FileRecorder;
  warnings: string[];
  /** Set by a test: whether a job is taken to run. */
  jobs: { areRunning: boolean };
  /** A prompt and all that is done for it. Gives the entry of the prompt. */
  run(work: () => Promise<unknown>, text?: string): Promise<number>;
  /** A call of a tool that may do anything; `command`: what it says that it runs. */
  shell(work: () => Promise<unknown>, command?: string): Promise<void>;
  /** A call of a tool that says which files it changes. */
  edit(paths: readonly string[], work: () => Promise<unknown>): Promise<void>;
  /** A call of a real tool. */
  use(tool: GuardedTool, args: Record<string, unknown>): Promise<void>;
  /** A call of a tool that says that it only reads. */
  read(work: () => Promise<unknown>): Promise<void>;
  /** Writes a file, folders included. */
  put(path: string, content: string | Uint8Array, mode?: number): Promise<void>;
  path(...names: string[]): string;
  /** All that is in the folder: contents and modes of files, targets of links, by path. */
  files(): Promise<Record<string, string>>;
  /** The same history, opened again by another process. */
  reopened(more?: Partial<RecorderOptions>): FileRecorder;
  close(): Promise<void>;
}

export interface HistoryWorldOptions extends Omit<Partial<RecorderOptions>, "workspace"> {
  /** Gives the workspace that the recorder sees. */
  workspace?: (own: Workspace) => Workspace;
}

export async function historyWorld({
  workspace: toWorkspace,
  ...more
}: HistoryWorldOptions = {}): Promise<HistoryWorld> {
  const base = await mkdtemp(join(tmpdir(), "gyre-history-"));
  const root = join(base, "work");
  const folder = join(base, "files");
  await mkdir(root);
  const session = await createSession(join(base, "session.jsonl"), { cwd: root });
  const workspace = await openWorkspace(root);
  const warnings: string[] = [];
  const jobs = { areRunning: false };
  const recorders: FileRecorder[] = [];
  const reopened = (again: Partial<RecorderOptions> = {}): FileRecorder => {
    const recorder = new FileRecorder({
      workspace,
      session: () => session,
      isJobRunning: () => jobs.areRunning,
      folder,
      warn: (text) => warnings.push(text),
      // On a busy machine as well, no command comes before the first look has ended.
      maxFirstWaitMs: 60_000,
      ...again,
    });
    recorders.push(recorder);
    return recorder;
  };
  const recorder = reopened({
    ...more,
    ...(toWorkspace && { workspace: toWorkspace(workspace) }),
  });
  const call = async (
    name: string,
    access: Access | undefined,
    work: () => Promise<unknown>,
  ): Promise<void> => {
    await recorder.middleware.tool?.(invocation(name, access), async () => {
      await work();
      return { content: [] };
    });
  };
  return {
    root,
    folder,
    session,
    workspace,
    recorder,
    warnings,
    jobs,
    reopened,
    async run(work, text = "Do it.") {
      const end = recorder.middleware.run?.(RUN);
      const message = { role: "user", content: text, timestamp: Date.now() } as const;
      const { id } = await session.append({ type: "message", message });
      await work();
      end?.(undefined);
      await recorder.lines();
      return id;
    },
    shell: (work, command) =>
      call(
        "shell",
        { kind: "run", targets: command === undefined ? [] : [command], summary: "" },
        work,
      ),
    edit: (paths, work) => call("edit", { kind: "write", targets: paths, summary: "" }, work),
    async use(tool, args) {
      const given = { ...invocation(tool.name, undefined), tool, args };
      await recorder.middleware.tool?.(given, async () => {
        const result = await tool.execute(args, {
          id: "call",
          signal: given.signal,
          update: () => {},
          host: { call: () => Promise.reject(new Error("The tool calls no other.")) },
          messages: [],
        });
        return toResult(tool.name, result);
      });
    },
    read: (work) => call("read", { kind: "read", targets: [], summary: "" }, work),
    async put(path, content, mode) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content, mode === undefined ? {} : { mode });
    },
    path: (...names) => join(root, ...names),
    files: () => filesIn(root),
    async close() {
      for (const one of recorders) await one.close();
      await workspace.close();
      await session.close();
      await rm(base, { recursive: true, force: true });
    },
  };
}

function invocation(name: string, access: Access | undefined): ToolInvocation {
  // Given the paths that its access names: the calls here have no arguments.
  const described = findPresentation(name);
  const isChange = described?.kind === "edit";
  const presentation = isChange
    ? { ...described, effects: () => ({ changes: access?.targets ?? [] }) }
    : described;
  const tool: GuardedTool = {
    name,
    description: "",
    parameters: { type: "object" },
    ...(presentation && { presentation }),
    execute: () => "",
    access: () => access ?? { kind: "run", targets: [], summary: "" },
  };
  return {
    toolCall: { type: "toolCall", id: "call", name, arguments: {} },
    tool,
    args: {},
    signal: new AbortController().signal,
    run: RUN,
  };
}

async function filesIn(root: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const entries = await readdir(root, { withFileTypes: true, recursive: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (entry.isSymbolicLink()) found[name] = `-> ${await readlink(path)}`;
    else if (entry.isFile()) {
      const mode = ((await stat(path)).mode & 0o777).toString(8);
      found[name] = `${mode} ${(await readFile(path)).toString("latin1")}`;
    }
  }
  return found;
}
