/** Values that are listed elsewhere or found at run time. */
export type CompletionKind =
  | "file"
  | "folder"
  | "mode"
  | "model"
  | "session"
  | "service"
  | "thinking"
  | "tools";

/**
 * Every option and command of the program, once: what is parsed, the help, the completions
 * and the manual page are all made from this.
 */
export interface OptionSpec {
  type: "string" | "boolean";
  short?: string;
  multiple?: boolean;
  /** Stands for the value in the help. */
  value?: string;
  /** The value where none follows. */
  bare?: string;
  /** Values that a shell can complete, or what it is to look for. */
  complete?: readonly string[] | CompletionKind;
  about: string;
}

export interface CommandSpec {
  about: string;
  /** What follows the name, for the help. */
  takes?: string;
  /** What the words do that it takes first, with what follows each. */
  verbs?: Readonly<Record<string, { takes?: string; about: string }>>;
  /** Names of options beside `help` and `version`. */
  options: readonly OptionName[];
  /** What an option does here, where that is not what it does elsewhere. */
  abouts?: Readonly<Record<string, string>>;
}

export const OPTIONS = {
  print: { type: "boolean", short: "p", about: "answer on stdout and end; piped input is added" },
  output: {
    type: "string",
    value: "FORMAT",
    complete: ["text", "json", "stream-json", "claude"],
    about:
      "text (the answer), json (one object), stream-json (each event), claude (as Claude Code's stream-json)",
  },
  schema: {
    type: "string",
    value: "FILE",
    complete: "file",
    about: "a JSON Schema that the answer has to fit",
  },
  model: {
    type: "string",
    short: "m",
    value: "NAME",
    complete: "model",
    about: 'a name ("sonnet"), or service/id; "sonnet:high" with a level of thinking',
  },
  "api-key": {
    type: "string",
    value: "KEY",
    about: "the key of the model's service, for this run; others see it in the list of processes",
  },
  "system-prompt": {
    type: "string",
    value: "TEXT",
    about: "in place of what the system prompt begins with",
  },
  "append-system-prompt": {
    type: "string",
    value: "TEXT",
    about: "added to the system prompt",
  },
  thinking: { type: "string", value: "LEVEL", complete: "thinking", about: "how much it thinks" },
  tools: {
    type: "string",
    value: "A,B",
    complete: "tools",
    about:
      "the tools it has, all of them by name; +NAME, -NAME: one more, one less; none: no tools",
  },
  mode: {
    type: "string",
    value: "MODE",
    complete: "mode",
    about: "what it may do unasked: plan, ask, auto-edit, auto (default in a sandbox), full",
  },
  allow: {
    type: "string",
    multiple: true,
    value: "RULE",
    about: "a rule for what it may do: 'shell(npm test)'",
  },
  deny: { type: "string", multiple: true, value: "RULE", about: "a rule for what it may not do" },
  "max-turns": { type: "string", value: "N", about: "ends the run after N answers" },
  "max-cost": { type: "string", value: "USD", about: "ends the run when it has cost this much" },
  timeout: { type: "string", value: "SECONDS", about: "ends the run after this time" },
  cwd: { type: "string", value: "FOLDER", complete: "folder", about: "the folder to work in" },
  "add-dir": {
    type: "string",
    multiple: true,
    value: "FOLDER",
    complete: "folder",
    about: "a further folder that belongs to the workspace",
  },
  worktree: {
    type: "boolean",
    about: "work in a new worktree of the git repository, on a branch of its own",
  },
  continue: { type: "boolean", short: "c", about: "go on with the last session of this folder" },
  resume: {
    type: "string",
    short: "r",
    value: "[ID]",
    bare: "",
    complete: "session",
    about: "go on with a session; without an ID: choose one",
  },
  fork: { type: "boolean", about: "go on in a copy of that session" },
  history: {
    type: "string",
    value: "FILE",
    complete: "file",
    about: "a session file to go on with, made if it is missing",
  },
  "no-session": { type: "boolean", about: "write nothing down" },
  sandbox: {
    type: "string",
    value: "KIND",
    complete: ["auto", "none"],
    about: "what commands are confined by",
  },
  network: { type: "boolean", about: "let commands reach the network" },
  trust: { type: "boolean", about: "use the settings of this folder, this once" },
  config: {
    type: "string",
    value: "FILE",
    complete: "file",
    about: "your settings, in place of the usual file",
  },
  verbose: {
    type: "string",
    value: "[FILE]",
    complete: "file",
    bare: "",
    about: "write all that is sent and received to stderr or a file, without keys",
  },
  log: {
    type: "string",
    value: "FILE",
    complete: "file",
    about: "add a line for each call to a file",
  },
  quiet: { type: "boolean", short: "q", about: "no progress on stderr" },
  draft: {
    type: "string",
    value: "TEXT",
    about: "in a terminal: text that the prompt begins with, to be finished by hand",
  },
  "screen-reader": { type: "boolean", about: "plain lines, for what reads a terminal aloud" },
  port: {
    type: "string",
    value: "N",
    about: "the port for WebSocket and HTTP, 7420 by default; 0: a free one",
  },
  host: {
    type: "string",
    value: "ADDRESS",
    about: "the address to listen on, 127.0.0.1 by default: this machine alone",
  },
  "tcp-port": { type: "string", value: "N", about: "another port, for plain TCP" },
  "client-keys": {
    type: "boolean",
    about: "let clients send a key of their own with a request; for this machine alone",
  },
  "health-port": {
    type: "string",
    value: "N",
    about: "another port, for /healthz alone, which answers while the server is busy",
  },
  "health-limit": {
    type: "string",
    value: "SECONDS",
    about: "how long the server may be busy before /healthz there answers 503, 10 by default",
  },
  listen: {
    type: "string",
    multiple: true,
    value: "URL",
    about: "another address to listen at: tcp://127.0.0.1:7421",
  },
  "token-file": {
    type: "string",
    value: "FILE",
    complete: "file",
    about: "the token that clients need, made if it is missing",
  },
  token: {
    type: "string",
    value: "TOKEN",
    about: "the token of the server; others see it in the list of processes",
  },
  "allow-host": {
    type: "string",
    multiple: true,
    value: "NAME",
    about: "a name that clients call it by: gyre.example.org",
  },
  "allow-origin": {
    type: "string",
    multiple: true,
    value: "ORIGIN",
    about: "pages that may use it: https://example.org",
  },
  models: {
    type: "string",
    value: "A,B",
    about: "the models that clients may use; the first is the default",
  },
  root: {
    type: "string",
    multiple: true,
    value: "FOLDER",
    complete: "folder",
    about: "a folder that sessions may work in or below; its own folder by default",
  },
  "allow-unsandboxed": {
    type: "boolean",
    about: "let commands run outside of the sandbox, where they can read keys",
  },
  stdio: { type: "boolean", about: "on stdin and stdout, in place of ports" },
  drain: {
    type: "string",
    value: "SECONDS",
    about: "when asked to end, gives what runs this time, 10 by default",
  },
  idle: {
    type: "string",
    value: "SECONDS",
    about: "closes sessions without a client after this time, 900 by default",
  },
  database: {
    type: "string",
    value: "URL",
    about:
      "where the runs are: file:PATH or postgres://USER@HOST/NAME; by default GYRE_DATABASE, else file:./runs.db",
  },
  worker: { type: "boolean", about: "work on runs of the database, which is the default" },
  "no-worker": { type: "boolean", about: "answer clients alone, and leave runs to other servers" },
  pool: {
    type: "string",
    value: "NAME",
    about:
      "the servers that sessions stay with, host:NAME by default: their files are on this machine",
  },
  status: {
    type: "string",
    value: "A,B",
    complete: ["queued", "ready", "running", "waiting", "aside", "ended"],
    about: "only those with one of these",
  },
  tenant: { type: "string", value: "NAME", about: "only those of this tenant" },
  agent: { type: "string", value: "NAME", about: "only those of this agent" },
  stuck: { type: "boolean", about: "only those that no worker will claim, and why" },
  since: { type: "string", value: "TIME", about: "only those started since: 24h, 7d, a date" },
  after: { type: "string", value: "N", about: "only what follows the event of this number" },
  reason: { type: "string", value: "TEXT", about: "why, for the model" },
  older: { type: "string", value: "TIME", about: "what ended longer ago than this: 30d" },
  json: { type: "boolean", about: "print JSON" },
  all: { type: "boolean", about: "show all" },
  refresh: { type: "boolean", about: "first get the facts that catalogUrl of the settings names" },
  fast: { type: "boolean", about: "without delays" },
  keep: { type: "boolean", about: "leave the project's folder in place" },
  command: {
    type: "string",
    value: "PROGRAM",
    about: "a program that prints the key, in place of a key",
  },
  env: {
    type: "string",
    multiple: true,
    value: "NAME=VALUE",
    about: "a variable for the program of an MCP server",
  },
  header: {
    type: "string",
    multiple: true,
    value: "TEXT",
    about: "a header for an MCP server at an address: 'X-Key: ${KEY}'",
  },
  project: { type: "boolean", about: "in the .mcp.json of the folder, not in your settings" },
  remove: { type: "boolean", about: "do not trust the folder any more" },
  show: { type: "boolean", about: "show what would be trusted, and end" },
  help: { type: "boolean", short: "h", about: "show this" },
  version: { type: "boolean", short: "v", about: "show the version" },
} as const satisfies Record<string, OptionSpec>;

