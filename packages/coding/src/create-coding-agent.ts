import { statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import type { SessionStorage } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import type { CodingAgent } from "./coding-agent.ts";
import type { Environment } from "./core/environment.ts";
import { CodingAgentError } from "./core/errors.ts";
import { assertMode, HarnessAgent } from "./harness-agent.ts";
import { openHarness } from "./harness/harness.ts";
import { loadSetup } from "./harness/load-setup.ts";
import {
  type ChosenSession,
  chooseSessionFile,
  warnOfDamage,
} from "./harness/session/session-file.ts";
import type { Approvals, HarnessOptions } from "./harness/types.ts";
import type { Models } from "./models/models.ts";
import type { Approve, CodingAgentOptions, EffectsAnswer, SessionChoice } from "./options.ts";
import { findPolicyPlace, readPolicy } from "./policy/file.ts";
import type { Policy } from "./policy/policy.ts";
import { readSettings } from "./settings/file.ts";
import type { Settings } from "./settings/settings.ts";
import { didYouMean } from "./settings/shown.ts";
import { modelValue } from "./text/choices.ts";

/**
 * Makes the coding agent that `gyre` is, without a terminal: an agent that works in one folder,
 * with tools, permissions, a sandbox, a session, AGENTS.md, skills, MCP servers, plugins, hooks,
 * compaction of its context and a way back for files. Only what the options say holds: files of
 * settings are read with `settingsFiles`, those of an untrusted project with `trust` alone, and
 * a question that no one answers is a denial. Close the agent when you are done. Rejects with
 * `CodingAgentError`, or with `SessionError` for a session that cannot be opened.
 */
export async function createCodingAgent(options: CodingAgentOptions = {}): Promise<CodingAgent> {
  checkNames(options);
  const { signal } = options;
  signal?.throwIfAborted();
  const setup = await readOptions(options);
  const { settings, cwd, env, warn } = setup;
  const choice = options.session ?? (settings.sessions === false ? "none" : "new");
  const chosen = await chooseSession(choice, cwd, env, warn);
  const hasSession = chosen.session !== undefined || chosen.newSession !== undefined;
  try {
    const harness = await openHarness({
      ...setup,
      ...chosen,
      fileHistory: hasSession && setup.fileHistory,
    });
    return new HarnessAgent(harness, {
      ...(signal && { signal }),
      closeSession: async () => chosen.session?.close(),
    });
  } catch (error) {
    await chosen.session?.close();
    throw error;
  }
}

/** What an agent is made of, by its options and the files that these allow; all but its session. */
export async function readOptions(
  options: CodingAgentOptions,
): Promise<HarnessOptions & { fileHistory: boolean }> {
  const { env = process.env, settingsFiles = false } = options;
  const cwd = findFolder(options.cwd);
  const warn = options.onWarning ?? ((text: string) => process.emitWarning(text));
  const home = homedir();
  const setup = await loadSetup({
    policy: await choosePolicy(options.policy, cwd),
    env,
    cwd,
    home,
    given: { source: "program", settings: await readGiven(options, cwd, home) },
    readsFiles: settingsFiles,
    trustOnce: options.trust ?? false,
    warn,
  });
  return {
    ...setup,
    cwd,
    env,
    warn,
    approvals: toApprovals(options.permissions?.approve),
    rehearse:
      typeof options.permissions?.approve === "function" && options.permissions.effects !== false,
    fileHistory: options.fileHistory ?? true,
    adaptModels: (models) => adaptModels(models, options),
    ownTools: (options.tools ?? []).filter(isObject),
    ownPlugins: (options.plugins ?? []).filter(isObject),
    nameOption: (setting) => `permissions.${setting}`,
    ...(options.limits && { limits: options.limits }),
    ...(options.answerServer && { answerServer: options.answerServer }),
  };
}

const OPTION_NAMES: Readonly<Record<keyof CodingAgentOptions, true>> = {
  cwd: true,
  model: true,
  protocol: true,
  thinkingLevel: true,
  permissions: true,
  tools: true,
  instructions: true,
  instructionFiles: true,
  skills: true,
  session: true,
  fileHistory: true,
  mcp: true,
  answerServer: true,
  plugins: true,
  hooks: true,
  sandbox: true,
  network: true,
  writable: true,
  addDirs: true,
  limits: true,
  settings: true,
  settingsFiles: true,
  policy: true,
  trust: true,
  env: true,
  signal: true,
  onWarning: true,
};

/** What programs for other agents write in its place. */
const MISPLACED: Readonly<Record<string, string>> = {
  permissionMode: "permissions: { mode }",
  mode: "permissions: { mode }",
  approve: "permissions: { approve }",
  canUseTool: "permissions: { approve }",
  allowedTools: "permissions: { allow }",
  disallowedTools: "permissions: { deny }",
  systemPrompt: "instructions, which are added to the system prompt",
  maxTurns: "limits: { maxTurns }",
  mcpServers: "mcp",
  onElicitation: "answerServer",
  resume: "session: { id }",
  additionalDirectories: "addDirs",
  settingSources: "settingsFiles: true",
};

/** Throws on an option that there is not: one with a slip of the pen would do nothing. */
export function checkNames(options: CodingAgentOptions): void {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(OPTION_NAMES, name)) continue;
    const instead = MISPLACED[name];
    const hint =
      instead === undefined ? didYouMean(name, Object.keys(OPTION_NAMES)) : ` Write ${instead}.`;
    throw badOption(`A coding agent has no option "${name}".${hint}`);
  }
  const { model, protocol, permissions: { mode } = {} } = options;
  if (protocol && model === undefined) {
    throw badOption("A `protocol` needs a `model`: the one that it is asked for.");
  }
  if (mode !== undefined) assertMode(mode, "permissions.mode");
}

