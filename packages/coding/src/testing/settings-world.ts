import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { findProjectFile } from "../settings/project-file.ts";
import { readSmallFile } from "../settings/file.ts";
import {
  inspectSettings,
  loadSettings,
  type SettingsPolicy,
  trustedFile,
} from "../settings/load.ts";
import type { Settings } from "../settings/settings.ts";
import type { Environment } from "../core/environment.ts";
import { computeFingerprint, trustFile, writeTrustFile } from "../settings/trust.ts";

/** A home folder and a repository in it, for one test. */
export interface SettingsWorld {
  readonly home: string;
  /** The root of the repository. */
  readonly project: string;
  readonly userFile: string;
  readonly projectFile: string;
  readonly write: (path: string, content: unknown) => void;
  /** Trusts the project's file as it is now. */
  trust(): void;
  load(options?: LoadOptions): ReturnType<typeof loadSettings>;
  inspect(options?: LoadOptions): ReturnType<typeof inspectSettings>;
  /** All that was warned of, a line each. */
  readonly warnings: string[];
}

export interface LoadOptions {
  env?: Environment;
  /** As of a command line. */
  given?: Settings;
  userFile?: string;
  trustOnce?: boolean;
  /** Default: the project. */
  cwd?: string;
  start?: string;
  policy?: SettingsPolicy;
}

const made: string[] = [];

/** For `afterEach`. */
export function removeWorlds(): void {
  for (const root of made.splice(0)) rmSync(root, { recursive: true, force: true });
}

/** Texts are written as they are, anything else as JSON. Files that are not given are missing. */
export function settingsWorld(files: { user?: unknown; project?: unknown } = {}): SettingsWorld {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-settings-")));
  made.push(root);
  const home = join(root, "home");
  const project = join(home, "work", "project");
  mkdirSync(join(project, ".git"), { recursive: true });
  const userFile = join(home, ".config", "gyre", "config.json");
  const projectFile = join(project, ".gyre", "config.json");
  const warnings: string[] = [];
  const buildOptions = ({
    env = {},
    given = {},
    cwd = project,
    start,
    userFile,
    policy,
    ...rest
  }: LoadOptions) => ({
    ...rest,
    policy,
    env,
    given: { source: "command line", settings: given } as const,
    ...(userFile !== undefined && { userFile: { path: userFile, by: "--config" } }),
    cwd,
    home,
    ...(start !== undefined && { start }),
  });
  const write = (path: string, content: unknown): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  };
  if (files.user !== undefined) write(userFile, files.user);
  if (files.project !== undefined) write(projectFile, files.project);
  return {
    home,
    project,
    userFile,
    projectFile,
    warnings,
    write,
    trust() {
      const found = findProjectFile(project, home);
      const read = readSmallFile(projectFile);
      if (!found || !read || "problem" in read) throw new Error("There is nothing to trust.");
      const print = computeFingerprint([trustedFile(found, read.content)]);
      writeTrustFile(trustFile({}, home), new Map([[project, print]]));
    },
    load: (options = {}) =>
      loadSettings({ ...buildOptions(options), warn: (text) => void warnings.push(text) }),
    inspect: (options = {}) => inspectSettings(buildOptions(options)),
  };
}
