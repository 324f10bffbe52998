import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { isRecord } from "../../common/records.ts";
import { errnoOf } from "../../common/errors.ts";
import type { Account, AccountOptions } from "./accounts.ts";

const RESOURCE = "https://cognitiveservices.azure.com";
const LOGIN = "https://login.microsoftonline.com";
const INSTANCE = "http://169.254.169.254";
/** Tokens are asked for again this long before they end. */
const EARLY_MS = 300_000;
/** How long the answer for a token may take. The address of an instance is no address elsewhere. */
const TOKEN_MS = 15_000;
const INSTANCE_MS = 1_000;
const CLI_MS = 20_000;
const MAX_ANSWER_CHARS = 65_536;
const ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

interface Token {
  readonly value: string;
  readonly endsAt: number;
}

/** One way to a token. Undefined: this machine does not have it. */
type Way = (signal: AbortSignal | undefined) => Promise<Token | undefined>;

/**
 * Tokens of Microsoft Entra, by the first that is there: a client secret or a federated token in the variables that
 * Azure's libraries read, the identity that Azure gives to an app or a machine, the login of the Azure CLI.
 */
export function createAzureAccount({ env, clock, fetch }: AccountOptions): Account {
  let kept: Token | undefined;

  /** Sends a request for a token. */
  async function ask(
    url: string,
    request: { method: string; headers: Record<string, string>; body: string; ms: number },
    signal: AbortSignal | undefined,
  ): Promise<Token> {
    const limit = AbortSignal.timeout(request.ms);
    const { ms: _, ...init } = request;
    const response = await fetch(url, {
      ...init,
      redirect: "manual",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const text = response.body ? await new Response(response.body).text() : "";
    const answer = parse(text.slice(0, MAX_ANSWER_CHARS));
    const value = answer["access_token"];
    if (!response.ok || typeof value !== "string") {
      const given = answer["error_description"] ?? answer["error"];
      const reason = typeof given === "string" ? given : `status ${response.status}`;
      throw new Error(`${new URL(url).host} gave no token: ${reason.split("\n", 1)[0]}`);
    }
    return { value, endsAt: findEnd(answer, clock.now()) };
  }

  async function askLogin(fields: Record<string, string>, signal: AbortSignal | undefined) {
    const {
      AZURE_TENANT_ID: tenant = "",
      AZURE_CLIENT_ID: client = "",
      AZURE_AUTHORITY_HOST,
    } = env;
    const host = (AZURE_AUTHORITY_HOST || LOGIN).replace(/\/$/, "");
    const body = new URLSearchParams({
      grant_type: "client_credentials",
      client_id: client,
      scope: `${RESOURCE}/.default`,
      ...fields,
    });
    return ask(
      `${host}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`,
      {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: body.toString(),
        ms: TOKEN_MS,
      },
      signal,
    );
  }

  const bySecret: Way = async (signal) => {
    const { AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET: secret } = env;
    if (!AZURE_TENANT_ID || !AZURE_CLIENT_ID || !secret) return undefined;
    return askLogin({ client_secret: secret }, signal);
  };

  const byFederation: Way = async (signal) => {
    const { AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE: file } = env;
    if (!AZURE_TENANT_ID || !AZURE_CLIENT_ID || !file) return undefined;
    const assertion = (await readFile(file, "utf8")).trim();
    return askLogin({ client_assertion: assertion, client_assertion_type: ASSERTION }, signal);
  };

  const byIdentity: Way = async (signal) => {
    const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: secret, AZURE_CLIENT_ID: client } = env;
    const query = { resource: RESOURCE, ...(client && { client_id: client }) };
    if (endpoint && secret) {
      const url = `${endpoint}?${new URLSearchParams({ "api-version": "2019-08-01", ...query }).toString()}`;
      const headers = { "x-identity-header": secret };
      return ask(url, { method: "GET", headers, body: "", ms: TOKEN_MS }, signal);
    }
    const host = env["AZURE_POD_IDENTITY_AUTHORITY_HOST"] || INSTANCE;
    const parameters = new URLSearchParams({ "api-version": "2018-02-01", ...query }).toString();
    const url = `${host.replace(/\/$/, "")}/metadata/identity/oauth2/token?${parameters}`;
    try {
      const headers = { metadata: "true" };
      return await ask(url, { method: "GET", headers, body: "", ms: INSTANCE_MS }, signal);
    } catch {
      // Most machines are no instances of Azure: nothing answers there.
      signal?.throwIfAborted();
      return undefined;
    }
  };

  const byCli: Way = async (signal) => {
    const args = ["account", "get-access-token", "--resource", RESOURCE, "--output", "json"];
    try {
      const { stdout } = await promisify(execFile)("az", args, {
        timeout: CLI_MS,
        ...(signal && { signal }),
        env: { ...env },
        shell: process.platform === "win32",
      });
      const answer = parse(stdout);
      const value = answer["accessToken"];
      return typeof value === "string"
        ? { value, endsAt: findEnd(answer, clock.now()) }
        : undefined;
    } catch (error) {
      signal?.throwIfAborted();
      if (errnoOf(error) === "ENOENT") return undefined;
      throw new Error("The Azure CLI gave no token. Run: az login", { cause: error });
    }
  };

  return {
    place:
      "the variables of a client (AZURE_CLIENT_ID), the identity of this machine or the login of the Azure CLI",
    async get(signal) {
      if (kept && kept.endsAt - clock.now() > EARLY_MS) return kept.value;
      for (const way of [bySecret, byFederation, byIdentity, byCli]) {
        kept = await way(signal);
        if (kept) return kept.value;
      }
      return undefined;
    },
  };
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** When a token ends: in so many seconds, or at a second since 1970. */
function findEnd(answer: Record<string, unknown>, now: number): number {
  const seconds = Number(answer["expires_in"]);
  if (seconds > 0) return now + seconds * 1000;
  const at = Number(answer["expires_on"]);
  return at > 0 ? at * 1000 : now;
}
