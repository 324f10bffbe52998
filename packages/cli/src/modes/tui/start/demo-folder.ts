import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { PROJECT_FILES } from "../../demo/project.ts";
import type { Environment } from "../../../core/io.ts";

/** A folder with the demo's small project. */
export interface DemoFolder {
  /** Absolute, with all links followed. */
  readonly path: string;
  /** Removes it; the end of the process does so too. */
  remove(): Promise<void>;
}

/** Creates the small project, with its bug, in a temporary folder. */
export async function createDemoFolder(): Promise<DemoFolder> {
  const path = await mkdtemp(join(await realpath(tmpdir()), "gyre-demo-"));
  const removeAtExit = (): void => rmSync(path, { recursive: true, force: true });
  process.once("exit", removeAtExit);
  await restoreDemo(path);
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true, maxRetries: 3 });
      process.removeListener("exit", removeAtExit);
    },
  };
}

/** Restores the files of the project. Returns whether any was different. */
export async function restoreDemo(path: string): Promise<boolean> {
  await mkdir(path, { recursive: true });
  let isChanged = false;
  for (const [name, text] of Object.entries(PROJECT_FILES)) {
    const file = join(path, name);
    if ((await readIfPresent(file)) === text) continue;
    isChanged = true;
    await writeFile(file, text);
  }
  return isChanged;
}

async function readIfPresent(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The environment where `node` is the Node that runs this, wherever it is installed. */
export function createDemoEnvironment(env: Environment): Environment {
  return { ...env, PATH: [dirname(process.execPath), env["PATH"] ?? ""].join(delimiter) };
}
