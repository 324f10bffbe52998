/** One setting: its key as git writes it, and a value. */
export type Setting = readonly [key: string, value: string];

/** For where keys are out of reach: a commit that has to be signed would fail. */
export const UNSIGNED: readonly Setting[] = [
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["push.gpgSign", "false"],
];

/** Settings by which a repository would have git run or reach for something; none is heeded. */
const ALWAYS: readonly Setting[] = [
  ["core.fsmonitor", "false"],
  ["core.useBuiltinFSMonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.pager", "cat"],
  ["core.editor", "false"],
  ["sequence.editor", "false"],
  ["core.askPass", ""],
  ["core.alternateRefsCommand", "true"],
  ["core.attributesFile", "/dev/null"],
  ["core.protectHFS", "true"],
  ["core.protectNTFS", "true"],
  ["diff.external", ""],
  ["diff.orderFile", "/dev/null"],
  ["interactive.diffFilter", "cat"],
  ["credential.helper", ""],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.x509.program", "false"],
  ...UNSIGNED,
  ["log.showSignature", "false"],
  ["merge.verifySignatures", "false"],
  ["blame.ignoreRevsFile", ""],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  // A submodule has a config of its own, which is not inspected.
  ["submodule.recurse", "false"],
  ["fetch.recurseSubmodules", "false"],
  ["push.recurseSubmodules", "no"],
  ["diff.submodule", "short"],
  ["diff.ignoreSubmodules", "all"],
  ["status.submoduleSummary", "false"],
  ["checkout.guess", "false"],
  ["branch.autoSetupMerge", "false"],
  ["user.useConfigOnly", "true"],
  ["i18n.commitEncoding", "UTF-8"],
  ["i18n.logOutputEncoding", "UTF-8"],
  ["color.ui", "false"],
  ["column.ui", "never"],
  ["advice.detachedHead", "false"],
];

/** Settings with a name in the middle: the name is the repository's choice. */
const NAMED: readonly { key: RegExp; answers: (name: string) => Setting[] }[] = [
  {
    key: /^filter\.(.+)\.(?:clean|smudge|process|required)$/s,
    answers: (name) => [
      [`filter.${name}.clean`, ""],
      [`filter.${name}.smudge`, ""],
      [`filter.${name}.process`, ""],
      [`filter.${name}.required`, "false"],
    ],
  },
  {
    key: /^diff\.(.+)\.(?:command|textconv|cachetextconv)$/s,
    answers: (name) => [
      [`diff.${name}.command`, "false"],
      [`diff.${name}.textconv`, "cat"],
      [`diff.${name}.cachetextconv`, "false"],
    ],
  },
  // A driver that fails leaves a conflict, which is the truth.
  { key: /^merge\.(.+)\.driver$/s, answers: (name) => [[`merge.${name}.driver`, "false"]] },
  {
    key: /^hook\.(.+)\.(?:command|event|enabled)$/s,
    answers: (name) => [
      [`hook.${name}.command`, "true"],
      [`hook.${name}.enabled`, "false"],
    ],
  },
  { key: /^credential\.(.+)\.helper$/s, answers: (name) => [[`credential.${name}.helper`, ""]] },
  { key: /^gpg\.(.+)\.program$/s, answers: (name) => [[`gpg.${name}.program`, "false"]] },
  { key: /^submodule\.(.+)\.[^.]+$/s, answers: (name) => [[`submodule.${name}.ignore`, "all"]] },
];

/** With one of these a push does not simply go to where its address says. */
const REDIRECTS_PUSH =
  /^(?:https?\.|core\.gitproxy$|remote\..+\.(?:vcs|proxy|proxyauthmethod|receivepack|uploadpack|mirror)$)/s;

