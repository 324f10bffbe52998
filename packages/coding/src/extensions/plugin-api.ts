import {
  type AgentEvent,
  type AgentTool,
  ANSWER_TOOL,
  defineTool,
  type Middleware,
} from "@gyre/agent";
import { isRecord, toJsonSchema } from "@gyre/ai";
import {
  type HookAnswer,
  type HookEvent,
  type PluginApi,
  type PluginCommand,
  type PluginHook,
  type PluginRegistry,
  TOOL_NAMES,
} from "@gyre/tools";
import type { CommandRegistry } from "./command-registry.ts";
import { HOOK_EVENTS } from "../settings/hooks.ts";
import type { Settings } from "../settings/settings.ts";

/** What services take as the name of a tool. */
const TOOL_NAME = /^[a-zA-Z][\w-]{0,63}$/;
/** Names that are not for plugins: what the program has, or may have, under them. */
const RESERVED: ReadonlySet<string> = new Set([
  ...TOOL_NAMES,
  ANSWER_TOOL,
  "skill",
  "tool_search",
  "mcp_call",
]);
const MCP_PREFIX = "mcp__";
/** A plugin that has more of one kind has gone astray. */
const MAX_OF_A_KIND = 100;
const MIDDLEWARE_PARTS = ["run", "late", "tool", "model"] as const;

export interface AgentListener {
  type: AgentEvent["type"];
  listen: (event: AgentEvent) => void | Promise<void>;
}

/** What a plugin has registered. */
export interface Registered {
  tools: AgentTool[];
  middleware: Middleware[];
  commands: PluginCommand[];
  hooks: { event: HookEvent; run: PluginHook }[];
  listeners: AgentListener[];
}

/** What is there already when a plugin comes. */
export interface PluginSurroundings {
  cwd: string;
  version: string;
  settings: Settings;
  /** Called with a line for the user. */
  log: (text: string) => void;
  /** Names of tools that earlier plugins have. */
  tools: ReadonlySet<string>;
  commands: CommandRegistry;
}

export interface PluginStage {
  registry: PluginRegistry;
  api: PluginApi;
  /** Nothing more is taken from here on. */
  close(): void;
  /** What was taken. Throws the first thing that was wrong, also if the plugin caught that. */
  registered(): Registered;
}

/** What one plugin is given. Nothing of it takes effect here. */
export function openStage(around: PluginSurroundings): PluginStage {
  const registered: Registered = {
    tools: [],
    middleware: [],
    commands: [],
    hooks: [],
    listeners: [],
  };
  let isOpen = true;
  let wrong: { error: unknown } | undefined;
  const put = <T>(what: string, list: T[], item: T, check: () => void): void => {
    if (!isOpen) {
      throw new Error(
        `${what} was called too late: all has to be registered before registerTools settles.`,
      );
    }
    try {
      check();
      if (list.length >= MAX_OF_A_KIND) throw new Error(`It calls ${what} too often.`);
    } catch (error) {
      wrong ??= { error };
      throw error;
    }
    list.push(item);
  };
  const api: PluginApi = {
    cwd: around.cwd,
    version: around.version,
    settings: frozen(structuredClone({ ...around.settings })),
    log: (text) => around.log(text),
    middleware: (middleware) =>
      put("api.middleware()", registered.middleware, middleware, () => checkMiddleware(middleware)),
    command: (command) =>
      put("api.command()", registered.commands, command, () => {
        around.commands.check(command);
        refuseTwice("command", command.name, registered.commands);
      }),
    hook: (event, run) =>
      put("api.hook()", registered.hooks, { event, run }, () => {
        if (!HOOK_EVENTS.includes(event)) {
          throw new Error(
            `There is no event "${event}". The events are ${HOOK_EVENTS.join(", ")}.`,
          );
        }
        checkFunction("A hook", run);
      }),
    on: (type, listener) => {
      const listen: AgentListener["listen"] = (event) =>
        hasType(event, type) ? listener(event) : undefined;
      put("api.on()", registered.listeners, { type, listen }, () => {
        if (typeof type !== "string") throw new Error("An event is named by a text.");
        checkFunction("A listener", listener);
      });
    },
    defineTool,
  };
  const registry: PluginRegistry = {
    register: (tool) =>
      put("registry.register()", registered.tools, tool, () => {
        checkTool(tool);
        if (around.tools.has(tool.name)) {
          throw new Error(`There is a tool "${tool.name}" already.`);
        }
        refuseTwice("tool", tool.name, registered.tools);
      }),
  };
  return {
    registry,
    api: Object.freeze(api),
    close() {
      isOpen = false;
    },
    registered() {
      if (wrong) throw wrong.error;
      return registered;
    },
  };
}

/** What a hook of a plugin gave, if it is an answer. Throws what is wrong with it. */
export function checkedAnswer(value: unknown): HookAnswer | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) throw new Error(`it gave ${typeof value}, where an object is expected`);
  const { block, permission, reason, input, context, message } = value;
  const isText = (text: unknown): text is string | undefined =>
    text === undefined || typeof text === "string";
  if (!isText(block) || !isText(reason) || !isText(context) || !isText(message)) {
    throw new Error("block, reason, context and message are texts");
  }
  if (permission !== undefined && permission !== "allow" && permission !== "ask") {
    throw new Error('permission is "allow" or "ask"; to deny, give the reason as block');
  }
  if (input !== undefined && !isRecord(input)) throw new Error("input is an object");
  return {
    ...(block !== undefined && { block }),
    ...(permission !== undefined && { permission }),
    ...(reason !== undefined && { reason }),
    ...(input !== undefined && { input }),
    ...(context !== undefined && { context }),
    ...(message !== undefined && { message }),
  };
}

function checkTool(tool: AgentTool): void {
  if (!isRecord(tool)) throw new Error("A tool is an object.");
  const { name, description, parameters } = tool;
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw new Error(
      `A tool is called by up to 64 letters, digits, dashes and underscores, not ${JSON.stringify(name)}.`,
    );
  }
  if (RESERVED.has(name) || name.startsWith(MCP_PREFIX)) {
    throw new Error(`The name "${name}" is taken by the program itself.`);
  }
  if (typeof description !== "string" || description.trim() === "") {
    throw new Error(`The tool "${name}" has no description.`);
  }
  // A schema of a library may be a function.
  if (!parameters) throw new Error(`The tool "${name}" has no schema as parameters.`);
  checkFunction(`"execute" of the tool "${name}"`, tool["execute"]);
  const schema = toJsonSchema(parameters);
  if (schema["type"] !== "object") {
    throw new Error(`The parameters of the tool "${name}" are not a schema of an object.`);
  }
  // What cannot be written down cannot be sent, and no request would get through.
  JSON.stringify(schema);
}

function checkMiddleware(middleware: Middleware): void {
  const isUsed =
    isRecord(middleware) && MIDDLEWARE_PARTS.some((part) => typeof middleware[part] === "function");
  if (!isUsed) {
    throw new Error(`Middleware has one of the functions ${MIDDLEWARE_PARTS.join(", ")}.`);
  }
}

function checkFunction(what: string, value: unknown): void {
  if (typeof value !== "function") throw new Error(`${what} is not a function.`);
}

function refuseTwice(kind: string, name: string, list: readonly { name: string }[]): void {
  if (list.some((other) => other.name === name)) {
    throw new Error(`It has two of a name: the ${kind} "${name}".`);
  }
}

function hasType<T extends AgentEvent["type"]>(
  event: AgentEvent,
  type: T,
): event is Extract<AgentEvent, { type: T }> {
  return event.type === type;
}

function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
