import { createHash, randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../common/clock.ts";
import type { Fetch } from "../../providers/http/fetch.ts";
import { httpFetch } from "../http/http-fetch.ts";
import { listenForLogin } from "../network/login-callback.ts";
import { OAuthError, type OAuthProvider, type OAuthTokens } from "./provider.ts";
import { checkUrl, type OAuthContext, requestTokens, sendForm } from "./token-request.ts";

/** How often a server is asked whether a code was entered, where it does not say, and how much less often after `slow_down`. */
const DEFAULT_INTERVAL_S = 5;
const SLOW_DOWN_S = 5;
const DEFAULT_DEVICE_S = 900;
const RANDOM_BYTES = 32;

export interface LoginOptions {
  /** Opens the address in a browser, or shows it. */
  open: (url: string) => void | Promise<void>;
  signal?: AbortSignal;
  fetch?: Fetch;
  clock?: Clock;
}

export interface DeviceLoginOptions extends Omit<LoginOptions, "open"> {
  /** Shows a person where to go, and which code to enter there. */
  show: (step: { url: string; code: string; completeUrl?: string }) => void | Promise<void>;
}

/**
 * Logs in with a browser on this machine: the code comes back to a port of 127.0.0.1, bound to this login by a
 * state and by PKCE (S256). Rejects with `OAuthError`, or with the reason of the signal.
 */
export async function login(
  provider: OAuthProvider,
  { open, signal, fetch = httpFetch, clock = systemClock }: LoginOptions,
): Promise<OAuthTokens> {
  const { authorizationUrl } = provider;
  if (authorizationUrl === undefined) {
    throw new OAuthError(
      "no_address",
      `${provider.name} has no authorizationUrl. Use loginByDevice.`,
    );
  }
  checkUrl(authorizationUrl);
  const verifier = randomBytes(RANDOM_BYTES).toString("base64url");
  const state = randomBytes(RANDOM_BYTES).toString("base64url");
  signal?.throwIfAborted();
  const callback = await listenForLogin({ ...provider.redirect, name: provider.name });
  const back = callback.wait(state, signal);
  // Where opening the browser fails, no caller waits for it.
  back.catch(() => {});
  try {
    const url = new URL(authorizationUrl);
    const fields = {
      response_type: "code",
      client_id: provider.clientId,
      redirect_uri: callback.url,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      state,
      ...(provider.scopes && { scope: provider.scopes.join(" ") }),
      ...provider.parameters,
    };
    for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
    await open(url.href);
    const code = readCode(provider.name, await back);
    return await requestTokens(
      provider,
      {
        grant_type: "authorization_code",
        code,
        redirect_uri: callback.url,
        code_verifier: verifier,
      },
      { fetch, clock, signal },
    );
  } finally {
    await callback.close();
  }
}

/** The code that a browser came back with. Throws what stands there in its place. */
function readCode(name: string, { searchParams: given }: URL): string {
  const [code, error] = [given.get("code"), given.get("error")];
  if (code && error === null) return code;
  const what = error ?? "invalid_response";
  const more = given.get("error_description");
  throw new OAuthError(what, `${name} answered ${what}${more === null ? "" : `: ${more}`}`);
}

/**
 * Logs in with a browser on any other machine: `show` has the address and the code to enter there. Rejects
 * with `OAuthError` where the person refuses or takes too long, or with the reason of the signal.
 */
export async function loginByDevice(
  provider: OAuthProvider,
  { show, signal, fetch = httpFetch, clock = systemClock }: DeviceLoginOptions,
): Promise<OAuthTokens> {
  const { deviceUrl, clientId, scopes } = provider;
  if (deviceUrl === undefined) {
    throw new OAuthError("no_address", `${provider.name} has no deviceUrl. Use login.`);
  }
  const context: OAuthContext = { fetch, clock, signal };
  const given = await sendForm(
    deviceUrl,
    { client_id: clientId, scope: scopes?.join(" ") },
    context,
  );
  const { device_code: device, user_code: code, verification_uri: url } = given;
  const completeUrl = given["verification_uri_complete"];
  if (typeof device !== "string" || typeof code !== "string" || typeof url !== "string") {
    throw new OAuthError("invalid_response", `${new URL(deviceUrl).host} gave no code to enter.`);
  }
  const endsAt = clock.now() + (Number(given["expires_in"]) || DEFAULT_DEVICE_S) * 1000;
  let seconds = Number(given["interval"]) || DEFAULT_INTERVAL_S;
  await show({ url, code, ...(typeof completeUrl === "string" && { completeUrl }) });
  for (;;) {
    await wait(clock, seconds * 1000, signal);
    if (clock.now() > endsAt) {
      throw new OAuthError(
        "expired_token",
        `The code for ${provider.name} was not entered in time.`,
      );
    }
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    try {
      return await requestTokens(provider, { grant_type, device_code: device }, context);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      if (error.code === "slow_down") seconds += SLOW_DOWN_S;
      else if (error.code !== "authorization_pending") throw error;
    }
  }
}

function wait(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      stop();
      reject(signal?.reason);
    };
    const stop = clock.after(ms, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
