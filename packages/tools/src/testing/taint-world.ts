import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type AgentTool, DeniedError, type ToolInvocation } from "@gyre/agent";
import { fromSource } from "@gyre/ai/text";
import { type PermissionOptions, permissions } from "../permissions.ts";
import type { RuleList } from "../permissions/rules.ts";
import { Taint } from "../permissions/taint/taint.ts";
import { openToolset, type Toolset } from "../toolset.ts";

/** All that goes elsewhere is allowed by rules with wildcards: what is stopped, is stopped for its names. */
const BROAD: RuleList = {
  allow: [
    ...["shell(curl *)", "shell(wget *)", "shell(npm *)", "shell(pip *)", "shell(git *)"],
    ...["shell(ssh *)", "shell(cat *)", "shell(sh *)", "fetch", "git", "read(/**)"],
  ],
};

/** A repository with an agent's tools, and what is known of where names come from. */
export interface TaintWorld {
  readonly root: string;
  readonly taint: Taint;
  readonly toolset: Toolset;
  write(path: string, text: string, isOld?: boolean): void;
  git(...args: string[]): string;
  /** Nothing is known any more, but the commit that a session began with, and when. */
  forget(commit?: string, since?: number): void;
  /** A call that a model makes. */
  invocation(tool: AgentTool, args: Record<string, unknown>): ToolInvocation;
  /** "ran", or why not. A person says `answer`; without one there is none. */
  call(tool: string, args: Record<string, unknown>, options?: CallOptions): Promise<string>;
  /** The same for a command. */
  shell(command: string, options?: CallOptions): Promise<string>;
  close(): Promise<void>;
}

export interface CallOptions extends Pick<PermissionOptions, "mode" | "rules"> {
  answer?: boolean;
}

const DAY_S = 86_400;

/** `files` are tracked. Without git: a folder with these files. */
export async function taintWorld(
  files: Readonly<Record<string, string>> = {},
  { hasGit = true }: { hasGit?: boolean } = {},
): Promise<TaintWorld> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-taint-")));
  const root = join(base, "work");
  mkdirSync(root);
  const env = {
    PATH: process.env["PATH"],
    HOME: base,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "Ada",
    GIT_AUTHOR_EMAIL: "ada@example.org",
    GIT_COMMITTER_NAME: "Ada",
    GIT_COMMITTER_EMAIL: "ada@example.org",
  };
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: root, env, encoding: "utf8" });
  const write = (path: string, text: string, isOld = false): void => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const before = Date.now() / 1000 - DAY_S;
    if (isOld) utimesSync(file, before, before);
  };
  for (const [path, text] of Object.entries({ "README.md": "# Tea\n", ...files })) {
    write(path, text, true);
  }
  if (hasGit) {
    git("init", "-q", "-b", "main");
    git("add", "-A", "-f");
    git("commit", "-qm", "Begin");
  }
  const toolset = await openToolset({ root, sandbox: "none", stateFolder: join(base, "state") });
  const begin = (commit?: string, since: number = Date.now()): Taint =>
    new Taint({ env: toolset.env, since, home: base, commit });
  let taint = begin();
  let calls = 0;
  const invocation: TaintWorld["invocation"] = (tool, args) => ({
    toolCall: { type: "toolCall", id: `call-${++calls}`, name: tool.name, arguments: args },
    tool,
    args,
    signal: new AbortController().signal,
    run: {
      sessionId: undefined,
      model: { id: "m", name: "m", api: "a", provider: "p" },
      fallbacks: [],
    },
  });
  const call: TaintWorld["call"] = async (name, args, { answer, ...options } = {}) => {
    const guard = permissions({
      mode: "auto",
      rules: BROAD,
      sandboxed: true,
      workspace: toolset.env.workspace,
      doubt: (about) => taint.doubt(about),
      onDecision: ({ callId, effect, asked }) => taint.decide(callId, asked && effect === "allow"),
      ...(answer === undefined
        ? { headless: true }
        : {
            ask: async ({ fingerprint }) =>
              answer ? { allow: true, fingerprint } : { allow: false },
          }),
      ...options,
    });
    try {
      await guard.tool?.(invocation(toolset.registry.get(name), args), async () => ({
        content: [],
      }));
      return "ran";
    } catch (error) {
      if (!(error instanceof DeniedError)) throw error;
      return error.message;
    }
  };
  return {
    root,
    get taint() {
      return taint;
    },
    forget: (commit, since) => void (taint = begin(commit, since)),
    toolset,
    write,
    git,
    invocation,
    call,
    shell: (command, options) => call("shell", { command }, options),
    async close() {
      await toolset.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** The result of `fetch` for a page. */
export function addPage(taint: Taint, url: string, text: string): void {
  taint.addResult("fetch", { url }, [fromSource({ kind: "web", name: url }, text)]);
}

/** The result of `read` for a file. */
export function addFile(taint: Taint, path: string, text: string): void {
  taint.addResult("read", { path }, [fromSource({ kind: "file", name: path }, text)]);
}
