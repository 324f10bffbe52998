/** By the workspace that a call is for: calls that may use the network, with the hosts that their approval covers. */
const grants = new WeakMap<object, Map<string, readonly string[]>>();
/** Calls that were approved and never ran are forgotten in time. */
const MAX_GRANTS = 100;

/** Lets a call reach hosts, and have a person asked about others. */
export function grantNetwork(workspace: object, callId: string, hosts: readonly string[]): void {
  const known = grants.get(workspace) ?? new Map<string, readonly string[]>();
  known.set(callId, hosts);
  for (const [oldest] of known) {
    if (known.size <= MAX_GRANTS) break;
    known.delete(oldest);
  }
  grants.set(workspace, known);
}

/** The hosts that the approval of a call covers, once; nothing where it may not use the network. */
export function takeNetworkGrant(workspace: object, callId: string): readonly string[] | undefined {
  const known = grants.get(workspace);
  const hosts = known?.get(callId);
  known?.delete(callId);
  return hosts;
}
