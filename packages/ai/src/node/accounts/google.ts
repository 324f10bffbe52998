import type { Account, AccountOptions } from "./accounts.ts";
import { explainLoadError } from "./optional-package.ts";

const PACKAGE = "google-auth-library";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/**
 * Application default credentials: a file that `GOOGLE_APPLICATION_CREDENTIALS` names, the login of `gcloud`, or the
 * metadata server, by Google's own package, which also renews tokens.
 */
export function createGoogleAccount({ env }: AccountOptions): Account {
  const keyFilename = env["GOOGLE_APPLICATION_CREDENTIALS"];
  const load = async () => {
    try {
      const { GoogleAuth } = await import("google-auth-library");
      return new GoogleAuth({ scopes: [SCOPE], ...(keyFilename ? { keyFilename } : {}) });
    } catch (error) {
      throw explainLoadError(error, PACKAGE, "Credentials of Google Cloud");
    }
  };
  let auth: ReturnType<typeof load> | undefined;
  return {
    place: `the application default credentials of Google Cloud (by ${PACKAGE})`,
    async get() {
      return (await (await (auth ??= load())).getAccessToken()) ?? undefined;
    },
  };
}
