import type { Clock } from "../../common/clock.ts";
import type { Fetch } from "../../providers/http/fetch.ts";
import { createAwsAccount } from "./aws.ts";
import { createAzureAccount } from "./azure.ts";
import { createGoogleAccount } from "./google.ts";

/** Credentials of the machine or its user, where a service has no key of its own. */
export interface Account {
  /** Where they come from, for the error that says that there are none. */
  readonly place: string;
  /** A key or token that is valid for a while. Undefined: there are none here. Rejects where they cannot be had. */
  get(signal: AbortSignal | undefined): Promise<string | undefined>;
}

export interface AccountOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly fetch: Fetch;
}

const ACCOUNTS: Readonly<Record<string, (options: AccountOptions) => Account>> = {
  "amazon-bedrock": createAwsAccount,
  "google-vertex": createGoogleAccount,
  "google-vertex-anthropic": createGoogleAccount,
  "azure-openai": createAzureAccount,
  "azure-openai-responses": createAzureAccount,
};

/** The accounts of the clouds, each made when a service of it is first asked for. */
export function createAccounts(
  options: AccountOptions,
): (service: { readonly id: string }) => Account | undefined {
  const made = new Map<(options: AccountOptions) => Account, Account>();
  return ({ id }) => {
    const create = Object.hasOwn(ACCOUNTS, id) ? ACCOUNTS[id] : undefined;
    if (!create) return undefined;
    const account = made.get(create) ?? create(options);
    made.set(create, account);
    return account;
  };
}
