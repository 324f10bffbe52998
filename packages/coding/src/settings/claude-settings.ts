import { isRecord } from "@gyre/ai";
import type { Environment } from "../core/environment.ts";
import { RULE_LISTS, type RuleEffect, type RulePlace, translateRule } from "./claude/rules.ts";
import { type FileContent, parseJson, readSmallFile } from "./file.ts";
import type { SettingsFile, SettingsLayer, SettingsOptions } from "./load.ts";
import { oneLine, type SettingsProblem, settingsWarning } from "./problem.ts";
import {
  type ClaudePlace,
  claudeTrustKey,
  findClaudeFiles,
  type FoundFile,
  readProjectFile,
  realPath,
} from "./project-file.ts";
import {
  findTrust,
  readTrustFile,
  type Trust,
  type TrustedFile,
  trustFile,
  TrustFileError,
} from "./trust.ts";
import type { TrustOffer } from "./trust-offer.ts";

/** What settings files of Claude Code set. */
export interface ClaudeSettings {
  readonly layers: readonly SettingsLayer[];
  readonly files: readonly SettingsFile[];
  readonly problems: readonly SettingsProblem[];
}

/**
 * The rules of Claude Code's settings files. Those that deny or ask only narrow what is done, and always hold; those of
 * a project that allow something hold if it is trusted.
 */
export async function readClaudeSettings(options: SettingsOptions): Promise<ClaudeSettings> {
  const { env, home, policy, quietAboutTrust = false, trustOnce = false } = options;
  const isQuiet = quietAboutTrust || options.quietAboutShared === true;
  const found = await readClaudeFiles(options);
  const problems = found.flatMap(({ unused }) => unused ?? []).map(settingsWarning);
  const refusal = policy?.refusesProjects;
  const trust = trustOnce ? "trusted" : findClaudeTrust(found, env, home);
  const isTrusted = refusal === undefined && trust === "trusted";
  const files: SettingsFile[] = [];
  const layers = found.map(({ path, project, rules, written }): SettingsLayer => {
    const isHeld = project !== undefined && written.length > 0 && !isTrusted;
    const state = trust === "changed" ? "changed" : "not trusted";
    files.push({ of: "Claude Code file", path, state: isHeld ? state : "used" });
    if (isHeld && !isQuiet) {
      const why =
        refusal ??
        (trust === "changed"
          ? "They have changed since they were trusted. To see and trust them: gyre trust"
          : trust === "unknown"
            ? "Its folder is not trusted. To see and trust them: gyre trust"
            : trust);
      problems.push(settingsWarning(`${path}: the rules that allow something do not hold. ${why}`));
    }
    const { ask, deny } = rules;
    const allow = isHeld ? [] : rules.allow;
    return {
      source: "Claude Code file",
      settings: {
        ...(allow.length > 0 && { allow }),
        ...(ask.length > 0 && { ask }),
        ...(deny.length > 0 && { deny }),
      },
    };
  });
  return { layers, files, problems };
}

/** Whether the rules of a project that allow something are trusted; a sentence where that is not known. */
function findClaudeTrust(
  found: readonly ClaudeFile[],
  env: Environment,
  home: string,
): Trust | string {
  const offer = buildOffer(found);
  if (!offer) return "trusted";
  try {
    return findTrust(readTrustFile(trustFile(env, home)), offer.key, offer.files);
  } catch (error) {
    if (error instanceof TrustFileError) return `${error.message}.`;
    throw error;
  }
}

/** What a project's settings of Claude Code would allow; undefined where they allow nothing. */
export async function findClaudeOffer(
  place: Pick<SettingsOptions, "cwd" | "env" | "home">,
): Promise<TrustOffer | undefined> {
  return buildOffer(await readClaudeFiles(place));
}

