import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { askYesNo } from "./ask-yes-no.ts";
import { EXIT, type ExitCode, ExitError, UsageError } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import type { Values } from "../options.ts";
import {
  findProjectFile,
  MCP_FILE,
  PROJECT_FILE,
  type ProjectFile,
  readProjectFile,
  realPath,
} from "../settings/project-file.ts";
import { settingsIn } from "../settings/settings-file.ts";
import {
  allowedOfProject,
  isPluginError,
  trustedFiles,
  userSettings,
} from "../settings/settings-load.ts";
import { projectModels } from "../settings/settings-models.ts";
import { oneLine } from "../settings/settings-problem.ts";
import { shownValue } from "../settings/settings-shown.ts";
import { SETTING_NAMES } from "../settings/settings-table.ts";
import type { Settings } from "../settings/settings.ts";
import {
  fingerprintOf,
  readTrustFile,
  type TrustedFile,
  TrustFileError,
  trustFile,
  trustOf,
  writeTrustFile,
} from "../settings/trust.ts";

const MARGIN = 2;
/** Of what a project's plugins consist of. */
const MAX_SHOWN_FILES = 20;

/**
 * `gyre trust [FOLDER] [--show] [--remove]`: shows what the settings of a folder set, and has
 * them used from now on, as long as they stay as they are. On a terminal it asks first; with
 * `--show` it ends there. A file with errors is not trusted. Ends with 1 if the answer is no.
 */
export async function runTrust(
  args: readonly string[],
  values: Values,
  io: Io,
  home: string = homedir(),
): Promise<ExitCode> {
  const [named, more] = args;
  if (values.show && values.remove) {
    throw new UsageError("--show and --remove cannot be used together.");
  }
  if (more !== undefined) throw new UsageError(`"trust" takes one folder, not "${more}" as well.`);
  const cwd = resolve(io.cwd, named ?? ".");
  const project = findProjectFile(cwd, home);
  const servers = findProjectFile(cwd, home, MCP_FILE);
  try {
    if (values.remove) {
      const found = [project, servers].flatMap((file) => file?.folder ?? []);
      return remove([realPath(cwd), ...found], io, home);
    }
    if (!project && !servers) {
      throw new ExitError(
        EXIT.failed,
        oneLine(
          `There is nothing to trust: no ${PROJECT_FILE} and no ${MCP_FILE} in ${cwd} or the project around it.`,
        ),
      );
    }
    const agree = agreement(values, io);
    if (project) await add(project, cwd, io, home, agree.with);
    if (servers) {
      const { trustMcpFile } = await import("../mcp/mcp-trust.ts");
      await trustMcpFile(servers, cwd, io, home, agree.with);
    }
    return agree.isRefused ? EXIT.failed : EXIT.done;
  } catch (error) {
    if (!(error instanceof TrustFileError || isPluginError(error))) throw error;
    throw new ExitError(EXIT.failed, oneLine(`${error.message}.`), { cause: error });
  }
}

/** Says yes to what was shown: a person, or nobody where none is there to be asked. */
type Agree = (what: string) => Promise<boolean>;

function agreement(
  { show = false }: Values,
  io: Io,
): { readonly with: Agree; readonly isRefused: boolean } {
  const isAsked = io.stdin.isTTY === true && io.stdout.isTTY === true;
  let isRefused = false;
  return {
    async with(what) {
      if (show || !isAsked) return !show;
      const isYes = await askYesNo(`Trust ${oneLine(what)}?`, io);
      if (!isYes) io.stdout.write("It stays as it was: nothing was written.\n");
      isRefused ||= !isYes;
      return isYes;
    },
    get isRefused() {
      return isRefused;
    },
  };
}

/** `candidates`: the folder that is meant, or else the project that it is in. */
function remove(candidates: readonly string[], io: Io, home: string): ExitCode {
  const path = trustFile(io.env, home);
  const folders = new Map(readTrustFile(path));
  const settings = candidates.find((one) => folders.delete(one));
  const servers = candidates.map((one) => join(one, MCP_FILE)).find((one) => folders.delete(one));
  const folder = settings ?? servers;
  if (folder === undefined) {
    io.stdout.write(`${oneLine(candidates[0] ?? "")} was not trusted.\n`);
    return EXIT.done;
  }
  writeTrustFile(path, folders);
  io.stdout.write(`${oneLine(folder)} is not trusted any more.\n`);
  return EXIT.done;
}

async function add(
  project: ProjectFile,
  cwd: string,
  io: Io,
  home: string,
  agree: Agree,
): Promise<void> {
  const { folder, path } = project;
  const { env } = io;
  const read = readProjectFile(project, cwd);
  if ("problem" in read) {
    throw new ExitError(EXIT.failed, oneLine(`${path} cannot be trusted: it ${read.problem}.`));
  }
  const { settings, problems } = await settingsIn(read.content, path, home);
  // What a project may set depends on it.
  const { settings: users } = await userSettings({ env, cwd, start: io.cwd, home, flags: {} });
  const { settings: used, refused } = await allowedOfProject(settings, users);

  io.stdout.write(`${oneLine(path)} sets:\n${listed(used)}`);
  const notes = [...problems.map(({ text }) => text), ...refused];
  for (const note of notes) io.stderr.write(`gyre: ${oneLine(note)}\n`);
  if (problems.some(({ level }) => level === "error")) {
    throw new ExitError(EXIT.failed, oneLine(`${path} is not trusted: mend it first.`));
  }
  for (const line of keysSent(settings, users)) io.stdout.write(`${oneLine(line)}\n`);
  const files = await trustedFiles(project, read.content, settings);
  if (settings.plugins || settings.hooks) io.stdout.write(whatRuns(files));
  if (!(await agree(path))) return;

  const store = trustFile(env, home);
  const folders = readTrustFile(store);
  const before = trustOf(folders, folder, files);
  writeTrustFile(store, new Map([...folders, [folder, fingerprintOf(files)]]));
  const still = before === "trusted" ? "still" : "now";
  io.stdout.write(
    `${oneLine(folder)} is ${still} trusted, until ${files.length > 1 ? "one of the files" : "the file"} changes.\n`,
  );
}

function listed(settings: Settings): string {
  const lines = SETTING_NAMES.filter((name) => settings[name] !== undefined).map(
    (name) => `${" ".repeat(MARGIN)}${name}: ${shownValue(settings[name], MARGIN)}\n`,
  );
  return lines.length > 0 ? lines.join("") : `${" ".repeat(MARGIN)}nothing\n`;
}

/** What is read and run with the file. */
function whatRuns([_settings, ...files]: readonly TrustedFile[]): string {
  const shown = files.slice(0, MAX_SHOWN_FILES).map(({ name }) => `${oneLine(name)}\n`);
  const more = files.length - shown.length;
  const lines = [...shown, ...(more > 0 ? [`and ${more} more\n`] : [])];
  const list = lines.map((line) => " ".repeat(MARGIN) + line).join("");
  const about = "Its plugins and hooks run with all your rights, outside of the sandbox.";
  return list === "" ? `${about}\n` : `${about} They are trusted as they are now:\n${list}`;
}

/** Which keys a service of the project would get: a name may be chosen for its variable. */
function keysSent({ models }: Settings, users: Settings): string[] {
  if (!models) return [];
  const { keyVariables } = projectModels(models, users.models);
  return Object.entries(keyVariables).map(
    ([id, variable]) =>
      `The service "${id}" is sent the key in ${variable}, or the one that was stored with gyre login ${id}.`,
  );
}
