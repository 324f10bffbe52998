import { toUrl } from "../../common/to-url.ts";
import { ProviderError } from "../errors/provider-error.ts";
import type { FetchedResponse } from "./fetch.ts";

/** The address that the same request goes to next. Only one of the same origin is followed. */
export function findRedirect(response: FetchedResponse, from: string): string | undefined {
  if (response.status !== 307 && response.status !== 308) return undefined;
  const target = parseLocation(response, from);
  return target && target.origin === new URL(from).origin ? target.href : undefined;
}

/** Why a redirect is not followed; `undefined` if the response is not a redirect. */
export function explainRedirect(
  response: FetchedResponse,
  from: string,
  service: string,
): ProviderError | undefined {
  const { status, type } = response;
  const reject = (message: string): ProviderError =>
    new ProviderError(message, {
      kind: "bad_request",
      retryable: false,
      ...(status > 0 && { status }),
    });
  const advice = "Set the model's baseUrl to the address that is meant.";
  if (type === "opaqueredirect") {
    return reject(`${service} redirects, and a browser does not show where to. ${advice}`);
  }
  const target = status >= 300 && status <= 399 ? parseLocation(response, from) : undefined;
  if (!target) return undefined;
  const { host, origin, pathname } = target;
  return origin === new URL(from).origin
    ? reject(
        `${service} redirects with status ${status} to ${origin}${pathname}, which drops the request's body. ${advice}`,
      )
    : reject(
        `${service} redirects to ${host}, where the key is not sent. If that is right, give the model a baseUrl at ${origin}.`,
      );
}

export function createRedirectLoopError(service: string, url: string): ProviderError {
  return new ProviderError(
    `${service} redirects again and again (last to ${new URL(url).host}). Check the model's baseUrl.`,
    { kind: "bad_request", retryable: false },
  );
}

function parseLocation(response: FetchedResponse, from: string): URL | undefined {
  const location = response.headers.get("location");
  return location === null ? undefined : toUrl(location, from);
}
