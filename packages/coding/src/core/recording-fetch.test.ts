import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { httpFetch } from "@gyre/ai/node";
import { recordingFetch } from "./recording-fetch.ts";

const REQUEST = {
  method: "POST",
  headers: {},
  body: "{}",
  signal: new AbortController().signal,
  redirect: "manual",
} as const;
const KEY = "sk-only-for-this-test-1234567890";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "gyre-record-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function pieces(...texts: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const text of texts) controller.enqueue(encoder.encode(text));
      controller.close();
    },
  });
}

it("writes down what is sent and received, and no key, also one that a service cuts in two", async () => {
  const file = join(folder(), "deep", "wire.jsonl");
  const service = async (): Promise<Response> =>
    new Response(pieces("one\ntwo ", `wrong key ${KEY.slice(0, 12)}`, `${KEY.slice(12)} end`), {
      status: 401,
      headers: { "x-request": "7", "set-cookie": `a=${KEY}` },
    });
  const fetch = recordingFetch(service, file);
  const response = await fetch("https://service.test/v1?x=1", {
    ...REQUEST,
    headers: { authorization: `Bearer ${KEY}`, "x-plain": "seen" },
    body: JSON.stringify({ hello: "there", leaked: KEY }),
  });
  expect(await new Response(response.body).text()).toBe(`one\ntwo wrong key ${KEY} end`);
  expect([response.status, response.headers.get("x-request")]).toEqual([401, "7"]);

  const text = readFileSync(file, "utf8");
  expect(text).not.toContain(KEY);
  expect(text).not.toContain(KEY.slice(0, 12));
  const lines = text
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(lines).toMatchObject([
    { request: 1, sent: "https://service.test/v1?x=1", headers: { "x-plain": "seen" } },
    { request: 1, status: 401, headers: { "x-request": "7" } },
    { request: 1, received: "one\n" },
    { request: 1, received: "two wrong key [redacted] end" },
  ]);
  expect(text).toContain("hello");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it("writes down why nothing came, and passes it on", async () => {
  const file = join(folder(), "wire.jsonl");
  const fetch = recordingFetch(async () => Promise.reject(new Error("no such host")), file);
  await expect(fetch("https://service.test/", REQUEST)).rejects.toThrow("no such host");
  expect(readFileSync(file, "utf8")).toContain('"failed":"no such host"');
});

it("says at once that its file cannot be written", () => {
  expect(() => recordingFetch(httpFetch, "/dev/null/wire.jsonl")).toThrow(/ENOTDIR|EEXIST/);
});
