import { manualClock } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { McpConfigError } from "../config/config.ts";
import type { McpAnswer, McpQuestion } from "../contract/question.ts";
import { type Era, type TeaServer, teaServer } from "../testing/tea-server.ts";
import { connectMcp, type ConnectMcpOptions } from "./connect.ts";
import type { McpConnection } from "./connection.ts";

let server: TeaServer;
let opened: McpConnection[];

beforeEach(() => {
  opened = [];
});
afterEach(async () => {
  for (const client of opened) await client.close();
  await server.close();
});

async function connect(era: Era, options: Partial<ConnectMcpOptions> = {}): Promise<McpConnection> {
  server = await teaServer({ era });
  const client = connectMcp({ config: { url: server.url }, name: "tea", ...options });
  opened.push(client);
  return client;
}

describe.each([
  ["legacy" as const, "2025-11-25"],
  ["modern" as const, "2026-07-28"],
])("a client of ours with a server of the %s era", (era, version) => {
  it("gets to know it, and has all that it has", async () => {
    const client = await connect(era);
    expect(await client.info()).toEqual({
      name: "tea",
      version: "7",
      protocolVersion: version,
      instructions: "Ask for tea.",
      lists: ["tools", "resources", "prompts"],
    });
    const names = (list: readonly { name: string }[]): string[] => list.map(({ name }) => name);
    expect(names(await client.tools())).toEqual(["brew", "order", "wait", "spill"]);
    expect(names(await client.resources())).toEqual(["menu", "leaf"]);
    expect(names(await client.resourceTemplates())).toEqual(["kind"]);
    expect(names(await client.prompts())).toEqual(["recommend"]);
    const { contents } = await client.read("tea://kinds/white");
    expect(contents).toMatchObject([{ text: "white is a tea." }]);
    const { messages } = await client.prompt("recommend", { mood: "awake" });
    expect(JSON.stringify(messages)).toContain("awake");
    expect(
      await client.complete({
        ref: { type: "ref/resource", uri: "tea://kinds/{kind}" },
        argument: { name: "kind", value: "b" },
      }),
    ).toEqual(["black"]);
    await expect(client.read("tea://nowhere")).rejects.toThrow("answered with an error");
  });

  it("gets progress", async () => {
    const client = await connect(era);
    const progress: unknown[] = [];
    await client.call("brew", { kind: "green" }, { onProgress: (one) => void progress.push(one) });
    await vi.waitFor(() => expect(progress).toHaveLength(2));
    expect(progress[0]).toEqual({ progress: 1, total: 2, message: "heating" });
  });

  it("cancels what is aborted", async () => {
    const client = await connect(era);
    const controller = new AbortController();
    const running = client.call("wait", {}, { signal: controller.signal });
    await vi.waitFor(() => expect(server.notes).toContain("waiting"));
    controller.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    await vi.waitFor(() => expect(server.notes).toContain("aborted"));
  });

  it("asks a person, with forms and with pages, and with defaults", async () => {
    const asked: McpQuestion[] = [];
    const ask = async (question: McpQuestion): Promise<McpAnswer> => {
      asked.push(question);
      return { action: "accept", ...(question.kind === "form" && { content: { name: "black" } }) };
    };
    const client = await connect(era, { ask });
    const progress: unknown[] = [];
    const onProgress = (one: unknown): void => void progress.push(one);
    const { content } = await client.call("order", {}, { onProgress });
    // The server reports none: that it waits for a person is no progress.
    expect(progress).toEqual([]);
    expect(content).toEqual([{ type: "text", text: "2 cups of black: accept." }]);
    expect(asked).toMatchObject([
      { kind: "form", server: "tea", message: "Which tea?" },
      { kind: "url", message: "Pay here.", url: "https://pay.example/1" },
    ]);
  });

  it("offers a server to ask only where a person is there", async () => {
    const client = await connect(era);
    const result = await client.call("order", {}).catch((error: unknown) => ({
      content: String(error),
      isError: true,
    }));
    expect(result.isError).toBe(true);
    expect(server.notes).not.toContain("done");
  });

  it("waits for a person for as long as it takes, and for a server not", async () => {
    const clock = manualClock();
    let answer: (answer: McpAnswer) => void = () => {};
    let isAsked = false;
    const ask = () =>
      new Promise<McpAnswer>((settle) => {
        isAsked = true;
        answer = settle;
      });
    const client = await connect(era, { ask, clock });
    const running = client.call("order", {});
    await vi.waitFor(() => expect(isAsked).toBe(true));
    await clock.advance(3_600_000);
    answer({ action: "decline" });
    expect((await running).content).toEqual([{ type: "text", text: "Not ordered: decline." }]);
    const late = client.call("wait", {}).then(String, String);
    await vi.waitFor(() => expect(server.notes).toContain("waiting"));
    await clock.advance(60_000);
    expect(await late).toContain("did not answer within 60000 ms");
    await vi.waitFor(() => expect(server.notes).toContain("aborted"));
  });

  it("is notified of lists that have changed, and lists them again", async () => {
    const changed: string[] = [];
    const client = await connect(era, { onListChanged: (list) => void changed.push(list) });
    const before = await client.tools();
    expect(await client.tools()).toBe(before);
    const [first] = server.tools;
    if (!first) throw new Error("There is no tool.");
    server.tools.push({ ...first, name: "brew-again" });
    await vi.waitFor(() => {
      server.changed("tools");
      server.changed("prompts");
      expect(changed).toEqual(expect.arrayContaining(["tools", "prompts"]));
    });
    expect((await client.tools()).map(({ name }) => name)).toContain("brew-again");
  });
});

it("a server without resources and prompts has none of them", async () => {
  server = await teaServer();
  const { listenMcp } = await import("../serve/listen.ts");
  const bare = await listenMcp({ version: "1" });
  try {
    const client = connectMcp({ config: { url: bare.url } });
    opened.push(client);
    expect(await client.tools()).toEqual([]);
    expect(await client.resources()).toEqual([]);
    expect(await client.resourceTemplates()).toEqual([]);
    expect(await client.prompts()).toEqual([]);
    await client.close();
  } finally {
    await bare.close();
  }
});

it("a configuration that cannot be used is refused at once", async () => {
  server = await teaServer();
  expect(() => connectMcp({ config: {} as never })).toThrow(McpConfigError);
});
