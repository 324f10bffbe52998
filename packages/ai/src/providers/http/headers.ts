import type { ServicePreset } from "../services/presets.ts";
import type { RequestContext } from "./format.ts";

/** The key as a header, in the way of the service, or else of the format. */
export function authHeaders(
  { apiKey, service }: Pick<RequestContext, "apiKey" | "service">,
  formatAuth: NonNullable<ServicePreset["auth"]>,
): Record<string, string> {
  if (apiKey === undefined) return {};
  const auth = service.auth ?? formatAuth;
  return auth === "bearer" ? { authorization: `Bearer ${apiKey}` } : { [auth]: apiKey };
}

export function lowerCaseKeys(
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
