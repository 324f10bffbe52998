import { isAbsolute, join, resolve } from "node:path";
import type { ThinkingBudgets } from "@gyre/ai";
import { addToolLists, DEFAULT_TOOLS } from "../core/tool-lists.ts";
import { MODE_NAMES, parseMode, THINKING_NAMES } from "../text/choices.ts";
import type { LanguageServerSetting, Settings } from "./settings.ts";
import { DEFAULT_KEYS, type KeySettings } from "./terminal/key-actions.ts";
import type { StatusLineSetting } from "./terminal/status-line.ts";

export type SettingName = keyof Settings;
export type SettingValue<K extends SettingName> = NonNullable<Settings[K]>;

/** What a timer can hold, in seconds: 24 days. */
const MAX_SECONDS = 2_147_483;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** A kind of value, and the ways to write one. */
export interface Kind<T> {
  /** What is allowed in a file, as the end of "must be". */
  readonly allowed: string;
  /** What is allowed in a variable or an option, where that is more. */
  readonly allowedText?: string;
  readonly schema: Readonly<Record<string, unknown>>;
  is(value: unknown): value is T;
  /** The value that a text stands for; undefined if it stands for none. */
  read(text: string): T | undefined;
}

export interface Setting<T> {
  readonly kind: Kind<T>;
  readonly about: string;
  /** What holds where nothing sets it: a value, or in words. */
  readonly standard?: T;
  readonly otherwise?: string;
  /** The variable that sets it. */
  readonly env?: string;
  /** The option that sets it. */
  readonly flag?: string;
  /** Puts a later value to an earlier one. Without it, the later replaces the earlier. */
  readonly add?: (earlier: T, later: T) => T;
  /** The value as it is used, if it is written relative to a folder. */
  readonly from?: (value: T, folder: string, home: string) => T;
  /** What a project does not set, though it is trusted. */
  readonly project?: ProjectRule<T>;
}

export interface ProjectRule<T> {
  /** For people: the values that are not taken. Without it, none is. */
  readonly not?: string;
  /** Why, as a sentence. */
  readonly why: string;
  /** `users`: what the user's own file says. */
  readonly allows: (value: T, users: T | undefined) => boolean;
}

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.trim() !== "" && !value.includes("\0");
const TEXT_SCHEMA = { type: "string", pattern: "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$" };

const TEXT: Kind<string> = {
  allowed: "a text that is not empty",
  schema: TEXT_SCHEMA,
  is: isText,
  read: (text) => (isText(text) ? text : undefined),
};

export const TEXTS: Kind<readonly string[]> = {
  allowed: "a list of texts that are not empty",
  allowedText: 'names with commas between them, or "none"',
  schema: { type: "array", items: TEXT_SCHEMA },
  is: (value): value is readonly string[] => Array.isArray(value) && value.every(isText),
  read(text) {
    if (text.trim() === "none") return [];
    const names = text.split(",").map((name) => name.trim());
    return names.every(isText) ? names : undefined;
  },
};

/** A name or an address, all names below one, and a port. */
const DOMAIN = /^(?:\*\.)?[^\s*/@:[\]]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/;
const isDomain = (value: unknown): value is string => isText(value) && DOMAIN.test(value);

export const DOMAINS: Kind<readonly string[]> = {
  allowed: 'a list of hosts as "registry.npmjs.org", "*.github.com" or "localhost:8080"',
  allowedText: 'hosts with commas between them, or "none"',
  schema: { type: "array", items: { type: "string", pattern: DOMAIN.source } },
  is: (value): value is readonly string[] => Array.isArray(value) && value.every(isDomain),
  read(text) {
    const names = TEXTS.read(text);
    return names?.every(isDomain) ? names : undefined;
  },
};

export const YES_OR_NO: Kind<boolean> = {
  allowed: "true or false",
  allowedText: "true, false, 1 or 0",
  schema: { type: "boolean" },
  is: (value) => typeof value === "boolean",
  read(text) {
    if (text === "true" || text === "1") return true;
    return text === "false" || text === "0" ? false : undefined;
  },
};

const COUNT: Kind<number> = {
  allowed: "a whole number above 0",
  schema: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  is: (value): value is number => Number.isSafeInteger(value) && Number(value) > 0,
  read: (text) => numberIn(text, /^\d+$/, COUNT),
};

