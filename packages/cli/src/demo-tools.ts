import { delimiter, dirname } from "node:path";
import type { AgentTool } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import {
  cleanEnvironment,
  createSandbox,
  editTool,
  lsTool,
  noSandbox,
  openWorkspace,
  readTool,
  type Sandbox,
  SandboxMissingError,
  SeenFiles,
  shellTool,
  type ToolEnv,
} from "@gyre/tools";

/** The tools of the demo, and the sandbox that its commands run in. */
export interface DemoTools {
  readonly tools: readonly AgentTool[];
  readonly sandbox: Sandbox["kind"];
  /** To be called once, when no tool is called any more. */
  close(): Promise<void>;
}

/**
 * Tools that work in `folder`, and in nothing else where this system has a sandbox.
 * `spoolFolder` (0700) is theirs. Both folders must exist, under their real paths, and
 * are left to the caller.
 */
export async function openDemoTools(folder: string, spoolFolder: string): Promise<DemoTools> {
  const sandbox = await anySandbox();
  const workspace = await openWorkspace(folder);
  const env: ToolEnv = {
    workspace,
    seen: new SeenFiles(),
    sandbox,
    spoolFolder,
    environment: environment(folder),
    clock: systemClock,
  };
  return {
    tools: [lsTool(env), readTool(env), editTool(env), shellTool(env)],
    sandbox: sandbox.kind,
    close: () => workspace.close(),
  };
}

/** A demo is to be seen also where there is no sandbox; it then says so. */
async function anySandbox(): Promise<Sandbox> {
  try {
    return await createSandbox();
  } catch (error) {
    if (error instanceof SandboxMissingError) return noSandbox;
    throw error;
  }
}

/** `node` in a command is the Node that runs this, wherever it is installed. */
function environment(workspace: string): Record<string, string> {
  const path = [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  return cleanEnvironment({ ...process.env, PATH: path }, { workspace });
}
