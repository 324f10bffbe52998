import { CONTROL } from "@gyre/ai/programs";
import type { Setting } from "../config.ts";

interface HarmlessKey {
  /** As git lists keys: section and name in lower case. */
  key: RegExp;
  accepts: (value: string, remotes: ReadonlySet<string>) => boolean;
}

const SWITCH = /^(?:true|false|yes|no|on|off|[01]|)$/i;
const WORD = /^[a-z0-9][a-z0-9=,_-]*$/i;

/**
 * Addresses that git reaches over the network. A local path is none of them: a push to one runs
 * the hooks of the repository there.
 */
const NETWORK_ADDRESS =
  /^(?:https?|ssh|git):\/\/(?:[^\s@/-][^\s@/]*@)?[a-z0-9[_]\S*$|^(?:[a-z0-9_][\w.+~-]*@)?[a-z0-9_][\w.-]*:(?![:/-])\S+$/i;
const SSH_TO_SELF = /^(?:ssh:\/\/)?(?:[^@/]*@)?(?:localhost|127\.|\[)/i;

/** Settings by which git runs nothing, leads nowhere else on this machine, and reads no other file. */
const HARMLESS: readonly HarmlessKey[] = [
  { key: /^remote\.[a-z0-9_][\w./-]*\.(?:url|pushurl)$/i, accepts: isNetworkAddress },
  { key: /^remote\..+\.(?:fetch|push)$/s, accepts: (value) => /^(?!-)\S*$/.test(value) },
  { key: /^remote\..+\.tagopt$/s, accepts: (value) => /^--(?:no-)?tags$/.test(value) },
  {
    key: /^remote\..+\.(?:prune|prunetags|skipdefaultupdate|skipfetchall)$/s,
    accepts: isSwitch,
  },
  { key: /^remote\..+\.gh-resolved$/s, accepts: (value) => /^[\w./-]+$/.test(value) },
  // A name without a remote is taken for a path.
  {
    key: /^(?:branch\..+\.(?:remote|pushremote)|remote\.pushdefault)$/s,
    accepts: (value, remotes) => value === "." || remotes.has(value),
  },
  { key: /^branch\..+\.merge$/s, accepts: (value) => /^(?!-)\S+$/.test(value) },
  { key: /^branch\..+\.rebase$/s, accepts: isWord },
  { key: /^(?:user|author|committer)\.(?:name|email)$/, accepts: () => true },
  { key: /^user\.useconfigonly$/, accepts: isSwitch },
  {
    key: /^core\.(?:autocrlf|eol|safecrlf|filemode|ignorecase|quotepath|abbrev|logallrefupdates)$/,
    accepts: isWord,
  },
  { key: /^(?:core\.sparsecheckout(?:cone)?|index\.sparse)$/, accepts: isSwitch },
  // What git then reads is held and carried over as the config is.
  { key: /^extensions\.worktreeconfig$/, accepts: isSwitch },
  {
    key: /^(?:pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags))$/,
    accepts: isWord,
  },
  {
    key: /^(?:merge\.(?:ff|conflictstyle|renames)|rebase\.(?:autostash|autosquash|updaterefs)|rerere\.(?:enabled|autoupdate))$/,
    accepts: isWord,
  },
  {
    key: /^(?:diff\.(?:algorithm|renames|colormoved)|color\.[a-z]+|column\.[a-z]+|advice\.[a-z]+)$/,
    accepts: isWord,
  },
  { key: /^(?:status|commit)\.(?:verbose|short|branch|showuntrackedfiles)$/, accepts: isWord },
  { key: /^submodule\..+\.url$/s, accepts: isNetworkAddress },
  { key: /^submodule\..+\.active$/s, accepts: isSwitch },
  { key: /^submodule\..+\.update$/s, accepts: isWord },
  { key: /^lfs\.(?:repositoryformatversion|.+\.access)$/s, accepts: isWord },
];

/** Whether a setting may be carried over; `remotes` are those that will have an address. */
export function isHarmless([key, value]: Setting, remotes: ReadonlySet<string>): boolean {
  return (
    isHarmlessKey(key) &&
    !CONTROL.test(value) &&
    // What is no UTF-8 cannot be passed on as it is.
    !value.includes("\uFFFD") &&
    HARMLESS.some((entry) => entry.key.test(key) && entry.accepts(value, remotes))
  );
}

/** Whether a key may be carried over with some value, or be removed. */
export function isHarmlessKey(key: string): boolean {
  return (
    !CONTROL.test(key) && !key.includes("\uFFFD") && HARMLESS.some((entry) => entry.key.test(key))
  );
}

/** The names of the remotes that have an address. */
export function findRemotes(settings: Iterable<Setting>): Set<string> {
  const names = new Set<string>();
  for (const [key] of settings) {
    const name = /^remote\.(.+)\.url$/s.exec(key)?.[1];
    if (name !== undefined) names.add(name);
  }
  return names;
}

/** The settings that name a remote which has no address: git takes such a name for a path. */
export function findDangling(settings: Iterable<Setting>): string[] {
  const all = [...settings];
  const remotes = findRemotes(all);
  return all
    .filter(([key]) => /^(?:branch\..+\.(?:remote|pushremote)|remote\.pushdefault)$/s.test(key))
    .map(([, value]) => value)
    .filter((value) => value !== "." && !remotes.has(value));
}

function isNetworkAddress(value: string): boolean {
  if (!NETWORK_ADDRESS.test(value)) return false;
  return /^(?:https?|git):/i.test(value) || !SSH_TO_SELF.test(value);
}

function isSwitch(value: string): boolean {
  return SWITCH.test(value);
}

function isWord(value: string): boolean {
  return value === "" || WORD.test(value);
}
