import { scriptedModel } from "@gyre/ai/testing";
import { afterEach, expect, it, vi } from "vitest";
import { connectUrl as connectInBrowser } from "../client/connect-url.ts";
import { ModelService } from "../models/models-service.ts";
import { createRemoteClient } from "../models/remote-client.ts";
import { WireServer } from "../server/service.ts";
import { listenHttp } from "./http/server.ts";
import { connectUrl, listenTcp, listenUrl } from "./transports.ts";

const TOKEN = "a-token-of-this-test";
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A server with one model that answers "Hello.", on HTTP and TCP. */
async function served(): Promise<{
  http: string;
  tcp: string;
  model: ReturnType<typeof scripted>;
}> {
  const model = scripted();
  const wire = new WireServer([new ModelService({ client: model, models: () => [model.model] })]);
  const serve = (transport: Parameters<WireServer["serve"]>[0]): void => void wire.serve(transport);
  const http = await listenHttp({ token: TOKEN, serve });
  const tcp = await listenTcp({ token: TOKEN, serve });
  closing.push(
    () => http.close({ graceMs: 0 }),
    () => tcp.close({ graceMs: 0 }),
    () => wire.close(),
  );
  return { http: `127.0.0.1:${http.port}`, tcp: `127.0.0.1:${tcp.port}`, model };
}

function scripted(): ReturnType<typeof scriptedModel> {
  return scriptedModel(() => "Hello.");
}

it.each(["ws", "http", "tcp"])("%s: is an address of a server", async (kind) => {
  const { http, model, tcp } = await served();
  const url = `${kind}://${kind === "tcp" ? tcp : http}`;
  const client = createRemoteClient({ connect: connectUrl(url, { token: TOKEN }) });
  closing.push(() => client.close());
  const asked = { role: "user" as const, content: "Hi", timestamp: 0 };
  const answer = await client.complete(model.model, { messages: [asked] });
  expect(answer).toMatchObject({ content: [{ type: "text", text: "Hello." }], stopReason: "stop" });
});

it("a client is made of an address alone", async () => {
  const { http, model } = await served();
  const client = createRemoteClient({ url: `http://${http}`, token: TOKEN });
  closing.push(() => client.close());
  expect(await client.models()).toMatchObject([{ id: model.model.id }]);
});

it.each(["http:", "tcp:"])(
  "%s listens at an address, which it reports for clients",
  async (scheme) => {
    const model = scripted();
    const wire = new WireServer([new ModelService({ client: model, models: () => [model.model] })]);
    const listener = await listenUrl(`${scheme}//127.0.0.1:0`, {
      token: TOKEN,
      serve: (transport) => wire.serve(transport),
    });
    closing.push(
      () => listener.close({ graceMs: 0 }),
      () => wire.close(),
    );
    expect(listener.url).toMatch(new RegExp(`^${scheme}//127\\.0\\.0\\.1:[1-9]\\d*$`));
    const client = createRemoteClient({ connect: connectUrl(listener.url, { token: TOKEN }) });
    closing.push(() => client.close());
    expect(await client.models()).toMatchObject([{ id: model.model.id }]);
  },
);

it("a path is on the server that a page is from, found when it connects", async () => {
  const { signal } = new AbortController();
  const connect = connectInBrowser("/api/gyre");
  const whole = "Write a whole address, like https://shop.example/api/gyre.";
  await expect(connect(signal)).rejects.toThrow(
    `"/api/gyre" is a path, and there is no page here. ${whole}`,
  );
  const asked: string[] = [];
  vi.stubGlobal("location", new URL("https://shop.example/tea?x#y"));
  vi.stubGlobal("fetch", (url: unknown) => {
    asked.push(String(url));
    return Promise.reject(new TypeError("There is no network."));
  });
  try {
    await expect(connect(signal)).rejects.toThrow("There is no network.");
    await expect(connectInBrowser("//evil.example/api")(signal)).rejects.toThrow(
      '"//evil.example/api" does not stay on the server of this page',
    );
  } finally {
    vi.unstubAllGlobals();
  }
  expect(asked).toEqual(["https://shop.example/api/gyre/api/connect"]);
});

it("an address of another scheme is refused, with the schemes that there are", () => {
  expect(() => connectUrl("ftp://x")).toThrow('"ftp://x" does not begin with ws:');
  expect(() => connectUrl("nonsense")).toThrow('"nonsense" is not an address');
  expect(() => connectInBrowser("tcp://127.0.0.1:1")).toThrow("does not begin with ws:, wss:");
  const options = { token: TOKEN, serve: () => {} };
  expect(() => listenUrl("ftp://x", options)).toThrow('"ftp://x" does not begin with ws:');
  expect(() => listenUrl("ws://x", options)).toThrow('"ws://x" cannot be listened on');
});