function buildOffer(found: readonly ClaudeFile[]): TrustOffer | undefined {
  const held = found.flatMap(({ project, written }) =>
    project && written.length > 0 ? [{ ...project, written }] : [],
  );
  const [first] = held;
  if (!first) return undefined;
  const { folder, path } = first;
  return {
    path,
    key: claudeTrustKey(folder),
    name: path,
    until: "one of its rules that allow something",
    // Only these rules are trusted: Claude Code writes to its files all the time.
    files: held.map((file): TrustedFile => ({
      name: file.path,
      content: Buffer.from(JSON.stringify(file.written)),
    })),
    shown: held
      .map((file) => {
        const rules = file.written.map((rule) => `  ${oneLine(rule)}\n`).join("");
        return `${oneLine(file.path)} allows:\n${rules}`;
      })
      .join(""),
    notes: [],
    powers: ["decides what is done without asking"],
  };
}

/** What is used of a settings file of Claude Code: its rules, in the form of ours. */
interface ClaudeFile extends FoundFile {
  readonly rules: Readonly<Record<RuleEffect, readonly string[]>>;
  /** The rules that allow something, as they are written: what is trusted. */
  readonly written: readonly string[];
  /** What has no effect here, as a sentence. */
  readonly unused?: string;
}

const NOTHING = { rules: { allow: [], ask: [], deny: [] }, written: [] };

/** The settings files of Claude Code that count for a folder, the user's own first. */
async function readClaudeFiles(place: ClaudePlace): Promise<readonly ClaudeFile[]> {
  const { cwd, home } = place;
  const files: ClaudeFile[] = [];
  for (const found of findClaudeFiles(place)) {
    const { path, project } = found;
    const read = project ? readProjectFile(project, cwd) : readSmallFile(path);
    const root = project && { root: project.folder };
    if (!read) continue;
    files.push({
      ...found,
      ...(await readRules(path, read, { cwd: realPath(cwd), home, ...root })),
    });
  }
  return files;
}

type ReadRules = Omit<ClaudeFile, keyof FoundFile>;

async function readRules(path: string, read: FileContent, place: RulePlace): Promise<ReadRules> {
  const json = "problem" in read ? read : await parseJson(read.content.toString("utf8"));
  if ("problem" in json) {
    return { ...NOTHING, unused: `${path} ${json.problem}. Its rules do not hold.` };
  }
  const { permissions, hooks }: Record<string, unknown> = isRecord(json.value) ? json.value : {};
  const given: Record<string, unknown> = isRecord(permissions) ? permissions : {};
  const rules: Record<RuleEffect, string[]> = { allow: [], ask: [], deny: [] };
  const unused: string[] = [];
  const written: string[] = [];
  for (const effect of RULE_LISTS) {
    const list: unknown = given[effect];
    for (const rule of Array.isArray(list) ? list.map(String) : []) {
      const found = await usableRules(effect, rule, place);
      rules[effect].push(...(found ?? []));
      if (!found) unused.push(`the ${effect} rule ${JSON.stringify(rule)}`);
      else if (effect === "allow") written.push(rule);
    }
  }
  if (given["defaultMode"] !== undefined) unused.push('"defaultMode" (here: "mode")');
  if (given["additionalDirectories"] !== undefined) {
    unused.push('"additionalDirectories" (here: "addDirs")');
  }
  if (isRecord(hooks) && Object.keys(hooks).length > 0) {
    unused.push('"hooks", which are not run (gyre\'s own settings take "hooks" of the same form)');
  }
  const text = unused.length > 0 && { unused: `${path}: not used here: ${unused.join(", ")}.` };
  return { rules, written, ...text };
}

/** The rules in the form of ours; undefined where there is none, or none that makes sense. */
async function usableRules(
  effect: RuleEffect,
  rule: string,
  place: RulePlace,
): Promise<readonly string[] | undefined> {
  const found = translateRule(effect, rule, place);
  if (!found) return undefined;
  const { permissions, RuleError } = await import("@gyre/tools");
  try {
    permissions({ rules: { [effect]: found }, sandboxed: false });
    return found;
  } catch (error) {
    if (error instanceof RuleError) return undefined;
    throw error;
  }
}
