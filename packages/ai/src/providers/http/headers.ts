import type { ServicePreset } from "../services/preset.ts";
import type { RequestContext } from "./format.ts";

/** The key as a header, in the way of the service, or else of the format. */
export function authHeaders(
  { apiKey, service }: Pick<RequestContext, "apiKey" | "service">,
  formatAuth: NonNullable<ServicePreset["auth"]>,
): Record<string, string> {
  if (apiKey === undefined) return {};
  const auth =
    service.auth === "api-key" && isWebToken(apiKey) ? "bearer" : (service.auth ?? formatAuth);
  return auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { [auth]: apiKey };
}

/** Tokens of an account at Azure, as opposed to its keys, are JSON web tokens. */
function isWebToken(key: string): boolean {
  return key.startsWith("eyJ") && key.split(".").length === 3;
}

/** Headers that list features: those of a caller come on top of the request's own. */
const LISTS: ReadonlySet<string> = new Set(["anthropic-beta"]);

/** Headers with names in lower case; later ones take precedence, and lists add up. */
export function mergeHeaders(
  ...sets: (Readonly<Record<string, string>> | undefined)[]
): Record<string, string> {
  const merged: Record<string, string> = {};
  for (const [given, value] of sets.flatMap((headers) => Object.entries(headers ?? {}))) {
    const name = given.toLowerCase();
    const before = LISTS.has(name) ? merged[name] : undefined;
    merged[name] = before === undefined ? value : joinLists(before, value);
  }
  return merged;
}

function joinLists(...lists: string[]): string {
  const items = lists.flatMap((list) => list.split(",")).map((item) => item.trim());
  return [...new Set(items)].filter((item) => item !== "").join(",");
}
