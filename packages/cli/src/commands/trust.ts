import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { askYesNo } from "./ask-yes-no.ts";
import { EXIT, type ExitCode, ExitError, UsageError } from "../core/exit-codes.ts";
import { readMachinePolicy } from "../core/flag-settings.ts";
import type { Io } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import {
  claudeTrustKey,
  findClaudeFiles,
  findProjectFile,
  MCP_FILE,
  PROJECT_FILE,
  realPath,
} from "@gyre/coding/internal/settings/project-file";
import { oneLine } from "@gyre/coding/internal/settings/problem";
import type { HeldText } from "@gyre/coding/internal/guidance/agent-texts";
import { acceptHeldTexts, findHeldTexts } from "@gyre/coding/internal/guidance/guidance";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import {
  settingsOffer,
  storeTrust,
  type TrustOffer,
} from "@gyre/coding/internal/settings/trust-offer";
import {
  readTrustFile,
  TrustFileError,
  trustFile,
  writeTrustFile,
} from "@gyre/coding/internal/settings/trust";

/**
 * `gyre trust [FOLDER] [--show] [--remove]`: shows what the settings of a folder set, and has
 * them used from now on, as long as they stay as they are. On a terminal it asks first; with
 * `--show` it ends there. A file with errors is not trusted. Ends with 1 if the answer is no.
 * What an agent wrote into instruction files and skills is shown and accepted as well.
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
  const policy = await readMachinePolicy(io);
  const refusal = policy?.refusesProjects;
  if (refusal !== undefined && !values.show && !values.remove) {
    throw new ExitError(EXIT.failed, refusal);
  }
  const project = findProjectFile(cwd, home);
  const servers = findProjectFile(cwd, home, MCP_FILE);
  const claude = findClaudeFiles({ cwd, env: io.env, home }).flatMap((file) => file.project ?? []);
  try {
    if (values.remove) {
      const found = [project, servers, ...claude].flatMap((file) => file?.folder ?? []);
      return remove([realPath(cwd), ...found], io, home);
    }
    const held = await findHeldTexts({ cwd, env: io.env, home }, {});
    const rules =
      claude.length > 0
        ? await (
            await import("@gyre/coding/internal/settings/claude-settings")
          ).findClaudeOffer({ cwd, env: io.env, home })
        : undefined;
    if (!project && !servers && !rules && held.length === 0) {
      throw new ExitError(
        EXIT.failed,
        oneLine(
          `There is nothing to trust: no ${PROJECT_FILE} and no ${MCP_FILE} in ${cwd} or the project around it.`,
        ),
      );
    }
    const agree = agreement(values, io);
    if (project) {
      const options = { policy, env: io.env, cwd, start: io.cwd, home };
      await add(await settingsOffer(project, options), io, home, agree.with);
    }
    if (servers) {
      const { mcpOffer } = await import("@gyre/coding/internal/mcp/trust");
      await add(mcpOffer(servers, cwd), io, home, agree.with);
    }
    if (rules) await add(rules, io, home, agree.with);
    for (const text of held) await acceptText(text, io, agree.with);
    return agree.isRefused ? EXIT.failed : EXIT.done;
  } catch (error) {
    if (!(error instanceof TrustFileError)) throw error;
    throw new ExitError(EXIT.failed, oneLine(`${error.message}.`), { cause: error });
  }
}

/** Consents to what was shown: a person does, or no one where there is no terminal. */
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
  const claude = candidates.map(claudeTrustKey).find((one) => folders.delete(one));
  const folder = settings ?? servers ?? claude;
  if (folder === undefined) {
    io.stdout.write(`${oneLine(candidates[0] ?? "")} was not trusted.\n`);
    return EXIT.done;
  }
  writeTrustFile(path, folders);
  io.stdout.write(`${oneLine(folder)} is not trusted any more.\n`);
  return EXIT.done;
}

/** Shows what an agent wrote for agents, and has it used if `agree` says so. */
async function acceptText(text: HeldText, io: Io, agree: Agree): Promise<void> {
  const { path, content } = text;
  const shown = oneLine(path);
  const lines = plainText(content.toString("utf8")).trimEnd().split("\n");
  io.stdout.write(`${shown} was changed by an agent:\n`);
  for (const line of lines) io.stdout.write(`  ${line}\n`);
  if (!(await agree(path))) return;
  acceptHeldTexts([text], io.env);
  io.stdout.write(`${shown} is used from now on.\n`);
}

/** Shows what is offered, and has it used from now on if `agree` says so. */
async function add(offer: TrustOffer, io: Io, home: string, agree: Agree): Promise<void> {
  const { notes, path, refusal, shown } = offer;
  io.stdout.write(shown);
  for (const note of notes) io.stderr.write(`gyre: ${note}\n`);
  if (refusal !== undefined) throw new ExitError(EXIT.failed, refusal);
  if (await agree(path)) io.stdout.write(`${storeTrust(offer, io.env, home)}\n`);
}
