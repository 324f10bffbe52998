import { describe, expect, it } from "vitest";
import { redact } from "../../common/redact.ts";
import type { FileContent, Message } from "../../messages/messages.ts";
import { fakeService } from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";
import { explainUnsendable } from "../explain-file.ts";

const SECRET = "c2VjcmV0LXNpZ25hdHVyZS0wMTIz";

/** Addresses that are a key themselves, in the forms of those that sign them. */
const SIGNED: readonly (readonly [string, string])[] = [
  [
    "S3",
    `https://bucket.s3.amazonaws.com/a.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${SECRET}%2F20250101%2Fus-east-1&X-Amz-Security-Token=${SECRET}&X-Amz-Signature=${SECRET}`,
  ],
  ["S3, older", `https://bucket.s3.amazonaws.com/a.pdf?AWSAccessKeyId=AK&Signature=${SECRET}`],
  [
    "Google Cloud Storage",
    `https://storage.googleapis.com/b/a.pdf?X-Goog-Credential=${SECRET}&X-Goog-Signature=${SECRET}`,
  ],
  ["Azure", `https://acc.blob.core.windows.net/c/a.pdf?sv=2024-01-01&sr=b&sig=${SECRET}`],
  [
    "CloudFront",
    `https://d1.cloudfront.net/a.pdf?Expires=1&Policy=${SECRET}&Signature=${SECRET}&Key-Pair-Id=K1`,
  ],
  ["a token", `https://files.example/a.pdf?token=${SECRET}`],
  ["an access token", `https://files.example/a.pdf?access_token=${SECRET}`],
  ["a password", `https://user:${SECRET}@files.example/a.pdf`],
];

function userWith(url: string): Message {
  const file: FileContent = {
    type: "file",
    mediaType: "application/pdf",
    name: "a.pdf",
    source: { type: "url", url },
  };
  return { role: "user", content: [file], timestamp: 0 };
}

describe.each(SIGNED)("an address signed by %s", (_, url) => {
  it.each([url, JSON.stringify({ url }), encodeURIComponent(url), `Cannot load '${url}'.`])(
    "is shown without its signature: %#",
    (text) => expect(redact(text)).not.toContain(SECRET),
  );

  it("is not in the error of a service that quotes it", async () => {
    const message = `Unable to download the file. Please verify the URL and try again: ${url}`;
    const { fetch } = fakeService({
      status: 400,
      body: JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }),
      headers: { "content-type": "application/json" },
    });
    const model = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5");
    const { stream } = findFormat(model.api).create({ fetch });
    const answer = await stream(model, { messages: [userWith(url)] }, { apiKey: "test-key-01234" });
    const { errorMessage } = await answer.result();
    expect(errorMessage).toContain("Unable to download");
    expect(errorMessage).not.toContain(SECRET);
  });

  it("is not in the error of a file that a service does not take", async () => {
    const service = fakeService({ status: 400, body: "{}" });
    const model = createModel("openai-completions", "groq", "model-1");
    const { stream } = findFormat(model.api).create({ fetch: service.fetch });
    const answer = await stream(model, { messages: [userWith(url)] }, { apiKey: "test-key-01234" });
    const { errorMessage } = await answer.result();
    expect(service.requests).toEqual([]);
    expect(errorMessage).toContain("a.pdf");
    expect(errorMessage).not.toContain(SECRET);
    const [file] = userWith(url).content as FileContent[];
    expect(String(file && (await explainUnsendable(file, model)))).not.toContain(SECRET);
  });
});

it("addresses that are not signed stay as they are", () => {
  const url = "https://example.org/policy?page=2&signature_style=bold&designature=x&expires=1";
  expect(redact(url)).toBe(url);
});
