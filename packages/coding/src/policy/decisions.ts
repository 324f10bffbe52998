import type { PermissionMode } from "@gyre/tools";
import { isInFolders } from "../settings/project-file.ts";
import type { SettingName, SettingValue } from "../settings/table.ts";
import { lowerMode } from "../text/choices.ts";
import type { PolicyKey } from "./table.ts";

/** The most that settings may be. */
export interface Ceiling {
  readonly maxMode: PermissionMode;
  readonly needsSandbox: boolean;
  /** Whether an entry of `domains` is within those that are allowed; absent: all are. */
  readonly coversDomain: ((domain: string) => boolean) | undefined;
  /** Real paths. Absent: all. */
  readonly folders: readonly string[] | undefined;
  readonly mcp: boolean;
  readonly plugins: boolean;
  readonly hooks: boolean;
}

/** What a policy does about a setting. */
export type PolicyDecision<T> =
  /** Nothing: it takes effect only within what the other settings and the rules of a policy leave. */
  | "free"
  /** It names models, each of which is checked when it is found. */
  | "models"
  | {
      /** The keys of a policy that it follows from. */
      readonly by: readonly PolicyKey[];
      /** As much of a value as is allowed; nothing where none of it is. */
      readonly lower: (value: T, most: Ceiling) => T | undefined;
    };

const onlyFolders: PolicyDecision<readonly string[]> = {
  by: ["folders"],
  lower: (given, { folders }) =>
    folders ? given.filter((folder) => isInFolders(folder, folders)) : given,
};

/** Every setting: one without a decision does not compile. */
export const DECISIONS: {
  readonly [K in SettingName]: PolicyDecision<SettingValue<K>>;
} = {
  model: "models",
  fallbackModels: "models",
  thinking: "free",
  thinkingBudgets: "free",
  cacheRetention: "free",
  // A rule of the policy denies a tool.
  tools: "free",
  mode: { by: ["maxMode"], lower: (mode, { maxMode }) => lowerMode(mode, maxMode) },
  // The policy's own rules to ask and to deny take precedence over these.
  allow: "free",
  ask: "free",
  deny: "free",
  sandbox: {
    by: ["sandbox"],
    lower: (sandbox, { needsSandbox }) => (needsSandbox ? "auto" : sandbox),
  },
  network: {
    by: ["network", "domains"],
    lower: (network, { coversDomain }) => network && coversDomain === undefined,
  },
  domains: {
    by: ["network", "domains"],
    lower: (domains, { coversDomain }) =>
      coversDomain ? domains.filter((domain) => coversDomain(domain)) : domains,
  },
  addDirs: onlyFolders,
  writable: onlyFolders,
  // It hides more than is hidden anyway.
  hidden: "free",
  // A layer is in the sandbox.
  effects: "free",
  maxTurns: "free",
  maxCost: "free",
  raceTest: "free",
  timeout: "free",
  firstByteTimeout: "free",
  connectionTimeout: "free",
  contentTimeout: "free",
  retryAttempts: "free",
  retryTime: "free",
  steeringMode: "free",
  followUpMode: "free",
  systemPrompt: "free",
  instructions: "free",
  appendSystemPrompt: "free",
  instructionFiles: "free",
  skills: "free",
  facts: "free",
  oracle: "models",
  // It reaches other hosts than the ones that are allowed.
  webSearch: {
    by: ["network", "domains"],
    lower: (webSearch, { coversDomain }) => (coversDomain ? undefined : webSearch),
  },
  smallModel: "models",
  compactAt: "free",
  sessions: "free",
  log: "free",
  models: "models",
  catalogUrl: "free",
  catalogHash: "free",
  mcp: { by: ["mcp"], lower: (servers, { mcp }) => (mcp ? servers : undefined) },
  plugins: { by: ["plugins"], lower: (names, { plugins }) => (plugins ? names : undefined) },
  hooks: { by: ["hooks"], lower: (given, { hooks }) => (hooks ? given : undefined) },
  // Those that are known run in a sandbox alone.
  diagnostics: "free",
  // They would run where there is no sandbox, too.
  languageServers: {
    by: ["sandbox"],
    lower: (servers, { needsSandbox }) => (needsSandbox ? undefined : servers),
  },
  editorMode: "free",
  keys: "free",
  // A template runs nothing.
  statusLine: {
    by: ["hooks"],
    lower: (line, { hooks }) => (hooks || typeof line === "string" ? line : undefined),
  },
  theme: "free",
  notify: "free",
  notifyAfter: "free",
  screenReader: "free",
  formatCode: "free",
};

/** What is decided about one setting, as the compiler can follow it. */
export function findDecision<K extends SettingName>(name: K): PolicyDecision<SettingValue<K>> {
  return DECISIONS[name];
}
