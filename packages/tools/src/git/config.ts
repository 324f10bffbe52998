/** One setting: its key as git writes it, and a value. */
export type Setting = readonly [key: string, value: string];

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
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["push.gpgSign", "false"],
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
