import { isIPv4, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";

/** What commands in the sandbox may connect to, as an entry of the setting `domains` says. */
export interface Domain {
  /** In lower case; an address as `normalizeHost` writes it. */
  host: string;
  /** All names that end with a dot and the host, and not the host itself. */
  isSuffix: boolean;
  /** Default: 80 and 443. */
  port?: number;
}

/** A host and a port that a program asks for. */
export interface Target {
  host: string;
  port: number;
}

const WEB_PORTS: readonly number[] = [80, 443];
const MAX_PORT = 65_535;
const MAX_HOST_CHARS = 253;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
/** Such a last part makes a name an address for most programs: 127.1, 0x7f000001. */
const NUMBER = /^(?:\d+|0x[0-9a-f]*)$/;
const AUTHORITY = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d{1,5}))?$/;

/** Throws, with a sentence for the user, where a text is no domain. */
export function parseDomain(text: string): Domain {
  const isSuffix = text.startsWith("*.");
  const [, written = "", port] = AUTHORITY.exec(isSuffix ? text.slice(2) : text) ?? [];
  const host = normalizeHost(isPlain(written) ? written : domainToASCII(written));
  const isAddress = host !== undefined && (isIPv4(host) || isIPv6(host));
  const number = port === undefined ? undefined : Number(port);
  if (host === undefined || (isSuffix && isAddress) || number === 0 || Number(number) > MAX_PORT) {
    throw new Error(
      `"${text}" is no domain. Write one as "registry.npmjs.org", "*.github.com" or "localhost:8080".`,
    );
  }
  return { host, isSuffix, ...(number !== undefined && { port: number }) };
}

/** Whether a host may be connected to by its name. */
export function allowsHost(domains: readonly Domain[], { host, port }: Target): boolean {
  return domains.some((domain) => {
    const isHost = domain.isSuffix ? host.endsWith(`.${domain.host}`) : host === domain.host;
    return isHost && allowsPort(domain, port);
  });
}

/** Whether an address that is not of the public internet is listed itself. */
export function allowsAddress(domains: readonly Domain[], { host, port }: Target): boolean {
  return domains.some((domain) => {
    const isLoopback = host.startsWith("127.") || host === "::1";
    const isListed = domain.host === host || (domain.host === "localhost" && isLoopback);
    return isListed && !domain.isSuffix && allowsPort(domain, port);
  });
}

/** Whether all that a domain stands for is listed. */
export function coversDomain(
  domains: readonly Domain[],
  { host, isSuffix, port }: Domain,
): boolean {
  const ports = port === undefined ? WEB_PORTS : [port];
  return domains.some((domain) => {
    const isBelow = domain.isSuffix && (isSuffix ? `.${host}` : host).endsWith(`.${domain.host}`);
    const isSame = !domain.isSuffix && !isSuffix && host === domain.host;
    return (isBelow || isSame) && ports.every((each) => allowsPort(domain, each));
  });
}

/** Hosts as the setting `domains` writes them, to be compared with. */
export interface HostList {
  /** Whether a host is listed, as a URL or a person writes it. */
  allows(host: string, port: number): boolean;
  /** Whether all is listed that another entry of such a list stands for. */
  covers(domain: string): boolean;
}

/** Throws, with a sentence for the user, where a text is no host. */
export function createHostList(texts: readonly string[]): HostList {
  const domains = texts.map(parseDomain);
  return {
    allows(written, port) {
      const host = normalizeHost(written);
      return host !== undefined && allowsHost(domains, { host, port });
    },
    covers: (domain) => coversDomain(domains, parseDomain(domain)),
  };
}

function allowsPort(domain: Domain, port: number): boolean {
  return domain.port === undefined ? WEB_PORTS.includes(port) : domain.port === port;
}

/** A host and a port as a request names them; nothing where there is room for doubt. */
export function parseAuthority(text: string, defaultPort?: number): Target | undefined {
  const [, written = "", digits] = AUTHORITY.exec(text) ?? [];
  const host = normalizeHost(written);
  const port = digits === undefined ? defaultPort : Number(digits);
  if (host === undefined || port === undefined || port < 1 || port > MAX_PORT) return undefined;
  return { host, port };
}

/**
 * The one way in which a host is written here: a name in lower case without a dot at its end, an
 * address of IPv4 with four numbers, one of IPv6 in its short form without brackets. Nothing for
 * all else: names in other scripts, addresses in other bases, zones.
 */
export function normalizeHost(text: string): string | undefined {
  if (text.startsWith("[")) {
    const address = text.slice(1, -1);
    if (!text.endsWith("]") || !isIPv6(address) || address.includes("%")) return undefined;
    return new URL(`http://${text}`).hostname.slice(1, -1);
  }
  if (isIPv4(text)) return text;
  const name = text.toLowerCase().replace(/\.$/, "");
  const labels = name.split(".");
  const isName =
    isPlain(text) &&
    name.length <= MAX_HOST_CHARS &&
    labels.every((label) => LABEL.test(label)) &&
    !NUMBER.test(labels.at(-1) ?? "");
  return isName ? name : undefined;
}

/** Before lower case: that of some other characters is plain. */
function isPlain(text: string): boolean {
  return /^[\u0021-\u007E]*$/.test(text);
}

/** As a person reads it. */
export function formatTarget({ host, port }: Target): string {
  const shown = isIPv6(host) ? `[${host}]` : host;
  return WEB_PORTS.includes(port) ? shown : `${shown}:${port}`;
}