const DECIMAL = /^(?:\d+(?:\.\d*)?|\.\d+)$/;

const DOLLARS: Kind<number> = {
  allowed: "US dollars, a number above 0",
  schema: { type: "number", exclusiveMinimum: 0 },
  is: (value): value is number => Number.isFinite(value) && Number(value) > 0,
  read: (text) => numberIn(text, DECIMAL, DOLLARS),
};

const DURATION: Kind<number> = {
  allowed: `seconds, a number above 0 and at most ${MAX_SECONDS}`,
  allowedText: `seconds above 0 and at most ${MAX_SECONDS}, or a time such as 90s, 5m or 1h`,
  schema: { type: "number", exclusiveMinimum: 0, maximum: MAX_SECONDS },
  is: (value): value is number =>
    Number.isFinite(value) && Number(value) > 0 && Number(value) <= MAX_SECONDS,
  read(text) {
    const [, digits = "", unit = "s"] = /^(.*?)([smh])?$/s.exec(text.trim()) ?? [];
    const value = DECIMAL.test(digits) ? Number(digits) * (SECONDS[unit] ?? 1) : undefined;
    return DURATION.is(value) ? value : undefined;
  },
};

/** Its parts are looked at in settings-models.ts, which is not loaded where there are none. */
const MODELS: Kind<Readonly<Record<string, unknown>>> = {
  allowed: 'an object with "models", "services" or both',
  schema: {
    type: "object",
    properties: {
      models: {
        description: "Models that are new, or changed.",
        type: "array",
        items: {
          type: "object",
          properties: {
            provider: { description: "The id of the service that it is at.", type: "string" },
            id: { description: "What the service calls it.", type: "string" },
          },
          required: ["provider", "id"],
        },
      },
      services: {
        description: "Services that are new, or changed, by id.",
        type: "object",
        additionalProperties: { type: "object" },
      },
    },
    additionalProperties: false,
  },
  is: (value): value is Readonly<Record<string, unknown>> =>
    typeof value === "object" && value !== null && !Array.isArray(value),
  read: () => undefined,
};

/** Its parts are looked at in mcp-settings.ts, which is not loaded where there are none. */
const SERVERS: Kind<Readonly<Record<string, unknown>>> = {
  allowed: "an object of servers by name",
  schema: {
    type: "object",
    additionalProperties: {
      type: "object",
      properties: {
        type: { enum: ["stdio", "http"] },
        command: { description: "A program that is the server.", type: "string" },
        args: { type: "array", items: { type: "string" } },
        env: { type: "object", additionalProperties: { type: "string" } },
        cwd: { description: "Where it is started.", type: "string" },
        url: { description: "Where the server is.", type: "string" },
        headers: { type: "object", additionalProperties: { type: "string" } },
        oauth: {
          description: "What an authorization server knows us by; false: no logins.",
          anyOf: [
            { const: false },
            {
              type: "object",
              properties: {
                clientId: TEXT_SCHEMA,
                clientSecret: TEXT_SCHEMA,
                issuer: { description: "The one that the client belongs to.", ...TEXT_SCHEMA },
                clientMetadataUrl: TEXT_SCHEMA,
                scopes: { type: "array", items: TEXT_SCHEMA },
                callbackPort: { type: "integer", minimum: 1, maximum: 65_535 },
              },
            },
          ],
        },
        disabled: { type: "boolean" },
        timeout: { description: "Milliseconds for a call.", type: "number", exclusiveMinimum: 0 },
        tools: { description: "The tools that are used.", type: "array", items: TEXT_SCHEMA },
        direct: { description: "Offers its tools to the model at once.", type: "boolean" },
      },
    },
  },
  is: (value) => MODELS.is(value),
  read: () => undefined,
};

const LANGUAGE_SERVERS: Kind<Readonly<Record<string, LanguageServerSetting>>> = {
  allowed: 'an object such as { "go": { "command": ["gopls"], "files": { ".go": "go" } } }',
  schema: {
    type: "object",
    additionalProperties: {
      type: "object",
      properties: {
        command: {
          description: "The program and its arguments.",
          type: "array",
          items: TEXT_SCHEMA,
          minItems: 1,
        },
        files: {
          description: "Ids of languages by the endings of files.",
          type: "object",
          additionalProperties: TEXT_SCHEMA,
        },
      },
      required: ["command", "files"],
      additionalProperties: false,
    },
  },
  is: (value): value is Readonly<Record<string, LanguageServerSetting>> =>
    MODELS.is(value) && Object.values(value).every(isLanguageServer),
  read: () => undefined,
};

