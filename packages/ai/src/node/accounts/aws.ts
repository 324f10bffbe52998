import type { Account, AccountOptions } from "./accounts.ts";
import { explainLoadError } from "./optional-package.ts";

const PACKAGE = "@aws-sdk/credential-provider-node";
const PURPOSE = "Profiles, single sign-on, roles and instance credentials of AWS";

/**
 * Profiles, single sign-on, roles, web identities, containers and instances, by Amazon's own package, which reads the
 * files and variables of this process and keeps credentials until shortly before they end. `AWS_PROFILE` is that of `env`.
 */
export function createAwsAccount({ env }: AccountOptions): Account {
  const profile = env["AWS_PROFILE"];
  const load = async () => {
    try {
      const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
      return defaultProvider(profile ? { profile } : {});
    } catch (error) {
      throw explainLoadError(error, PACKAGE, PURPOSE);
    }
  };
  let provide: ReturnType<typeof load> | undefined;
  return {
    place: `the profiles, roles and instance credentials of AWS (by ${PACKAGE})`,
    async get() {
      const { accessKeyId, secretAccessKey, sessionToken } = await (await (provide ??= load()))();
      // As a key for Bedrock is written: its parts with colons between them.
      return [accessKeyId, secretAccessKey, ...(sessionToken ? [sessionToken] : [])].join(":");
    },
  };
}
