import type { AgentTool } from "@gyre/agent";
import type { Model } from "@gyre/ai";
import type { Fetch } from "@gyre/ai/providers";
import type { Access, HostList, PermissionMode } from "@gyre/tools";
import { CodingAgentError } from "../core/errors.ts";
import { isMcpTool } from "../mcp/tools.ts";
import type { Draft } from "../settings/file.ts";
import type { SettingsPolicy } from "../settings/load.ts";
import { isInFolders } from "../settings/project-file.ts";
import { shownBriefly } from "../settings/shown.ts";
import type { Settings } from "../settings/settings.ts";
import { SETTING_NAMES, type SettingName } from "../settings/table.ts";
import { isModeWithin, lowerMode, MODE_NAMES, modelValue } from "../text/choices.ts";
import { type Ceiling, findDecision } from "./decisions.ts";
import { POLICY_KEYS, type PolicyRules } from "./table.ts";

/** The hosts of a policy, ready to be compared with. */
export interface PolicyHosts {
  domains: HostList | undefined;
  models: HostList | undefined;
}

const BAD_REQUEST = 400;
const HTTPS_PORT = 443;
const HTTP_PORT = 80;

/**
 * What an administrator allows at most. It holds above files, variables, the command line, sessions, clients and
 * answers: whatever they say is lowered to it, or refused.
 */
export class Policy implements SettingsPolicy {
  readonly path: string;
  readonly rules: PolicyRules;
  readonly #hosts: PolicyHosts;
  readonly #ceiling: Ceiling;

