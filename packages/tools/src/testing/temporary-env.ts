import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import { noSandbox } from "../sandbox/sandbox.ts";
import { SeenFiles } from "../workspace/seen.ts";
import { openWorkspace } from "../workspace/workspace.ts";

/** What tools work with, over an empty folder that is gone after `remove`. */
export interface TemporaryEnv {
  root: string;
  env: ToolEnv;
  remove(): Promise<void>;
}

export async function temporaryEnv(): Promise<TemporaryEnv> {
  const root = await mkdtemp(join(tmpdir(), "gyre-tools-"));
  const workspace = await openWorkspace(root);
  const env: ToolEnv = {
    workspace,
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: root,
    environment: {},
    clock: systemClock,
  };
  return {
    root,
    env,
    async remove() {
      await workspace.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
