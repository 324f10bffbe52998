/** Whether what permits a call to read one address permits another of the same server, to which that redirects. */
export type RedirectRule = (tool: string, from: string, to: string) => boolean;

const rulesByWorkspace = new WeakMap<object, Set<RedirectRule>>();

/** Has redirects followed only as far as a rule covers them, for as long as the workspace is open. */
export function addRedirectRule(workspace: object, covers: RedirectRule): void {
  const rules = rulesByWorkspace.get(workspace) ?? new Set();
  rules.add(covers);
  rulesByWorkspace.set(workspace, rules);
}

/** Whether all rules cover a redirect; where there are none, they do. */
export function coversRedirect(
  workspace: object | undefined,
  ...redirect: Parameters<RedirectRule>
): boolean {
  const rules = workspace && rulesByWorkspace.get(workspace);
  return !rules || [...rules].every((covers) => covers(...redirect));
}
