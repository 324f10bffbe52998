/** What is to be signed, by whom and for what. */
export interface SigV4Request {
  method: string;
  /** As it will be sent: what its path or query cannot hold as such is percent-encoded. */
  url: string | URL;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array;
  region: string;
  service: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** For temporary credentials. */
  sessionToken?: string | undefined;
  /** Milliseconds since 1970. AWS refuses what is more than five minutes off. */
  now: number;
}

const ALGORITHM = "AWS4-HMAC-SHA256";
const TERMINATOR = "aws4_request";

/** Headers that those on the way, or `fetch` itself, may set or change. */
const UNSIGNED: ReadonlySet<string> = new Set([
  "accept-encoding",
  "cache-control",
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "pragma",
  "referer",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "x-amzn-trace-id",
]);

/**
 * Signs a request by AWS Signature Version 4, as all services but S3 read it. Answers
 * with the headers to send, by names in lower case: those given and the signature's.
 * `host` is signed and not among them, for `fetch` sends it by itself.
 */
export async function signRequest(request: SigV4Request): Promise<Record<string, string>> {
  const url = new URL(request.url);
  const time = new Date(request.now).toISOString().replace(/[-:]|\.\d+/g, "");
  const day = time.slice(0, time.indexOf("T"));

  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) headers[name.toLowerCase()] = value;
  delete headers["host"];
  delete headers["authorization"];
  headers["x-amz-date"] = time;
  if (request.sessionToken !== undefined) headers["x-amz-security-token"] = request.sessionToken;

  const signed = Object.entries({ ...headers, host: url.host })
    .filter(([name]) => !UNSIGNED.has(name))
    .sort(byCode);
  const names = signed.map(([name]) => name).join(";");
  const canonical = [
    request.method.toUpperCase(),
    canonicalPath(url),
    canonicalQuery(url),
    ...signed.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, " ")}`),
    "",
    names,
    hex(await sha256(request.body)),
  ].join("\n");

  const scope = [day, request.region, request.service, TERMINATOR].join("/");
  const toSign = [ALGORITHM, time, scope, hex(await sha256(canonical))].join("\n");
  let key: Uint8Array<ArrayBuffer> = toBytes(`AWS4${request.secretAccessKey}`);
  for (const part of [day, request.region, request.service, TERMINATOR, toSign]) {
    key = await hmac(key, part);
  }
  headers["authorization"] =
    `${ALGORITHM} Credential=${request.accessKeyId}/${scope}, ` +
    `SignedHeaders=${names}, Signature=${hex(key)}`;
  return headers;
}

/** The path as sent, encoded once more: a `%3A` in it becomes `%253A`. */
function canonicalPath(url: URL): string {
  const path = url.pathname.replace(/\/+/g, "/");
  return path.split("/").map(encode).join("/");
}

function canonicalQuery(url: URL): string {
  return url.search
    .slice(1)
    .split("&")
    .filter((part) => part !== "")
    .map((part): [string, string] => {
      const equals = part.indexOf("=");
      const name = equals < 0 ? part : part.slice(0, equals);
      const value = equals < 0 ? "" : part.slice(equals + 1);
      return [encode(decodeURIComponent(name)), encode(decodeURIComponent(value))];
    })
    .sort(byCode)
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** Percent-encodes all but letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function byCode([a, x]: readonly [string, string], [b, y]: readonly [string, string]): number {
  if (a !== b) return a < b ? -1 : 1;
  return x < y ? -1 : Number(x > y);
}

function toBytes(value: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(typeof value === "string" ? new TextEncoder().encode(value) : value);
}

async function sha256(value: string | Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(value)));
}

async function hmac(key: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array<ArrayBuffer>> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, toBytes(text)));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