export type OptionName = keyof typeof OPTIONS;

/** Options of a server that mean something only where there is a port. */
export const PORT_OPTIONS = [
  "port",
  "host",
  "tcp-port",
  "health-port",
  "health-limit",
  "listen",
  "token-file",
  "allow-host",
  "allow-origin",
] as const satisfies OptionName[];

/** What a run of the agent is set up with, however it is talked to. */
const SETUP = [
  "model",
  "thinking",
  "system-prompt",
  "append-system-prompt",
  "tools",
  "mode",
  "allow",
  "deny",
  "max-turns",
  "max-cost",
  "cwd",
  "add-dir",
  "sandbox",
  "network",
  "trust",
  "config",
  "no-session",
  "verbose",
  "log",
] as const;

export const COMMANDS = {
  run: {
    about: "answer a prompt; the command that is meant where none is named",
    takes: '["PROMPT"] [@FILE ...]',
    options: [
      "print",
      "output",
      "schema",
      "worktree",
      "continue",
      "resume",
      "fork",
      "history",
      "quiet",
      "draft",
      "screen-reader",
      "timeout",
      "database",
      "api-key",
      ...SETUP,
    ],
    abouts: {
      database:
        "with --print: keep the session in a database: file:PATH, postgres://USER@HOST/NAME",
    },
  },
  rpc: { about: "for your own programs: lines of JSON on stdin and stdout", options: SETUP },
  acp: { about: "for editors: the Agent Client Protocol on stdin and stdout", options: SETUP },
  serve: {
    about: "models and sessions for other programs, over WebSocket, HTTP and TCP",
    options: [
      ...PORT_OPTIONS,
      "stdio",
      "drain",
      "idle",
      "quiet",
      "models",
      "root",
      "allow-unsandboxed",
      "client-keys",
      "database",
      "worker",
      "no-worker",
      "pool",
      ...SETUP,
    ],
    abouts: {
      database:
        "keep sessions in a database, file:PATH or postgres://USER@HOST/NAME, which other servers share",
      quiet: "no log on stderr, but for errors",
      tools: "the tools that clients may use, by name; none: no tools",
      mode: "the most that sessions may do without being asked about, ask by default",
      trust: "use the settings of the server's own folder, this once",
    },
  },
  attach: {
    about: "the terminal for a session that runs on a server",
    takes: "ADDRESS [SESSION]",
    options: [
      "token-file",
      "token",
      "cwd",
      "model",
      "thinking",
      "mode",
      "draft",
      "screen-reader",
      "config",
    ],
    abouts: {
      "token-file":
        "the token of the server; by default GYRE_TOKEN, then that of this computer's own",
      cwd: "for a new session: its folder, at the server",
      model: "for a new session: the model to use",
      thinking: "for a new session: how much it thinks",
      mode: "for a new session: what it may do unasked, as far as the server allows it",
    },
  },
  replay: {
    about: "send the prompts of a session again, in a copy, and compare",
    takes: "ID [-- COMMAND]",
    options: ["keep", ...SETUP.filter((name) => name !== "cwd")],
    abouts: { keep: "keep the copy, and say where it is" },
  },
  bisect: {
    about: "find the change of a session after which a command fails",
    takes: "ID -- COMMAND",
    options: [],
  },
  models: {
    about: "list models, those that are usable first",
    takes: "[PART OF A NAME]",
    options: ["json", "all", "refresh", "config", "trust", "cwd"],
    abouts: { all: "also those of services without a key" },
  },
  sessions: {
    about: "list, show, fork, import or remove sessions",
    takes: "[show|path|import|fork|check|unlock|remove ID|FILE]",
    verbs: {
      show: { takes: "ID|FILE", about: "print what was said and done" },
      path: { takes: "ID", about: "print where its file is" },
      import: { takes: "FILE", about: "take over a session file, of gyre or of pi" },
      fork: { takes: "ID", about: "make a copy, and print its id" },
      check: { takes: "ID|FILE", about: "look for damage" },
      unlock: { takes: "ID", about: "remove a lock that was left behind" },
      remove: { takes: "ID", about: "delete it" },
    },
    options: ["json", "all", "cwd"],
    abouts: { all: "those of all folders, not of this one alone" },
  },
  runs: {
    about: "look after durable runs: list, watch, approve, retry, export and others",
    takes: "[VERB [ID]]",
    verbs: {
      list: { about: "list runs, the newest first (the default)" },
      show: { takes: "ID", about: "print how far it is, what it cost, what it waits for" },
      watch: { takes: "ID", about: "print what happens, up to its end" },
      approve: { takes: "ID CALL", about: "let a call run that waits for a decision" },
      deny: { takes: "ID CALL", about: "do not let it run" },
      answer: { takes: "ID CALL TEXT", about: "answer the question of a call" },
      steer: { takes: "ID TEXT", about: "interrupt it with a message" },
      abort: { takes: "ID", about: "end it, wherever it is worked on" },
      retry: { takes: "ID", about: "go on with one that failed or was set aside" },
      export: { takes: "ID FILE", about: "write its session to a file" },
      prune: { about: "delete runs that ended long ago: --older 30d" },
      schedules: { about: "list schedules, which start runs at their times" },
      pause: { takes: "SCHEDULE", about: "have a schedule start no runs for now" },
      resume: { takes: "SCHEDULE", about: "have it go on with its next time" },
      unschedule: { takes: "SCHEDULE", about: "delete it" },
      workers: { about: "list workers" },
      release: { takes: "WORKER", about: "declare a worker dead: others go on at once" },
      migrate: { about: "make the tables, or bring them up to date" },
      doctor: { about: "report what works and what does not" },
    },
    options: [
      "database",
      "json",
      "status",
      "tenant",
      "agent",
      "stuck",
      "since",
      "all",
      "after",
      "reason",
      "older",
      "quiet",
    ],
    abouts: { all: "all of them, not the newest 100 alone" },
  },
  doctor: {
    about: "report what works here and what does not",
    options: ["json", "config", "trust", "cwd"],
  },
  login: { about: "store the key of a service", takes: "SERVICE", options: ["command"] },
  logout: { about: "remove the key of a service", takes: "SERVICE", options: [] },
  trust: {
    about: "trust the settings of a folder",
    takes: "[FOLDER]",
    options: ["show", "remove"],
  },
  mcp: {
    about: "list, add or remove MCP servers, log in to one, or be one",
    takes: "[list|add NAME|remove NAME|login NAME|logout NAME|trust NAME|serve]",
    verbs: {
      list: { about: "start each server and print what it offers (the default)" },
      add: { takes: "NAME URL", about: "add a server to your settings: a URL, or COMMAND ARGS" },
      remove: { takes: "NAME", about: "remove it from them, and forget its login" },
      login: { takes: "NAME", about: "log in to a server, with a browser" },
      logout: { takes: "NAME", about: "forget the login" },
      trust: { takes: "NAME", about: "show the tools of a server that changed, and trust them" },
      serve: { about: "be a server: offer tools that look at files to another agent" },
    },
    options: [
      "json",
      "env",
      "header",
      "project",
      "tools",
      "mode",
      "allow",
      "deny",
      "cwd",
      "sandbox",
      "network",
      "trust",
      "config",
    ],
  },
  config: {
    about: "show the settings, and where each comes from",
    options: ["json", "config", "trust", "cwd"],
  },
  completions: { about: "print completions for a shell", takes: "bash|zsh|fish", options: [] },
  demo: {
    about: "watch the agent fix a small project: a scripted model, real tools",
    options: ["fast", "keep", "model"],
  },
  help: { about: "show this, or the help of a command", takes: "[COMMAND]", options: [] },
} as const satisfies Record<string, CommandSpec>;

export type CommandName = keyof typeof COMMANDS;

/** Whether a word names a command. A run has none: it is what is meant where none is named. */
export function isTypedCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name) && name !== "run";
}

/** What the command line said, by name of the option. */
export type Values = {
  [K in OptionName]?: (typeof OPTIONS)[K] extends { multiple: true }
    ? string[]
    : (typeof OPTIONS)[K]["type"] extends "boolean"
      ? boolean
      : string;
};
