import { homedir } from "node:os";
import type { Agent, AgentEvent, AgentTool, Middleware, ToolInvocation } from "@gyre/agent";
import { systemClock, errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import {
  type Advice,
  cleanEnvironment,
  type GyrePlugin,
  type HookAnswer,
  type Toolset,
} from "@gyre/tools";
import type { CommandRegistry } from "./command-registry.ts";
import { CodingAgentError } from "../core/errors.ts";
import { HookError, runHook, shownHook } from "./hook-run.ts";
import { type Hook, Hooks, PromptBlockedError } from "./hooks.ts";
import { type CommandHook, parseHooks } from "../settings/hooks.ts";
import { checkedAnswer } from "./plugin-api.ts";
import { type LoadedPlugin, loadPlugins } from "./plugins.ts";
import { findProjectFile } from "../settings/project-file.ts";
import { oneLine } from "../settings/problem.ts";
import type { Settings } from "../settings/settings.ts";
import type { TrustedRun } from "../settings/trusted-run.ts";
import type { AbortableAgent } from "./abortable-agent.ts";
import type { Environment } from "../core/environment.ts";
import { within } from "./time-limit.ts";
import { version } from "../core/version.ts";
import { orAborted } from "../conversation/command.ts";

/** For a hook that is a function of a plugin. */
const HOOK_TIMEOUT_MS = 60_000;

export interface ExtensionOptions {
  settings: Settings;
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  warn: (text: string) => void;
  /** Names of the program's own slash commands, which plugins may not have. */
  reservedCommands?: readonly string[];
  /** Plugins of the program itself. */
  ownPlugins?: readonly GyrePlugin[];
  onForeignCode?: (() => void) | undefined;
  /** What a trusted project runs. */
  trusted?: TrustedRun;
  /** Called with each call that a hook refused. */
  denied: (call: ToolInvocation, reason: string) => void;
}

/** A conversation, once it is open. */
export interface Conversation {
  agent: AbortableAgent;
  toolset: Pick<Toolset, "env">;
  session: () => Session | undefined;
  /** It goes on from an earlier one. */
  isResumed: boolean;
}

/** What plugins and hooks add to a conversation. */
export interface Extensions {
  readonly tools: readonly AgentTool[];
  readonly commands: CommandRegistry;
  /** In this order, directly before permissions, which are to ask `advice`. */
  readonly middleware: readonly Middleware[];
  advice(call: ToolInvocation): Advice | undefined;
  /** To be called once, before the first prompt. */
  attach(conversation: Conversation): void;
  /** The prompt as it is sent. Rejects with `CodingAgentError` if a hook says no, or on `signal`. */
  prompt(text: string, signal: AbortSignal): Promise<string>;
  /** What a hook wants the agent to go on with, when it would stop. */
  stop(signal: AbortSignal): Promise<string | undefined>;
  /** Whether the context may be compacted now. */
  compact(signal: AbortSignal, trigger: "auto" | "manual"): Promise<boolean>;
}

/** Loads the plugins, and makes the hooks ready, that settings name. */
export async function extensionsFor(options: ExtensionOptions): Promise<Extensions> {
  const { settings, cwd, env } = options;
  const warn = (text: string): void => options.warn(oneLine(text));
  const { plugins, tools, commands } = await loadPlugins({
    reservedCommands: options.reservedCommands ?? [],
    onForeignCode: options.onForeignCode,
    paths: settings.plugins ?? [],
    given: options.ownPlugins ?? [],
    cwd,
    version: version(),
    settings,
    warn,
  });
  const folder = findProjectFile(cwd, homedir())?.folder ?? cwd;
  const set = { GYRE_PROJECT_DIR: folder, CLAUDE_PROJECT_DIR: folder };
  const place = {
    cwd: folder,
    env: cleanEnvironment(env, { network: true, workspace: folder, set }),
  };
  let open: Conversation | undefined;
  const conversation = (): Conversation => {
    if (open) return open;
    throw new Error("The conversation is not open yet.");
  };

  const { hooks: given, unknown } = parseHooks(settings.hooks ?? {});
  if (unknown.length > 0) warn(`hooks: there are none for ${unknown.join(", ")}: passed over.`);
  const programs = given.map((hook): Hook => ({
    event: hook.event,
    name: shownHook(hook),
    matches: hook.matches,
    run: (input, signal) => {
      const change = options.trusted?.refuseHook(hook);
      if (change !== undefined) return refuseHook(hook, change);
      const { spoolFolder } = conversation().toolset.env;
      return runHook(hook, input, { ...place, spoolFolder }, signal);
    },
  }));
  const hooks = new Hooks([...programs, ...plugins.flatMap(createHooks)], {
    facts() {
      const session = conversation().session();
      return {
        session_id: session?.header.id ?? "",
        transcript_path: session?.path ?? "",
        cwd,
      };
    },
    warn,
    denied: options.denied,
  });

  return {
    tools,
    commands,
    middleware: [...plugins.flatMap(({ middleware }) => middleware), hooks.middleware],
    advice: (call) => hooks.advice(call),
    attach(opened) {
      open = opened;
      const { agent } = opened;
      for (const plugin of plugins) listen(agent, plugin, warn);
    },
    compact: (signal, trigger) => hooks.compact(trigger, signal),
    async prompt(text, signal) {
      try {
        return await hooks.prompt(text, conversation().isResumed ? "resume" : "startup", signal);
      } catch (error) {
        if (signal.aborted) {
          throw new CodingAgentError("aborted", "Interrupted.", { cause: error });
        }
        if (!(error instanceof PromptBlockedError)) throw error;
        throw new CodingAgentError("prompt_blocked", error.message, { cause: error });
      }
    },
    stop: (signal) => hooks.stop(signal),
  };
}

/** What becomes of a hook whose files have changed: the call that it watches over is not made. */
async function refuseHook(hook: CommandHook, change: string): Promise<HookAnswer> {
  const text = `${shownHook(hook)} is not run: ${change}`;
  if (hook.event === "PreToolUse") return { block: text };
  throw new HookError(text);
}

/** The hooks of a plugin; what they throw is reported with its name. */
function createHooks({ name, hooks }: LoadedPlugin): Hook[] {
  return hooks.map(({ event, run }) => ({
    event,
    name: `The ${event} hook of ${name}`,
    matches: () => true,
    run: async (input, signal) => {
      try {
        const work = (async () => run(structuredClone(input), signal))();
        return checkedAnswer(await within(HOOK_TIMEOUT_MS, orAborted(work, signal), systemClock));
      } catch (error) {
        throw new Error(`The ${event} hook of ${name} failed: ${errorMessage(error)}`, {
          cause: error,
        });
      }
    },
  }));
}

function listen(
  agent: Agent,
  { name, listeners }: LoadedPlugin,
  warn: (text: string) => void,
): void {
  for (const { type, listen } of listeners) {
    const contained = async (event: AgentEvent): Promise<void> => {
      try {
        await listen(event);
      } catch (error) {
        warn(`${name}: its listener of "${type}" failed: ${errorMessage(error)}`);
      }
    };
    // Most events are deltas: no run waits for a listener of those.
    agent.subscribe((event) => (event.type === type ? contained(event) : undefined));
  }
}
