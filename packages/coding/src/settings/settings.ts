import type { QueueMode } from "@gyre/agent";
import type { CacheRetention, ThinkingBudgets, ThinkingLevel } from "@gyre/ai";
import type { PermissionMode } from "@gyre/tools";
import type { KeySettings } from "./terminal/key-actions.ts";
import type { StatusLineSetting } from "./terminal/status-line.ts";

/**
 * All that can be set, by any source: the user's file, then the project's once it is
 * trusted, then the environment, then the command line. Later ones replace earlier ones
 * key by key, but for `allow`, `ask`, `deny`, `addDirs`, `models`, `mcp`, `plugins` and `hooks`, which add up.
 * What each may be is in settings-table.ts.
 */
/** A program that finds errors in files by the Language Server Protocol. */
export interface LanguageServerSetting {
  /** The program and its arguments. */
  command: readonly string[];
  /** Ids of languages by the endings of files: `{ ".go": "go" }`. */
  files: Readonly<Record<string, string>>;
}

export interface Settings {
  /** A name ("sonnet"), or service/id. */
  model?: string;
  /** Asked in this order when the model cannot answer. */
  fallbackModels?: readonly string[];
  thinking?: ThinkingLevel;
  /** Tokens for each level of thinking. */
  thinkingBudgets?: ThinkingBudgets;
  /** How long services keep what requests begin with. */
  cacheRetention?: CacheRetention;
  /** Names of tools. */
  tools?: readonly string[];
  mode?: PermissionMode;
  allow?: readonly string[];
  ask?: readonly string[];
  deny?: readonly string[];
  /** `auto`: the one of this system, and none where there is none. */
  sandbox?: "auto" | "none";
  /** Whether commands reach the network. */
  network?: boolean;
  /** Hosts that commands without a network reach. */
  domains?: readonly string[];
  /** Further folders that belong to the workspace; absolute once loaded. */
  addDirs?: readonly string[];
  /** Folders outside of the project that commands may change; absolute once loaded. */
  writable?: readonly string[];
  /** Further places that commands in the sandbox may not read; absolute once loaded. */
  hidden?: readonly string[];
  /** False: commands are asked about before they run, not with what they did in a layer. */
  effects?: boolean;
  maxTurns?: number;
  /** US dollars. */
  maxCost?: number;
  /** The command by which `/race` compares. */
  raceTest?: string;
  /** Seconds. */
  timeout?: number;
  /** Seconds until the first byte of a response. */
  firstByteTimeout?: number;
  /** Seconds between two bytes of a response. */
  connectionTimeout?: number;
  /** Seconds without content of a response. */
  contentTimeout?: number;
  /** How often a request is sent at most. */
  retryAttempts?: number;
  /** Seconds. */
  retryTime?: number;
  /** How many steering messages are sent at once. */
  steeringMode?: QueueMode;
  /** How many queued messages are sent at once. */
  followUpMode?: QueueMode;
  /** In place of what the system prompt begins with. */
  systemPrompt?: string;
  /** Added to the system prompt. */
  instructions?: string;
  /** Added to the system prompt after `instructions`. */
  appendSystemPrompt?: string;
  /** False: AGENTS.md and its like are not read. */
  instructionFiles?: boolean;
  /** False: skills are not looked for. */
  skills?: boolean;
  /** False: the model gets no facts of the start with the first prompt. */
  facts?: boolean;
  /** A model for the tool `oracle`. */
  oracle?: string;
  /** What searches the web: `service`, or the address of a search engine with `{query}` in it. */
  webSearch?: string;
  /** A model that summarizes long results. */
  smallModel?: string;
  /** Tokens. */
  compactAt?: number;
  /** False: nothing is written down. */
  sessions?: boolean;
  /** A file for one line a model call and tool call, without content; absolute once loaded. */
  log?: string;
  /** Models and services of one's own, as in docs/models.md. */
  models?: Readonly<Record<string, unknown>>;
  /** Where `gyre models --refresh` gets facts of models from. */
  catalogUrl?: string;
  /** The SHA-256 of those facts, in hex. */
  catalogHash?: string;
  /** Servers of the Model Context Protocol by name, as in docs/mcp.md. */
  mcp?: Readonly<Record<string, unknown>>;
  /** Modules to load: files, or packages as places in a `node_modules`; absolute once loaded. */
  plugins?: readonly string[];
  /** Programs that run at an event, as in docs/plugins.md. */
  hooks?: Readonly<Record<string, unknown>>;
  /** Whether the model gets the errors that language servers find in files after a change. */
  diagnostics?: boolean;
  /** Language servers beside those that are known, by name, as in docs/diagnostics.md. */
  languageServers?: Readonly<Record<string, LanguageServerSetting>>;
  /** How the prompt takes keys. */
  editorMode?: "normal" | "vim";
  /** Keys of the terminal by what they do, as in docs/terminal.md. */
  keys?: KeySettings;
  /** The last row of the terminal: a template, or a program that prints it. */
  statusLine?: StatusLineSetting;
  /** The colors of the terminal: auto, light, dark, or the name of a file of one's own. */
  theme?: string;
  /** How the terminal says that it is done, or that it asks. */
  notify?: "off" | "bell" | "desktop";
  /** Seconds after which the end of a prompt is worth it. */
  notifyAfter?: number;
  /** Lines one after the other, for what reads a terminal aloud. */
  screenReader?: boolean;
  /** Whether finished code of an answer is shown as a formatter would write it. */
  formatCode?: boolean;
}
