type Env = Readonly<Record<string, string | undefined>>;

/** Which proxy of the environment an address goes through, if through any. */
export interface Proxies {
  find(url: URL): URL | undefined;
}

/**
 * The proxies that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name, in either case; lower case goes
 * first. Undefined where there are none. Throws `TypeError` for an address that is none of an HTTP proxy.
 */
export function readProxies(env: Env): Proxies | undefined {
  const read = (name: string): string | undefined => env[name.toLowerCase()] || env[name];
  const parse = (...names: string[]): URL | undefined => {
    for (const name of names) {
      const value = read(name);
      if (value !== undefined && value !== "") return parseProxy(name, value);
    }
    return undefined;
  };
  const http = parse("HTTP_PROXY", "ALL_PROXY");
  const https = parse("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY");
  if (http === undefined && https === undefined) return undefined;
  const exceptions = listExceptions(read("NO_PROXY") ?? "");
  return {
    find(url) {
      if (exceptions.some((isIt) => isIt(url))) return undefined;
      return url.protocol === "https:" ? https : http;
    },
  };
}

function parseProxy(name: string, value: string): URL {
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && ["http:", "https:"].includes(url.protocol) && url.hostname !== "") return url;
  // The value may hold a password.
  throw new TypeError(
    `${name} has to be the address of an HTTP proxy, such as http://proxy.example:8080` +
      `${url ? `, and not of the kind ${url.protocol}//` : ""}.`,
  );
}

/** Each entry is a host, `host:port`, or `.domain` and `*.domain` for the hosts of a domain; `*` is all. */
function listExceptions(list: string): ((url: URL) => boolean)[] {
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [, host = "", port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
      const name = host.replace(/^\[|\]$/g, "");
      return (url: URL) => {
        if (name === "*") return true;
        if (port !== undefined && port !== (url.port || (url.protocol === "https:" ? "443" : "80")))
          return false;
        const asked = url.hostname.replace(/^\[|\]$|\.$/g, "");
        return /^[.*]/.test(name) ? asked.endsWith(name.replace(/^\*/, "")) : asked === name;
      };
    });
}
