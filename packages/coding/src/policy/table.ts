import type { PermissionMode } from "@gyre/tools";
import { choiceKind, DOMAINS, type Kind, TEXTS, YES_OR_NO } from "../settings/table.ts";
import { MODE_NAMES } from "../text/choices.ts";

/** What an administrator's file says. What it does not name is not restricted. */
export interface PolicyRules {
  readonly maxMode?: PermissionMode;
  readonly sandbox?: "required";
  readonly network?: boolean;
  readonly domains?: readonly string[];
  readonly folders?: readonly string[];
  readonly ask?: readonly string[];
  readonly deny?: readonly string[];
  readonly models?: readonly string[];
  readonly modelHosts?: readonly string[];
  readonly mcp?: boolean;
  readonly plugins?: boolean;
  readonly hooks?: boolean;
  readonly projectTrust?: boolean;
}

export type PolicyKey = keyof PolicyRules;

interface PolicyEntry<T> {
  readonly kind: Kind<T>;
  readonly about: string;
}

/** Every key of the file, once: what is checked, described in the JSON Schema and listed in the docs. */
export const POLICY: {
  readonly [K in PolicyKey]-?: PolicyEntry<NonNullable<PolicyRules[K]>>;
} = {
  maxMode: {
    kind: choiceKind(MODE_NAMES),
    about: "The mode that allows most: plan, ask, auto-edit, auto, full, in this order.",
  },
  sandbox: {
    kind: choiceKind(["required"]),
    about: "Commands that no sandbox confines are denied, and so is leaving it.",
  },
  network: {
    kind: YES_OR_NO,
    about: "false: neither commands nor fetch and git push reach any host. Needs sandbox.",
  },
  domains: {
    kind: DOMAINS,
    about: "The hosts that commands, fetch and git push may reach at most. Needs sandbox.",
  },
  folders: {
    kind: TEXTS,
    about: "The folders that may be worked in, added and written to, with all that is in them.",
  },
  ask: { kind: TEXTS, about: "Rules for what is asked about, whatever else allows it." },
  deny: { kind: TEXTS, about: "Rules for what is denied, whatever else allows it." },
  models: {
    kind: TEXTS,
    about: 'The models that may be asked, as service/id; * is anything: "anthropic/*".',
  },
  modelHosts: {
    kind: DOMAINS,
    about: "The hosts that models may be asked at, whatever variables and settings say.",
  },
  mcp: { kind: YES_OR_NO, about: "false: no MCP server is used." },
  plugins: { kind: YES_OR_NO, about: "false: no plugin is loaded." },
  hooks: { kind: YES_OR_NO, about: "false: no hook runs, and no program prints the status line." },
  projectTrust: {
    kind: YES_OR_NO,
    about: "false: neither the settings nor the MCP servers of a project are used.",
  },
};

export const POLICY_KEYS: readonly PolicyKey[] = Object.keys(POLICY).filter(isPolicyKey);

export function isPolicyKey(name: string): name is PolicyKey {
  return Object.hasOwn(POLICY, name);
}

/** The JSON Schema of the file. */
export function policySchema(): Readonly<Record<string, unknown>> {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Policy of gyre",
    description: "What an administrator allows at most: policy.json.",
    type: "object",
    properties: {
      $schema: { description: "Where this schema is.", type: "string" },
      ...Object.fromEntries(
        POLICY_KEYS.map((key) => [
          key,
          { description: POLICY[key].about, ...POLICY[key].kind.schema },
        ]),
      ),
    },
    dependentRequired: { network: ["sandbox"], domains: ["sandbox"] },
    additionalProperties: false,
  };
}
