import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type SigV4Request, signRequest } from "./sigv4.ts";

/** The credentials, the place and the time of AWS's published examples. */
const example = {
  method: "GET",
  url: "https://example.amazonaws.com/",
  headers: {},
  body: "",
  region: "us-east-1",
  service: "service",
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  now: Date.UTC(2015, 7, 30, 12, 36, 0),
} satisfies SigV4Request;

async function authorization(request: Partial<SigV4Request>): Promise<string> {
  return (await signRequest({ ...example, ...request }))["authorization"] ?? "";
}

async function signature(request: Partial<SigV4Request>): Promise<string> {
  return (await authorization(request)).split("Signature=")[1] ?? "";
}

/** The signature of a canonical request that is written out, calculated another way. */
function signed(canonical: readonly string[], region: string, service: string): string {
  const hash = createHash("sha256").update(canonical.join("\n")).digest("hex");
  const scope = `20150830/${region}/${service}/aws4_request`;
  const key = ["20150830", region, service, "aws4_request"].reduce<Buffer>(
    (secret, part) => createHmac("sha256", secret).update(part).digest(),
    Buffer.from(`AWS4${example.secretAccessKey}`),
  );
  return createHmac("sha256", key)
    .update(`AWS4-HMAC-SHA256\n20150830T123600Z\n${scope}\n${hash}`)
    .digest("hex");
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe("the signatures that AWS has published", () => {
  test("a plain request", async () => {
    expect(await authorization({})).toBe(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
        "SignedHeaders=host;x-amz-date, " +
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    );
  });

  test("a plain POST", async () => {
    expect(await signature({ method: "post" })).toBe(
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    );
  });

  test("a query that is out of order", async () => {
    const url = "https://example.amazonaws.com/?Param2=value2&Param1=value1";
    expect(await signature({ url })).toBe(
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    );
  });

  test("a query that is not ASCII", async () => {
    expect(await signature({ url: "https://example.amazonaws.com/?ሴ=bar" })).toBe(
      "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    );
  });

  test("headers with spaces to take out", async () => {
    const headers = { "My-Header1": " value1", "My-Header2": ' "a   b   c"' };
    expect(await signature({ headers })).toBe(
      "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    );
  });

  test("a body", async () => {
    const request = {
      method: "POST",
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: "Param1=value1",
    };
    const expected = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
    expect(await signature(request)).toBe(expected);
    const bytes = new TextEncoder().encode(request.body);
    expect(await signature({ ...request, body: bytes })).toBe(expected);
  });

  test("the list of users in the guide", async () => {
    const request = {
      url: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
      headers: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
      service: "iam",
    };
    expect(await signature(request)).toBe(
      "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    );
  });
});

describe("a request to Bedrock", () => {
  const host = "bedrock-runtime.eu-west-1.amazonaws.com";
  const base = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"messages":[]}',
    region: "eu-west-1",
    service: "bedrock",
  };

  for (const [what, path, canonicalPath] of [
    ["a colon that is encoded", "/model/m-v1%3A0/converse", "/model/m-v1%253A0/converse"],
    ["a colon as such", "/model/m-v1:0/converse", "/model/m-v1%3A0/converse"],
    [
      "an ARN",
      "/model/arn%3Aaws%3Abedrock%3A%3A1%3Aprofile%2Fm/invoke",
      "/model/arn%253Aaws%253Abedrock%253A%253A1%253Aprofile%252Fm/invoke",
    ],
    ["other signs", "/a(b)!*'/~c", "/a%28b%29%21%2A%27/~c"],
    ["slashes that say nothing", "//model///m/", "/model/m/"],
  ] as const) {
    test(`signs the path with ${what} encoded once more`, async () => {
      const canonical = [
        "POST",
        canonicalPath,
        "",
        "content-type:application/json",
        `host:${host}`,
        "x-amz-date:20150830T123600Z",
        "",
        "content-type;host;x-amz-date",
        sha256(base.body),
      ];
      expect(await signature({ ...base, url: `https://${host}${path}` })).toBe(
        signed(canonical, "eu-west-1", "bedrock"),
      );
    });
  }

  test("signs a session token, a port and a query", async () => {
    const url = new URL("http://localhost:4566/x?b=1%202&a=%C3%BC&a=*&c+d&=");
    const canonical = [
      "POST",
      "/x",
      "=&a=%2A&a=%C3%BC&b=1%202&c%2Bd=",
      "content-type:application/json",
      "host:localhost:4566",
      "x-amz-date:20150830T123600Z",
      "x-amz-security-token:to/ken=",
      "",
      "content-type;host;x-amz-date;x-amz-security-token",
      sha256(base.body),
    ];
    expect(await signature({ ...base, url, sessionToken: "to/ken=" })).toBe(
      signed(canonical, "eu-west-1", "bedrock"),
    );
  });
});

describe("the headers to send", () => {
  test("are those given and the signature's, in lower case and without host", async () => {
    const headers = {
      Accept: "a",
      Host: "elsewhere",
      Authorization: "old",
      "X-Amz-Date": "old",
      "User-Agent": "gyre",
    };
    const given = { ...headers };
    const sent = await signRequest({ ...example, headers, sessionToken: "token" });
    expect(sent).toEqual({
      accept: "a",
      "user-agent": "gyre",
      "x-amz-date": "20150830T123600Z",
      "x-amz-security-token": "token",
      authorization: expect.stringContaining(
        "SignedHeaders=accept;host;x-amz-date;x-amz-security-token,",
      ),
    });
    expect(headers).toEqual(given);
  });

  test("leave what others may change unsigned", async () => {
    const headers = { "User-Agent": "gyre", Connection: "close", "Content-Length": "0" };
    expect(await signature({ headers })).toBe(await signature({}));
  });
});
