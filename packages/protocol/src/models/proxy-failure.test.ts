import { type Context } from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { SILENCE_MS, streamProxy, type StreamProxyOptions } from "./proxy.ts";
import {
  type AnsweringServer,
  hastyClock,
  type Heard,
  heard,
  listenAnswers,
  type Listening,
  listenRaw,
} from "../testing/http-streams.ts";

const open: Listening[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const context: Context = { messages: [{ role: "user", content: "Go", timestamp: 0 }] };
const HASTY = hastyClock(SILENCE_MS - 1);

function ask(url: string, options: Partial<StreamProxyOptions> = {}): Promise<Heard> {
  const asked = { url, token: "t-secret-1", clock: HASTY, ...options };
  return heard(streamProxy(scriptedModelInfo, context, asked));
}

async function answering(answer: string): Promise<AnsweringServer> {
  const server = await listenAnswers([answer]);
  open.push(server);
  return server;
}

describe("HTTP: an error", () => {
  const json = "content-type: application/json\r\n";
  const errorBody = (code: string, more = {}): string =>
    JSON.stringify({ error: { code, message: "Words.", ...more } });

  it.each([
    ["401", json, errorBody("unauthorized"), { kind: "auth", retryable: false, status: 401 }],
    ["403", "", "", { kind: "auth", retryable: false, status: 403 }],
    [
      "404",
      json,
      errorBody("model_not_found"),
      { kind: "bad_request", retryable: false, status: 404 },
    ],
    ["404", "", "", { kind: "bad_request", retryable: false, status: 404 }],
    ["413", json, errorBody("too_large"), { kind: "overflow", retryable: false, status: 413 }],
    ["413", "", "", { kind: "overflow", retryable: false, status: 413 }],
    [
      "400",
      json,
      errorBody("context_overflow"),
      { kind: "overflow", retryable: false, status: 400 },
    ],
    [
      "429",
      `${json}retry-after: 3\r\n`,
      errorBody("rate_limited"),
      { kind: "rate_limit", retryable: true, status: 429, retryAfterMs: 3000 },
    ],
    [
      "429",
      "retry-after: Thu, 01 Jan 1970 00:00:09 GMT\r\n",
      "",
      { kind: "rate_limit", retryable: true, status: 429, retryAfterMs: 9000 },
    ],
    [
      "429",
      json,
      errorBody("rate_limited", { retryAfterMs: 1500 }),
      { kind: "rate_limit", retryable: true, status: 429, retryAfterMs: 1500 },
    ],
    ["500", json, errorBody("internal_error"), { kind: "unknown", retryable: true, status: 500 }],
    [
      "502",
      "content-type: text/html\r\n",
      "<html>",
      { kind: "overloaded", retryable: true, status: 502 },
    ],
    ["503", "", "", { kind: "overloaded", retryable: true, status: 503 }],
    [
      "302",
      "location: http://else/\r\n",
      "",
      { kind: "bad_request", retryable: false, status: 302 },
    ],
  ])("%s %j %j has its kind", async (status, headers, text, failure) => {
    const { requests, url } = await answering(
      `HTTP/1.1 ${status} Words\r\n${headers}connection: close\r\n\r\n${text}`,
    );
    const clock = { ...HASTY, now: () => 0 };
    const { events, message } = await ask(url, { clock });
    expect(message.failure).toEqual(failure);
    expect(events).toHaveLength(1);
    expect(requests).toHaveLength(1);
  });

  it.each([
    ["text/html", "<!doctype html><title>Sign in</title>"],
    ["application/json", '{"ok":true}'],
    ["", "Hello"],
  ])("%s in place of an event stream is named in the error", async (type, text) => {
    const { url } = await answering(
      `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n${text}`,
    );
    const { message } = await ask(url);
    expect(message.failure).toEqual({ kind: "unknown", retryable: false, status: 200 });
    expect(message.errorMessage).toContain("in place of text/event-stream");
    expect(message.errorMessage).toContain(type);
  });

  it("without a server is a network error", async () => {
    const server = await listenRaw(() => {});
    await server.close();
    const { message } = await ask(server.url);
    expect(message.failure).toEqual({ kind: "network", retryable: true });
    expect(message.errorMessage).toContain("ECONNREFUSED");
  });

  it("never shows the token", async () => {
    const { url } = await answering(
      `HTTP/1.1 401 No\r\n${json}connection: close\r\n\r\n${JSON.stringify({ error: { code: "unauthorized", message: "t-secret-1 is wrong" } })}`,
    );
    expect((await ask(url)).message.errorMessage).not.toContain("t-secret-1");
    const strange = await ask(url, { token: "t-secret-1\u2603" });
    expect(strange.message.stopReason).toBe("error");
    expect(strange.message.errorMessage).not.toContain("t-secret-1");
    const untrimmed = await ask(url, { token: "t-secret-1\n" });
    expect(untrimmed.message.errorMessage).not.toContain("t-secret-1");
  });
});