function isLanguageServer(value: unknown): value is LanguageServerSetting {
  if (!MODELS.is(value) || Object.keys(value).length > 2) return false;
  const { command, files } = value;
  const isProgram = Array.isArray(command) && command.length > 0 && command.every(isText);
  return isProgram && MODELS.is(files) && Object.values(files).every(isText);
}

const COMMAND_SCHEMA = {
  description: "For a shell, or a program and its arguments.",
  anyOf: [TEXT_SCHEMA, { type: "array", items: { type: "string" }, minItems: 1 }],
};

const HOOK_SCHEMA = {
  type: "object",
  properties: {
    matcher: {
      description: "A regular expression for the whole name of a tool.",
      type: "string",
    },
    command: COMMAND_SCHEMA,
    timeout: { description: "Seconds.", type: "number", exclusiveMinimum: 0 },
    hooks: { description: "As other agents write them.", type: "array", items: { type: "object" } },
  },
};

/** Its parts are looked at in hooks-settings.ts, which is not loaded where there are none. */
const HOOKS: Kind<Readonly<Record<string, unknown>>> = {
  allowed: "an object with a list of hooks for each event",
  schema: {
    type: "object",
    properties: {
      PreToolUse: { type: "array", items: HOOK_SCHEMA },
      PostToolUse: { type: "array", items: HOOK_SCHEMA },
      UserPromptSubmit: { type: "array", items: HOOK_SCHEMA },
      SessionStart: { type: "array", items: HOOK_SCHEMA },
      Stop: { type: "array", items: HOOK_SCHEMA },
      PreCompact: { type: "array", items: HOOK_SCHEMA },
    },
    additionalProperties: { type: "array" },
  },
  is: (value) => MODELS.is(value),
  read: () => undefined,
};

export function choiceKind<const T extends string>(values: readonly T[]): Kind<T> {
  const is = (value: unknown): value is T => values.some((one) => one === value);
  return {
    allowed: `one of ${values.map((value) => `"${value}"`).join(", ")}`,
    schema: { enum: values },
    is,
    read: (text) => (is(text) ? text : undefined),
  };
}

const NAME = /^[A-Za-z0-9][\w.-]{0,63}$/;
const THEME_NAME: Kind<string> = {
  allowed: '"auto", "light", "dark", or the name of a file of a theme without its .json',
  schema: { type: "string", pattern: NAME.source },
  is: (value): value is string => typeof value === "string" && NAME.test(value),
  read: (text) => (NAME.test(text) ? text : undefined),
};