  constructor(path: string, rules: PolicyRules, hosts: PolicyHosts) {
    this.path = path;
    this.rules = rules;
    this.#hosts = hosts;
    const { domains } = hosts;
    this.#ceiling = {
      maxMode: rules.maxMode ?? "full",
      needsSandbox: rules.sandbox === "required",
      coversDomain: domains && ((domain) => domains.covers(domain)),
      folders: rules.folders,
      mcp: rules.mcp ?? true,
      plugins: rules.plugins ?? true,
      hooks: rules.hooks ?? true,
    };
  }

  get added(): Pick<Settings, "ask" | "deny"> {
    const { ask, deny } = this.rules;
    return { ...(ask && { ask }), ...(deny && { deny }) };
  }

  get refusesProjects(): string | undefined {
    return this.rules.projectTrust === false
      ? `The policy ${this.path} does not allow to trust projects.`
      : undefined;
  }

  lower(settings: Settings): { settings: Settings; refused: readonly string[] } {
    const lowered: Draft = { ...settings };
    const refused = SETTING_NAMES.flatMap((name) => this.#lowerOne(lowered, name) ?? []);
    return { settings: lowered, refused };
  }

  #lowerOne<K extends SettingName>(settings: Draft, name: K): string | undefined {
    const decision = findDecision(name);
    const value = settings[name];
    if (typeof decision === "string" || value === undefined) return undefined;
    const allowed = decision.lower(value, this.#ceiling);
    if (isSame(allowed, value)) return undefined;
    if (allowed === undefined) delete settings[name];
    else settings[name] = allowed;
    const keys = decision.by.filter((key) => this.rules[key] !== undefined);
    const why = keys.map((key) => `${key} is ${shownBriefly(this.rules[key])}`).join(", ");
    const shown = allowed === undefined || isEmpty(allowed) ? "" : `: ${shownBriefly(allowed)} is`;
    return `${name} is ${shownBriefly(value)}, which the policy ${this.path} does not allow${shown}. There, ${why}.`;
  }

  /** The modes that may be chosen. */
  get modes(): readonly PermissionMode[] {
    return MODE_NAMES.filter((mode) => isModeWithin(mode, this.#ceiling.maxMode));
  }

  lowerMode(mode: PermissionMode): PermissionMode {
    return lowerMode(mode, this.#ceiling.maxMode);
  }

  /** Throws an error with a message for the user. */
  assertMode(mode: PermissionMode): void {
    if (this.modes.includes(mode)) return;
    const most = `The policy ${this.path} allows ${this.modes.join(", ")}`;
    throw new CodingAgentError("bad_option", `Mode "${mode}" is not allowed. ${most}.`);
  }

  /** Throws an error with a message for the user. */
  assertFolder(folder: string): void {
    if (this.allowsFolder(folder)) return;
    const most = `The policy ${this.path} allows ${this.rules.folders?.join(", ")}`;
    throw new CodingAgentError("bad_option", `${folder} is not a folder to work in. ${most}.`);
  }

  allowsFolder(folder: string): boolean {
    return !this.#ceiling.folders || isInFolders(folder, this.#ceiling.folders);
  }

  allowsModel(model: Pick<Model, "provider" | "id">): boolean {
    const { models } = this.rules;
    const name = modelValue(model);
    return models?.some((pattern) => createPattern(pattern).test(name)) ?? true;
  }

  /** Throws an error with a message for the user. */
  assertModel(model: Pick<Model, "provider" | "id">): void {
    if (this.allowsModel(model)) return;
    const most = `The policy ${this.path} allows ${this.rules.models?.join(", ") || "none"}`;
    const what = `The model ${modelValue(model)} is not allowed. ${most}. Choose another with --model.`;
    const cause = Object.assign(new Error(what), { code: "model_not_found" });
    throw new CodingAgentError("bad_option", what, { cause });
  }

  /** The way to models, as far as the policy allows. */
  guardFetch(base: Fetch): Fetch {
    const { models } = this.#hosts;
    if (!models) return base;
    return async (address, init) => {
      if (isListed(address, models)) return base(address, init);
      const { host } = new URL(address);
      const message = `The policy ${this.path} does not allow to ask models at ${host}.`;
      // An answer of a service is not asked for again, as a connection that failed would be.
      return new Response(JSON.stringify({ error: { message } }), { status: BAD_REQUEST });
    };
  }

  /** Hosts that commands may reach at most; absent: all. */
  get mostDomains(): readonly string[] | undefined {
    const { network, domains } = this.rules;
    return network === false ? [] : domains;
  }

  /** What permissions deny because of it, whatever else allows it. */
  get guards(): {
    confinedOnly?: string;
    forbids: (tool: AgentTool, access: Access | undefined) => string | undefined;
  } {
    const { path } = this;
    return {
      ...(this.#ceiling.needsSandbox && {
        confinedOnly: `The policy ${path} denies commands outside of the sandbox.`,
      }),
      forbids: ({ name }, access) => {
        const { domains } = this.#hosts;
        if (!domains || access?.kind !== "network" || isMcpTool(name)) return undefined;
        const other = access.targets.find((target) => !isListed(target, domains));
        return other && `The policy ${path} does not allow to reach ${other}.`;
      },
    };
  }

  /** What it says, for people, on a line. */
  describe(): string {
    const set = POLICY_KEYS.filter((key) => this.rules[key] !== undefined);
    return set.map((key) => `${key} ${shownBriefly(this.rules[key])}`).join(", ") || "nothing";
  }
}

/** Whether the host of an address is listed; one that cannot be read is not. */
function isListed(address: string, hosts: HostList): boolean {
  const target = readTarget(address);
  return target !== undefined && hosts.allows(target.host, target.port);
}

function readTarget(address: string): { host: string; port: number } | undefined {
  const ssh = /^(?:[^@/\s:]+@)?([^@/\s:]+):(?!\/\/)/.exec(address)?.[1];
  if (ssh !== undefined) return { host: ssh, port: HTTPS_PORT };
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname, port } = new URL(address);
  if (hostname === "") return undefined;
  if (port !== "") return { host: hostname, port: Number(port) };
  return { host: hostname, port: protocol === "http:" ? HTTP_PORT : HTTPS_PORT };
}

/** A name of models in which `*` stands for anything. */
function createPattern(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
