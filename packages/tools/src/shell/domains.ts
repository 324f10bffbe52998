import type { ToolEnv } from "../contract/env.ts";
import type { DomainProxy } from "../web/proxy/proxy.ts";
import type { ShellOptions } from "./tool.ts";

/** The way out for a command that has no network but a list of domains; nothing for others. */
export async function openDomains(
  { spoolFolder }: ToolEnv,
  { domains = [], mostDomains, decide, network }: ShellOptions,
): Promise<DomainProxy | undefined> {
  if (network || (domains.length === 0 && !decide)) return undefined;
  const { allowsAddress, allowsHost, parseDomain } = await import("../web/proxy/domains.ts");
  const { openProxy } = await import("../web/proxy/proxy.ts");
  const listed = domains.map(parseDomain);
  const most = mostDomains?.map(parseDomain);
  return openProxy({
    folder: spoolFolder,
    ...(most && { isForbidden: (host, port) => !allowsHost(most, { host, port }) }),
    decide: async (host, port) =>
      allowsHost(listed, { host, port }) || ((await decide?.(host, port)) ?? false),
    allowsAddress: (host, port) => allowsAddress(listed, { host, port }),
  });
}