/** Its parts are looked at in terminal/key-problems.ts, which is not loaded where there are none. */
const KEYS: Kind<KeySettings> = {
  allowed: 'an object such as { "expand": "ctrl+x", "suspend": [] }',
  schema: {
    type: "object",
    properties: Object.fromEntries(
      Object.keys(DEFAULT_KEYS).map((action) => [
        action,
        { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      ]),
    ),
  },
  is: (value): value is KeySettings => MODELS.is(value),
  read: () => undefined,
};

/** Its parts are looked at in terminal/status-line.ts, which is not loaded where there is none. */
const STATUS_LINE: Kind<StatusLineSetting> = {
  allowed: 'a text such as "{model} · {mode}{fill}{cost}", or { "command": … }',
  schema: {
    anyOf: [
      TEXT_SCHEMA,
      {
        type: "object",
        properties: { type: { enum: ["command"] }, command: COMMAND_SCHEMA },
        required: ["command"],
        additionalProperties: false,
      },
    ],
  },
  is: (value): value is StatusLineSetting => {
    if (isText(value)) return true;
    if (!MODELS.is(value)) return false;
    const { command, type = "command", ...others } = value;
    const isProgram =
      isText(command) ||
      (Array.isArray(command) &&
        command.length > 0 &&
        command.every((each) => typeof each === "string"));
    return isProgram && type === "command" && Object.keys(others).length === 0;
  },
  read: (text) => (isText(text) ? text : undefined),
};

const QUEUE_MODE = choiceKind(["one-at-a-time", "all"]);

/** The levels that have a budget. */
const BUDGET_NAMES = THINKING_NAMES.filter((level) => level !== "off");

const BUDGETS: Kind<ThinkingBudgets> = {
  allowed: 'an object such as { "low": 2048, "high": 32000 }',
  schema: {
    type: "object",
    properties: Object.fromEntries(BUDGET_NAMES.map((level) => [level, COUNT.schema])),
    additionalProperties: false,
  },
  is: (value): value is ThinkingBudgets =>
    MODELS.is(value) &&
    Object.entries(value).every(
      ([level, tokens]) => BUDGET_NAMES.some((each) => each === level) && COUNT.is(tokens),
    ),
  read: () => undefined,
};

function numberIn(text: string, form: RegExp, kind: Kind<number>): number | undefined {
  const value = form.test(text.trim()) ? Number(text) : undefined;
  return kind.is(value) ? value : undefined;
}

const together = (earlier: readonly string[], later: readonly string[]): readonly string[] => [
  ...new Set([...earlier, ...later]),
];

/** A project names other services than the user's file, so nothing is there twice. */
const allModels: Setting<Readonly<Record<string, unknown>>>["add"] = (earlier, later) => ({
  models: [earlier, later].flatMap(({ models }) => (Array.isArray(models) ? models : [])),
  services: Object.assign({}, earlier["services"], later["services"]),
});

/** Those of both files, in order. */
const allHooks: Setting<Readonly<Record<string, unknown>>>["add"] = (earlier, later) =>
  Object.fromEntries(
    [...new Set([...Object.keys(earlier), ...Object.keys(later)])].map((event) => [
      event,
      [earlier[event], later[event]].flatMap((hooks): unknown[] =>
        Array.isArray(hooks) ? hooks : [],
      ),
    ]),
  );

/** A path as it is used: `~/` is the home folder. */
function ownPath(path: string, folder: string, home: string): string {
  return path.startsWith("~/") ? join(home, path.slice(1)) : resolve(folder, path);
}

/** A path as it is used. Any other name is a package that is installed for the file's folder. */
function pluginPath(name: string, folder: string, home: string): string {
  if (name.startsWith("~/")) return join(home, name.slice(1));
  if (isAbsolute(name) || /^\.{1,2}[\\/]/.test(name)) return resolve(folder, name);
  return join(folder, "node_modules", name);
}

const ownLimit: ProjectRule<number> = {
  not: "more than your own file says",
  why: "Your limit is for your money and your time.",
  allows: (value, users) => users === undefined || value <= users,
};

const usersOwnFacts: ProjectRule<string> = {
  why: "Which facts of models hold for all of your projects is for you to say.",
  allows: () => false,
};

const usersOwnSearch: ProjectRule<string> = {
  why: "Where your searches go is for you to say.",
  allows: () => false,
};

const usersOwnHands: ProjectRule<unknown> = {
  why: "How you type is for you to say.",
  allows: () => false,
};

/**
 * Every setting, once: what is checked, read from variables and options, described in the JSON
 * Schema and listed in docs/configuration.md is all made from this, or held against it.
 */
export const SETTINGS: {
  readonly [K in SettingName]: Setting<SettingValue<K>>;
} = {
  model: {
    kind: TEXT,
    about: 'The model: a name ("sonnet"), or service/id; "sonnet:high" with a level of thinking.',
    otherwise: "that of the first service that has a key; gyre doctor says which",
    env: "GYRE_MODEL",
    flag: "model",
  },
  fallbackModels: {
    kind: TEXTS,
    about: "Models that are asked, in this order, when the first cannot answer.",
    otherwise: "none",
    env: "GYRE_FALLBACK_MODELS",
  },
  thinking: {
    kind: choiceKind(THINKING_NAMES),
    about: "How much the model thinks.",
    otherwise: "as the model's service recommends",
    env: "GYRE_THINKING",
    flag: "thinking",
  },
  thinkingBudgets: {
    kind: BUDGETS,
    about: "Tokens for each level of thinking, for services that take a number.",
    otherwise: "those of the service",
    add: (earlier, later) => ({ ...earlier, ...later }),
  },
  cacheRetention: {
    kind: choiceKind(["none", "short", "long"]),
    about:
      'How long services keep what requests begin with. "long" is an hour or a day where they have it, and may cost more.',
    standard: "short",
    env: "GYRE_CACHE_RETENTION",
  },
  tools: {
    kind: TEXTS,
    about:
      "The tools that it has, by name; an empty list means no tools. +name and -name change what holds otherwise.",
    standard: DEFAULT_TOOLS,
    env: "GYRE_TOOLS",
    flag: "tools",
    add: addToolLists,
  },
  mode: {
    kind: { ...choiceKind(MODE_NAMES), read: parseMode },
    about: "What it may do without being asked about.",
    otherwise: "auto where a sandbox holds, else ask",
    env: "GYRE_MODE",
    flag: "mode",
    project: {
      not: '"full"',
      why: "Then nothing would be asked about, in a folder that another person wrote.",
      allows: (value) => value !== "full",
    },
  },
  allow: {
    kind: TEXTS,
    about: "Rules for what it may do. Adds up.",
    otherwise: "none",
    flag: "allow",
    add: together,
  },
  ask: {
    kind: TEXTS,
    about: "Rules for what is asked about. Adds up.",
    otherwise: "none",
    add: together,
  },
  deny: {
    kind: TEXTS,
    about: "Rules for what it may not do. Adds up.",
    otherwise: "none",
    flag: "deny",
    add: together,
  },
  sandbox: {
    kind: choiceKind(["auto", "none"]),
    about: "What commands are confined by: that of this system, or nothing.",
    standard: "auto",
    env: "GYRE_SANDBOX",
    flag: "sandbox",
    project: {
      why: "The sandbox keeps what is outside of the project safe from it.",
      allows: () => false,
    },
  },
  network: {
    kind: YES_OR_NO,
    about: "Whether commands reach the network.",
    standard: false,
    env: "GYRE_NETWORK",
    flag: "network",
    project: {
      not: "true",
      why: "What commands can read, they could send anywhere.",
      allows: (value) => !value,
    },
  },
  domains: {
    kind: DOMAINS,
    about: "Hosts that commands in the sandbox reach without `network`, by HTTP and HTTPS.",
    otherwise: "none",
    env: "GYRE_DOMAINS",
    project: {
      why: "What commands can read, they could send there.",
      allows: () => false,
    },
  },
  addDirs: {
    kind: TEXTS,
    about:
      "Further folders that belong to the workspace: for tools, commands and /rewind. Adds up.",
    otherwise: "none",
    flag: "add-dir",
    add: together,
    from: (paths, folder, home) => paths.map((path) => ownPath(path, folder, home)),
    project: {
      why: "Which folders outside of the project it may change is for you to say.",
      allows: () => false,
    },
  },
  writable: {
    kind: TEXTS,
    about: "Folders outside of the project that commands in the sandbox may change.",
    otherwise: "none",
    from: (paths, folder, home) => paths.map((path) => ownPath(path, folder, home)),
    project: {
      why: "The sandbox keeps what is outside of the project safe from it.",
      allows: () => false,
    },
  },
  hidden: {
    kind: TEXTS,
    about: "Further files and folders that commands in the sandbox may not read.",
    otherwise: "none",
    from: (paths, folder, home) => paths.map((path) => ownPath(path, folder, home)),
    project: {
      why: "Its list would take the place of yours.",
      allows: () => false,
    },
  },
  effects: {
    kind: YES_OR_NO,
    about:
      "Whether a command that would be asked about runs in a layer over the project first, and the question shows what it did.",
    standard: true,
    env: "GYRE_EFFECTS",
    project: {
      not: "true",
      why: "Commands would run before you are asked.",
      allows: (value) => !value,
    },
  },
  maxTurns: {
    kind: COUNT,
    about: "Ends a run after this many answers.",
    otherwise: "no limit",
    env: "GYRE_MAX_TURNS",
    flag: "max-turns",
    project: ownLimit,
  },
  maxCost: {
    kind: DOLLARS,
    about: "Ends a run when it has cost this many US dollars.",
    otherwise: "no limit",
    env: "GYRE_MAX_COST",
    flag: "max-cost",
    project: ownLimit,
  },
  raceTest: {
    kind: TEXT,
    about:
      "The command by which /race compares the rivals: run in the copy of each, through permissions.",
    otherwise: "none",
  },
  timeout: {
    kind: DURATION,
    about: "Ends a run after this many seconds.",
    otherwise: "no limit",
    env: "GYRE_TIMEOUT",
    flag: "timeout",
    project: ownLimit,
  },
  firstByteTimeout: {
    kind: DURATION,
    about: "How long a service may take until the first byte of its response.",
    otherwise: "300 seconds; no limit for a service on this machine",
    env: "GYRE_FIRST_BYTE_TIMEOUT",
    project: ownLimit,
  },
  connectionTimeout: {
    kind: DURATION,
    about: "How long a response may bring nothing at all, not even a sign of life.",
    otherwise: "120 seconds",
    env: "GYRE_CONNECTION_TIMEOUT",
    project: ownLimit,
  },
  contentTimeout: {
    kind: DURATION,
    about: "How long a response may bring no content while its connection is alive.",
    otherwise: "900 seconds",
    env: "GYRE_CONTENT_TIMEOUT",
    project: ownLimit,
  },
  retryAttempts: {
    kind: COUNT,
    about: "How often a request is sent at most while it fails before an answer comes.",
    otherwise: "10 for overload, rate limits and the network; 5 for other failures",
    env: "GYRE_RETRY_ATTEMPTS",
    project: ownLimit,
  },
  retryTime: {
    kind: DURATION,
    about: "How long overload, rate limits and failures of the network are waited out.",
    otherwise: "300 seconds",
    env: "GYRE_RETRY_TIME",
    project: ownLimit,
  },
  steeringMode: {
    kind: QUEUE_MODE,
    about: "Whether messages that steer are sent one after the other, a turn each, or all at once.",
    standard: "one-at-a-time",
    env: "GYRE_STEERING_MODE",
  },
  followUpMode: {
    kind: QUEUE_MODE,
    about: "Whether messages that wait for the end are sent one after the other, or all at once.",
    standard: "one-at-a-time",
    env: "GYRE_FOLLOW_UP_MODE",
  },
  systemPrompt: {
    kind: TEXT,
    about: "In place of what the system prompt begins with: who the agent is, and how it works.",
    otherwise: "SYSTEM.md, else the text of gyre",
    flag: "system-prompt",
  },
  instructions: {
    kind: TEXT,
    about: "Added to the system prompt.",
    otherwise: "none",
  },
  appendSystemPrompt: {
    kind: TEXT,
    about: "Added to the system prompt, after `instructions`. Adds up.",
    otherwise: "none",
    flag: "append-system-prompt",
    add: (earlier, later) => `${earlier}\n\n${later}`,
  },
  instructionFiles: {
    kind: YES_OR_NO,
    about: "Whether AGENTS.md or CLAUDE.md are read, yours and the project's.",
    standard: true,
    env: "GYRE_INSTRUCTION_FILES",
    project: {
      not: "true",
      why: "Whether its files are read is for you to say.",
      allows: (value) => !value,
    },
  },
  skills: {
    kind: YES_OR_NO,
    about: "Whether skills are looked for, yours and the project's.",
    standard: true,
    env: "GYRE_SKILLS",
    project: {
      not: "true",
      why: "Whether its files are read is for you to say.",
      allows: (value) => !value,
    },
  },
  facts: {
    kind: YES_OR_NO,
    about:
      "Whether the model gets date, system, folder, git, mode, sandbox and the tools that are off with the first prompt.",
    standard: true,
    env: "GYRE_FACTS",
  },
  oracle: {
    kind: TEXT,
    about: "The model of the tool oracle.",
    otherwise: "the model itself",
    env: "GYRE_ORACLE",
  },
  webSearch: {
    kind: TEXT,
    about:
      "What the tool web_search searches with: service, which is the model's own service, or the address of a search engine with {query} in it.",
    otherwise: "no search",
    env: "GYRE_WEB_SEARCH",
    project: usersOwnSearch,
  },
  smallModel: {
    kind: TEXT,
    about: "The model that summarizes long results.",
    otherwise: "the cheapest of the same service",
    env: "GYRE_SMALL_MODEL",
  },
  compactAt: {
    kind: COUNT,
    about: "The tokens above which the context is compacted, at most 80 % of the model's window.",
    otherwise: "160000",
    env: "GYRE_COMPACT_AT",
    project: ownLimit,
  },
  sessions: {
    kind: YES_OR_NO,
    about: "Whether what is said and done is written to session files.",
    standard: true,
    env: "GYRE_SESSIONS",
    flag: "no-session",
    project: {
      why: "Session files are outside of the project, and say what was done in it.",
      allows: () => false,
    },
  },
  log: {
    kind: TEXT,
    about: "A file that gets a line for each call of a model or a tool.",
    otherwise: "none",
    env: "GYRE_LOG",
    flag: "log",
    from: ownPath,
    project: {
      why: "A path, or a link in the project, could lead to any file of yours.",
      allows: () => false,
    },
  },
  models: {
    kind: MODELS,
    about: "Models and services of your own. Adds up.",
    otherwise: "none",
    add: allModels,
    project: {
      not: "services that Gyre or your own file knows, their models and key variables; keyEnv, urlEnv",
      why: "Else it could have your keys sent to an address of its own.",
      // Decided part by part in settings-models.ts.
      allows: () => true,
    },
  },
  catalogUrl: {
    kind: TEXT,
    about: "Where gyre models --refresh gets facts of models from.",
    otherwise: "nowhere",
    env: "GYRE_CATALOG_URL",
    project: usersOwnFacts,
  },
  catalogHash: {
    kind: TEXT,
    about: "The SHA-256 of the facts at catalogUrl, in hex.",
    otherwise: "what is behind # in catalogUrl",
    env: "GYRE_CATALOG_HASH",
    project: usersOwnFacts,
  },
  mcp: {
    kind: SERVERS,
    about: "MCP servers by name. Adds up.",
    otherwise: "none",
    // A project does not take the place of a server of the user's.
    add: (earlier, later) => ({ ...later, ...earlier }),
  },
  plugins: {
    kind: TEXTS,
    about: "Modules to load: paths that begin with ./, or packages. Adds up.",
    otherwise: "none",
    add: together,
    from: (names, folder, home) => names.map((name) => pluginPath(name, folder, home)),
  },
  hooks: {
    kind: HOOKS,
    about: "Programs that run at an event. Adds up.",
    otherwise: "none",
    add: allHooks,
  },
  diagnostics: {
    kind: YES_OR_NO,
    about: "Whether the model gets the errors that language servers find in files after a change.",
    standard: true,
    env: "GYRE_DIAGNOSTICS",
  },
  languageServers: {
    kind: LANGUAGE_SERVERS,
    about: "Language servers for other languages, by name. They run without a sandbox, too.",
    otherwise: "TypeScript and Python, where a server is installed and a sandbox holds",
    project: { why: "They are programs that run unasked.", allows: () => false },
  },
  editorMode: {
    kind: choiceKind(["normal", "vim"]),
    about: "How the prompt takes keys in the terminal: as most programs do, or as vim.",
    standard: "normal",
    env: "GYRE_EDITOR_MODE",
    project: usersOwnHands,
  },
  keys: {
    kind: KEYS,
    about: "Keys of the terminal, by what they do.",
    otherwise: "those that /help shows",
    project: usersOwnHands,
  },
  statusLine: {
    kind: STATUS_LINE,
    about: "The last row of the terminal: a text with fields, or a program that prints it.",
    otherwise: "model, mode, branch and jobs; context, cost and tokens",
    project: { why: "What runs unasked in your terminal is for you to say.", allows: () => false },
  },
  theme: {
    kind: THEME_NAME,
    about:
      "The colors of the terminal: auto asks it, light, dark, or the name of a theme of your own.",
    standard: "auto",
    env: "GYRE_THEME",
  },
  notify: {
    kind: choiceKind(["off", "bell", "desktop"]),
    about: "How the terminal says that it is done or asks: by its bell, or by a notification too.",
    standard: "off",
    env: "GYRE_NOTIFY",
  },
  notifyAfter: {
    kind: DURATION,
    about:
      "How long a prompt takes for its end to be said so. In a terminal that is not in front, any end is.",
    standard: 5,
    env: "GYRE_NOTIFY_AFTER",
  },
  screenReader: {
    kind: YES_OR_NO,
    about: "Whether the terminal gets plain lines, for what reads it aloud.",
    standard: false,
    env: "GYRE_SCREEN_READER",
    flag: "screen-reader",
  },
  formatCode: {
    kind: YES_OR_NO,
    about: "Whether the code of an answer is shown as a formatter would write it.",
    standard: true,
    env: "GYRE_FORMAT_CODE",
  },
};

export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName);

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

/** What is known of one setting, as the compiler can follow it. */
export function findSetting<K extends SettingName>(name: K): Setting<SettingValue<K>> {
  return SETTINGS[name];
}
