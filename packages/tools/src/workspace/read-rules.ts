/** Whether a tool may not show what is in a file; the path is from the workspace. */
export type ReadRule = (tool: string, path: string) => boolean;

const rulesByWorkspace = new WeakMap<object, Set<ReadRule>>();

/**
 * Has tools that show many files at once leave out those that a rule forbids to read, for as
 * long as the workspace is open. One that a call names is a matter of permissions.
 */
export function addReadRule(workspace: object, forbids: ReadRule): void {
  const rules = rulesByWorkspace.get(workspace) ?? new Set();
  rules.add(forbids);
  rulesByWorkspace.set(workspace, rules);
}

/** What rules say of the files of a workspace, for one tool; nothing where there are none. */
export function findReadRule(
  workspace: object,
  tool: string,
): ((path: string) => boolean) | undefined {
  const rules = rulesByWorkspace.get(workspace);
  if (!rules) return undefined;
  return (path) => [...rules].some((forbids) => forbids(tool, path));
}