/** Settings that have git run a program, or lead it to other settings: keys as git lists them. */
const RUNS: readonly RegExp[] = [
  /^core\.(?:hookspath|pager|editor|askpass|alternaterefscommand|sshcommand|gitproxy)$/,
  /^(?:sequence\.editor|interactive\.difffilter|uploadpack\.packobjectshook|imap\.tunnel)$/,
  /^(?:diff\.external|diff\..+\.(?:command|textconv)|merge\..+\.driver)$/s,
  /^filter\..+\.(?:clean|smudge|process)$/s,
  /^(?:alias|hook|instaweb|include|includeif|init)\./,
  /^(?:credential\.(?:.+\.)?helper|gpg\.(?:.+\.)?program|gpg\.ssh\.defaultkeycommand)$/s,
  /^(?:difftool|mergetool|guitool|browser|man)\..+\.(?:cmd|path)$/s,
  /^(?:trailer\..+\.(?:command|cmd)|tar\..+\.command|(?:web|help)\.browser)$/s,
  /^sendemail\.(?:.+\.)?(?:smtpserver|sendmailcmd|tocmd|cccmd|headercmd)$/s,
  /^remote\..+\.(?:vcs|receivepack|uploadpack)$/s,
  /^protocol\.(?:.+\.)?allow$/s,
  /^lfs\.(?:customtransfer|extension|standalonetransferagent)(?:\.|$)/,
];

/** Settings that run a program by their value alone. */
const RUNS_BY_VALUE: readonly { key: RegExp; runs: (value: string) => boolean }[] = [
  // A plain switch is git's own monitor or pager.
  { key: /^(?:core\.fsmonitor|pager\..+)$/s, runs: (value) => !SWITCH.test(value) },
  { key: /^submodule\..+\.update$/s, runs: (value) => value.startsWith("!") },
  // The address of a helper: `ext::sh -c ...`.
  { key: /^(?:remote\..+\.(?:url|pushurl)|submodule\..+\.url)$/s, runs: isHelperAddress },
];

const SWITCH = /^(?:true|false|yes|no|on|off|[01]|)$/i;

const FILTER = /^filter\.(.+)\.(?:clean|smudge|process)$/s;

/** The settings that take all power from what a repository's own config has, by its keys. */
export function neutralSettings(keys: Iterable<string>): Setting[] {
  const named = new Map<string, string>();
  for (const key of keys) {
    for (const { key: pattern, answers } of NAMED) {
      const name = pattern.exec(key)?.[1];
      if (name === undefined) continue;
      for (const [answered, value] of answers(name)) named.set(answered, value);
    }
  }
  return [...ALWAYS, ...named];
}

/** The keys by which settings have git run something. */
export function findRunningKeys(settings: Iterable<Setting>): string[] {
  const found = new Set<string>();
  for (const [key, value] of settings) {
    const runs =
      RUNS.some((pattern) => pattern.test(key)) ||
      RUNS_BY_VALUE.some((entry) => entry.key.test(key) && entry.runs(value)) ||
      // `url.ext::sh -c ... .insteadOf`: the address is in the key.
      (key.startsWith("url.") && isHelperAddress(key.slice("url.".length)));
    if (runs) found.add(key);
  }
  return [...found];
}

function isHelperAddress(address: string): boolean {
  return /^[a-z0-9+.-]+::/i.test(address);
}

/** The filters that a config has, and that are not run. */
export function filterNames(keys: Iterable<string>): string[] {
  const names = new Set<string>();
  for (const key of keys) {
    const name = FILTER.exec(key)?.[1];
    if (name !== undefined) names.add(name);
  }
  return [...names];
}

/** The keys by which a push would go elsewhere, or through something. */
export function pushRedirects(keys: Iterable<string>): string[] {
  return [...new Set(keys)].filter((key) => REDIRECTS_PUSH.test(key));
}

/** Settings as git takes them from the environment: any name and value can be said there. */
export function asEnvironment(settings: readonly Setting[]): Record<string, string> {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) };
  for (const [index, [key, value]] of settings.entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  }
  return env;
}

/** What `config --null --list` gives: a key alone is a switch that is on. */
export function parseSettings(output: string): Setting[] {
  return splitNames(output).map((entry) => {
    const end = entry.indexOf("\n");
    return end < 0 ? [entry, "true"] : [entry.slice(0, end), entry.slice(end + 1)];
  });
}

/** What git separates by zeros. */
export function splitNames(output: string): string[] {
  return output.split("\0").filter((name) => name !== "");
}