function badOption(message: string, options?: ErrorOptions): CodingAgentError {
  return new CodingAgentError("bad_option", message, options);
}

function findFolder(cwd = "."): string {
  const folder = resolve(cwd);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  throw badOption(`cwd is ${JSON.stringify(cwd)}: there is no such folder.`);
}

/** A file that the program names is the program's own: who can write to it is not looked at. */
async function choosePolicy(
  choice: CodingAgentOptions["policy"] = "machine",
  cwd: string,
): Promise<Policy | undefined> {
  if (choice === "none") return undefined;
  if (choice === "machine") return readPolicy(findPolicyPlace());
  const path = resolve(cwd, choice.path);
  const policy = await readPolicy({ path });
  if (!policy) throw badOption(`policy: there is no file ${path}.`);
  return policy;
}

/** The options that are settings, by the names that these have in files. */
async function readGiven(
  options: CodingAgentOptions,
  cwd: string,
  home: string,
): Promise<Settings> {
  const { model, permissions = {}, network, settings = {} } = options;
  const { instructions, instructionFiles, skills, mcp, hooks, sandbox, writable, addDirs } =
    options;
  const given = {
    model: typeof model === "object" ? modelValue(model) : model,
    thinking: options.thinkingLevel,
    tools: readNames(options.tools),
    plugins: readNames(options.plugins),
    mode: permissions.mode,
    allow: permissions.allow,
    ask: permissions.ask,
    deny: permissions.deny,
    ...(typeof network === "object" ? { domains: network } : { network }),
    ...{ instructions, instructionFiles, skills, mcp, hooks, sandbox, writable, addDirs },
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const twice = set.find(([name]) => name in settings)?.[0];
  if (twice !== undefined) {
    throw badOption(
      `settings.${twice} is there as an option of its own as well: give one of them.`,
    );
  }
  const place = { name: "createCodingAgent", folder: cwd, home };
  const read = await readSettings({ ...settings, ...Object.fromEntries(set) }, place);
  if (read.problems.length > 0) throw badOption(read.problems.map(({ text }) => text).join("\n"));
  return read.settings;
}

function isObject<T extends object>(value: string | T): value is T {
  return typeof value !== "string";
}

/** The names of a list. Objects alone are added to what there is by default: they set nothing. */
function readNames(list: readonly unknown[] | undefined): readonly unknown[] | undefined {
  const names = list?.filter((value) => typeof value !== "object");
  return names?.length === 0 && list?.length !== 0 ? undefined : names;
}

/** The models of the settings, with the one that is given and the way to them that is given. */
function adaptModels(models: Models, { model, protocol }: CodingAgentOptions): Models {
  return {
    ...models,
    ...(protocol && { client: protocol }),
    async current() {
      if (typeof model === "object") return model;
      try {
        return await models.current();
      } catch (error) {
        if (!(error instanceof CodingAgentError) || error.code !== "no_key") throw error;
        const message =
          "There is no model to ask: no service has a key. Set one (ANTHROPIC_API_KEY, say), or give a `model`.";
        throw new CodingAgentError("no_key", message, { cause: error });
      }
    },
  };
}

function toApprovals(approve: "deny" | "suspend" | Approve = "deny"): Approvals {
  if (typeof approve !== "function") return approve;
  return async (request: ApprovalRequest): Promise<ApprovalAnswer> => {
    const answer = await approve(request);
    const { fingerprint } = request;
    if (answer === false) return { allow: false };
    if (answer === true) return { allow: true, fingerprint };
    return "allow" in answer
      ? answer
      : { allow: true, fingerprint, keep: findKept(request, answer) };
  };
}

/** The numbers of the effects at these paths, and below them. */
function findKept({ effects }: ApprovalRequest, { keep }: EffectsAnswer): number[] {
  if (!effects) {
    throw new Error("There is nothing to keep: the command has not run. Answer true or false.");
  }
  return keep.flatMap((path) => {
    const folder = path.endsWith("/") ? path : `${path}/`;
    const found = effects.effects.filter((effect) => `${effect.path}/`.startsWith(folder));
    if (found.length === 0) throw new Error(`The command did nothing to ${JSON.stringify(path)}.`);
    return found.map(({ id }) => id);
  });
}

async function chooseSession(
  choice: SessionChoice,
  cwd: string,
  env: Environment,
  warn: (text: string) => void,
): Promise<ChosenSession> {
  if (choice === "none") return {};
  if (typeof choice === "string" && choice !== "new" && choice !== "latest") {
    const hint = 'Write "new", "latest", "none", { id } or { path }.';
    throw badOption(`session is ${JSON.stringify(choice)}, which is no choice. ${hint}`);
  }
  if (typeof choice === "object" && "path" in choice) {
    if (Object.keys(choice).length > 1) {
      throw badOption("session: a path is a file of its own: give it without id and storage.");
    }
    return chooseSessionFile(resolve(cwd, choice.path), cwd, warn);
  }
  const storage = await openStorage(choice, env);
  const id =
    choice === "latest"
      ? (await storage.list({ cwd, limit: 1 }))[0]?.id
      : typeof choice === "object" && "id" in choice
        ? choice.id
        : undefined;
  if (id === undefined) return { newSession: () => storage.create({ cwd }) };
  const isFork = typeof choice === "object" && "fork" in choice && choice.fork;
  const session = await (isFork ? storage.fork(id, { cwd }) : storage.open(id));
  warnOfDamage(session, warn);
  return { session };
}

async function openStorage(choice: SessionChoice, env: Environment): Promise<SessionStorage> {
  if (typeof choice === "object" && "storage" in choice && choice.storage) return choice.storage;
  const { defaultSessionFolder, SessionStore } = await import("@gyre/sessions");
  return new SessionStore(defaultSessionFolder(env));
}
