import { delimiter, dirname } from "node:path";
import type { AgentTool } from "@gyre/agent";
import { createSandbox, openToolset, type Sandbox } from "@gyre/tools";

/** Of all there are, what it takes to fix the project. */
const TOOL_NAMES = ["ls", "read", "edit", "shell"];

/** The tools of the demo, and the sandbox that its commands run in. */
export interface DemoTools {
  readonly tools: readonly AgentTool[];
  readonly sandbox: Sandbox["kind"];
  /** To be called once, when no tool is called any more. */
  close(): Promise<void>;
}

/**
 * Tools that work in `folder`, in the sandbox of this system if it has one. Both folders
 * must exist; `stateFolder` (0700) is for the tools' own files. They are left to the caller.
 */
export async function openDemoTools(folder: string, stateFolder: string): Promise<DemoTools> {
  // A demo is to be seen also where there is no sandbox; it then says so.
  const sandbox = await createSandbox({ kind: "any" });
  const toolset = await openToolset({
    root: folder,
    sandbox,
    stateFolder,
    fetch: false,
    environment: environment(),
  });
  return {
    tools: TOOL_NAMES.map((name) => toolset.registry.get(name)),
    sandbox: sandbox.kind,
    close: () => toolset.close(),
  };
}

/** `node` in a command is the Node that runs this, wherever it is installed. */
function environment(): NodeJS.ProcessEnv {
  const path = [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  return { ...process.env, PATH: path };
}
