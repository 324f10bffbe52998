import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { complete } from "../../client/client.ts";
import type { Model } from "../../messages/messages.ts";
import { createModel } from "../../providers/testing/format-fixture.ts";
import { createModelClient } from "../client.ts";
import { explainLoadError } from "./optional-package.ts";

/** One server that stands for metadata, tokens and models; each test says what it answers. */
let folder = "";
let server: Server;
let address = "";
let asked: { method: string; url: string; headers: IncomingMessage["headers"]; body: string }[];
let answer: (path: string, body: string) => unknown;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "accounts-"));
  asked = [];
  answer = () => undefined;
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => (body += String(bytes)));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      asked.push({ method, url, headers, body });
      const given = answer(url, body);
      if (given === undefined) response.statusCode = 404;
      else if (url.includes("computeMetadata")) response.setHeader("metadata-flavor", "Google");
      const isText = typeof given === "string";
      response.setHeader("content-type", isText ? "text/xml" : "application/json");
      response.end(isText ? given : JSON.stringify(given ?? {}));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The packages of Amazon and Google read the variables of the process, and nothing of this machine is to be used.
  for (const name of Object.keys(process.env)) {
    if (/^(AWS_|GOOGLE_|GCE_|GCLOUD_|AZURE_|IDENTITY_)/.test(name)) vi.stubEnv(name, undefined);
  }
  vi.stubEnv("HOME", folder);
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
  vi.stubEnv("AWS_CONFIG_FILE", join(folder, "config"));
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(folder, "credentials"));
  vi.stubEnv("CLOUDSDK_CONFIG", folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  server.close();
  server.closeAllConnections();
  await rm(folder, { recursive: true });
});

/** Asks a model for whose service there is no key, and gives the error, if that is all there is. */
async function ask(model: Model, env: Record<string, string | undefined> = process.env) {
  const client = createModelClient({ env: { ...env, XDG_CONFIG_HOME: folder } });
  const message = await complete(client, model, { messages: [{ role: "user", content: "Hi" }] });
  return message.errorMessage ?? "";
}

const bedrock = (): Model =>
  createModel("bedrock-converse-stream", "amazon-bedrock", "amazon.nova-pro-v1:0", {
    baseUrl: address,
    quirks: { region: "us-east-1" },
  });
const sent = (path: string) => asked.find(({ url }) => url.includes(path));

describe("Amazon", () => {
  const inOneHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

  it("credentials of a container sign the request", async () => {
    answer = (path) =>
      path === "/creds"
        ? { AccessKeyId: "AKIA1", SecretAccessKey: "s1", Token: "t1", Expiration: inOneHour() }
        : undefined;
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", `${address}/creds`);
    await ask(bedrock());
    const { headers } = sent("/model/") ?? {};
    expect(headers?.["authorization"]).toContain("Credential=AKIA1/");
    expect(headers?.["x-amz-security-token"]).toBe("t1");
  });

  it("a role of a profile is taken on", async () => {
    answer = (_, body) =>
      body.includes("AssumeRole")
        ? `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKIA2</AccessKeyId><SecretAccessKey>s2</SecretAccessKey><SessionToken>t2</SessionToken><Expiration>${inOneHour()}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`
        : undefined;
    await writeFile(
      join(folder, "config"),
      "[profile work]\nrole_arn = arn:aws:iam::1:role/agent\nsource_profile = base\nregion = us-east-1\n[profile base]\nregion = us-east-1\n",
    );
    await writeFile(
      join(folder, "credentials"),
      "[base]\naws_access_key_id = AKIA0\naws_secret_access_key = s0\n",
    );
    vi.stubEnv("AWS_PROFILE", "work");
    vi.stubEnv("AWS_ENDPOINT_URL_STS", address);
    await ask(bedrock());
    expect(sent("/model/")?.headers["authorization"]).toContain("Credential=AKIA2/");
  });

  it("keys of a profile sign the request", async () => {
    await writeFile(
      join(folder, "credentials"),
      "[work]\naws_access_key_id = AKIA3\naws_secret_access_key = s3\n",
    );
    vi.stubEnv("AWS_PROFILE", "work");
    await ask(bedrock());
    expect(sent("/model/")?.headers["authorization"]).toContain("Credential=AKIA3/");
  });

  it("a login by single sign-on gives those of its role", async () => {
    await writeFile(
      join(folder, "config"),
      "[profile work]\nsso_session = office\nsso_account_id = 1\nsso_role_name = agent\nregion = us-east-1\n[sso-session office]\nsso_region = us-east-1\nsso_start_url = https://office.awsapps.example/start\n",
    );
    const cache = join(folder, ".aws", "sso", "cache");
    await mkdir(cache, { recursive: true });
    const name = createHash("sha1").update("office").digest("hex");
    const login = { accessToken: "sso-token", expiresAt: inOneHour(), region: "us-east-1" };
    await writeFile(join(cache, `${name}.json`), JSON.stringify(login));
    answer = (path) =>
      path.startsWith("/federation/credentials")
        ? {
            roleCredentials: {
              ...{ accessKeyId: "AKIA4", secretAccessKey: "s4", sessionToken: "t4" },
              expiration: Date.now() + 3_600_000,
            },
          }
        : undefined;
    vi.stubEnv("AWS_PROFILE", "work");
    vi.stubEnv("AWS_ENDPOINT_URL_SSO", address);
    await ask(bedrock());
    expect(sent("/federation/credentials")).toMatchObject({
      url: expect.stringContaining("role_name=agent"),
      headers: { "x-amz-sso_bearer_token": "sso-token" },
    });
    expect(sent("/model/")?.headers["authorization"]).toContain("Credential=AKIA4/");
  });

  it("an identity of the web takes on its role", async () => {
    answer = (_, body) =>
      body.includes("AssumeRoleWithWebIdentity")
        ? `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKIA5</AccessKeyId><SecretAccessKey>s5</SecretAccessKey><SessionToken>t5</SessionToken><Expiration>${inOneHour()}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
        : undefined;
    await writeFile(join(folder, "identity"), "a-token-of-the-web");
    vi.stubEnv("AWS_WEB_IDENTITY_TOKEN_FILE", join(folder, "identity"));
    vi.stubEnv("AWS_ROLE_ARN", "arn:aws:iam::1:role/agent");
    vi.stubEnv("AWS_REGION", "us-east-1");
    vi.stubEnv("AWS_ENDPOINT_URL_STS", address);
    await ask(bedrock());
    expect(asked[0]?.body).toContain("WebIdentityToken=a-token-of-the-web");
    expect(sent("/model/")?.headers["authorization"]).toContain("Credential=AKIA5/");
  });

  it("a machine gives those of its role, to requests with its token", async () => {
    const role = "/latest/meta-data/iam/security-credentials/";
    answer = (path) => {
      if (path === "/latest/api/token") return "a-token-of-the-machine";
      if (path === role) return "agent";
      if (path !== `${role}agent`) return undefined;
      const keys = { AccessKeyId: "AKIA6", SecretAccessKey: "s6", Token: "t6" };
      return { Code: "Success", ...keys, Expiration: inOneHour() };
    };
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", undefined);
    vi.stubEnv("AWS_EC2_METADATA_SERVICE_ENDPOINT", address);
    await ask(bedrock());
    expect(sent(`${role}agent`)?.headers["x-aws-ec2-metadata-token"]).toBe(
      "a-token-of-the-machine",
    );
    expect(sent("/model/")?.headers["authorization"]).toContain("Credential=AKIA6/");
  });

  it("where there are none, the error names the places", async () => {
    const error = await ask(bedrock());
    expect(error).toContain("There is no key for Amazon Bedrock");
    expect(error).toContain("nor in the profiles, roles and instance credentials of AWS");
    expect(asked).toEqual([]);
  });
});

describe("Google", () => {
  const gemini = (): Model =>
    createModel("google-generative-ai", "google-vertex", "gemini-2.5-flash", { baseUrl: address });

  it("the metadata server of a machine gives one", async () => {
    answer = (path) => {
      if (path.includes("/token")) return { access_token: "ya29.two", expires_in: 3600 };
      return path.includes("computeMetadata") ? "" : undefined;
    };
    vi.stubEnv("GCE_METADATA_HOST", address.replace("http://", ""));
    vi.stubEnv("METADATA_SERVER_DETECTION", "assume-present");
    await ask(gemini());
    expect(sent("/models/")?.headers["authorization"]).toBe("Bearer ya29.two");
  });

  it("the file of the application gives one, by the service that exchanges its token", async () => {
    answer = (path) => {
      if (path === "/token") {
        return {
          ...{ access_token: "ya29.four", expires_in: 3600, token_type: "Bearer" },
          issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
        };
      }
      return undefined;
    };
    await writeFile(join(folder, "subject"), "a-token-of-the-machine");
    const credentials = {
      type: "external_account",
      audience:
        "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      token_url: `${address}/token`,
      credential_source: { file: join(folder, "subject") },
    };
    await writeFile(join(folder, "adc.json"), JSON.stringify(credentials));
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", join(folder, "adc.json"));
    await ask(gemini());
    expect(new URLSearchParams(sent("/token")?.body).get("subject_token")).toBe(
      "a-token-of-the-machine",
    );
    expect(sent("/models/")?.headers["authorization"]).toBe("Bearer ya29.four");
  });

  it("Claude on Vertex AI has the model in its address and the version in its body", async () => {
    const claude = createModel("anthropic-vertex", "google-vertex-anthropic", "claude-opus-4-6@1", {
      baseUrl: `${address}/v1/projects/p/locations/global/publishers/anthropic`,
    });
    await ask(claude, { GOOGLE_VERTEX_TOKEN: "ya29.three" });
    const { url, headers, body } = asked[0] ?? { body: "{}" };
    expect(url).toBe(
      "/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-4-6@1:streamRawPredict",
    );
    expect(headers?.["authorization"]).toBe("Bearer ya29.three");
    expect(JSON.parse(body)).toMatchObject({
      anthropic_version: "vertex-2023-10-16",
      stream: true,
    });
    expect(JSON.parse(body)).not.toHaveProperty("model");
  });
});

describe("Azure", () => {
  const gpt = (): Model =>
    createModel("openai-responses", "azure-openai-responses", "gpt-4.1", { baseUrl: address });
  const TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln";
  const token = { access_token: TOKEN, expires_in: 3600 };
  const client = { AZURE_TENANT_ID: "tenant", AZURE_CLIENT_ID: "app" };

  it("a client secret gets a token, which is sent as one", async () => {
    answer = (path) => (path.includes("/token") ? token : undefined);
    const env = { ...client, AZURE_CLIENT_SECRET: "secret", AZURE_AUTHORITY_HOST: address };
    await ask(gpt(), env);
    expect(asked[0]).toMatchObject({ method: "POST", url: "/tenant/oauth2/v2.0/token" });
    expect(Object.fromEntries(new URLSearchParams(asked[0]?.body))).toEqual({
      grant_type: "client_credentials",
      client_id: "app",
      client_secret: "secret",
      scope: "https://cognitiveservices.azure.com/.default",
    });
    expect(sent("/responses")?.headers["authorization"]).toBe(`Bearer ${TOKEN}`);
    expect(sent("/responses")?.headers["api-key"]).toBeUndefined();
  });

  it("so does a federated token", async () => {
    answer = (path) => (path.includes("/token") ? token : undefined);
    const file = join(folder, "federated");
    await writeFile(file, "assertion\n");
    await ask(gpt(), {
      ...client,
      AZURE_FEDERATED_TOKEN_FILE: file,
      AZURE_AUTHORITY_HOST: address,
    });
    expect(new URLSearchParams(asked[0]?.body).get("client_assertion")).toBe("assertion");
    expect(sent("/responses")?.headers["authorization"]).toBe(`Bearer ${TOKEN}`);
  });

  it.each([
    ["an app", () => ({ IDENTITY_ENDPOINT: `${address}/msi`, IDENTITY_HEADER: "h" })],
    ["a machine", () => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: address })],
  ])("so does the identity of %s", async (_, env) => {
    answer = (path) =>
      path.includes("resource=") ? { access_token: TOKEN, expires_on: "4102444800" } : undefined;
    await ask(gpt(), env());
    expect(sent("/responses")?.headers["authorization"]).toBe(`Bearer ${TOKEN}`);
  });

  it("so does the login of the Azure CLI", async () => {
    const az = join(folder, "az");
    await writeFile(az, `#!/bin/sh\nprintf '{"accessToken":"${TOKEN}","expires_on":4102444800}'\n`);
    await chmod(az, 0o755);
    const PATH = `${folder}${delimiter}${process.env["PATH"]}`;
    await ask(gpt(), { PATH, AZURE_POD_IDENTITY_AUTHORITY_HOST: address });
    expect(sent("/responses")?.headers["authorization"]).toBe(`Bearer ${TOKEN}`);
  });

  it("that refuses is named, and no secret with it", async () => {
    answer = (path) =>
      path.includes("/token")
        ? { error: "invalid_client", error_description: "AADSTS7000215: no\nTrace: x" }
        : undefined;
    const env = { ...client, AZURE_CLIENT_SECRET: "secret-1", AZURE_AUTHORITY_HOST: address };
    const error = await ask(gpt(), env);
    expect(error).toContain("gave no token: AADSTS7000215: no");
    expect(error).not.toContain("secret-1");
  });
});

it("a package that is missing is named with the command that installs it", () => {
  const explain = (code: string): unknown => {
    const error = Object.assign(new Error("gone"), { code });
    return explainLoadError(error, "some-package", "Credentials of Some Cloud");
  };
  const message =
    "Credentials of Some Cloud need the package some-package. Run: npm install some-package";
  // Node's, and that of a program which a bundler built without it.
  expect(explain("ERR_MODULE_NOT_FOUND")).toMatchObject({ message });
  expect(explain("MODULE_NOT_FOUND")).toMatchObject({ message });
  expect(explain("EACCES")).toMatchObject({ message: "gone" });
});

it("a key that is there is used, and no account is asked", async () => {
  await ask(bedrock(), { AWS_BEARER_TOKEN_BEDROCK: "key-1" });
  expect(sent("/model/")?.headers["authorization"]).toBe("Bearer key-1");
});
