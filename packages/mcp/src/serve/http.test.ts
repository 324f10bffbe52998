import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type TeaServer, teaServer } from "../testing/tea-server.ts";
import { createMcpHandler, MAX_SESSIONS } from "./http.ts";

/** What the newer era answers with. */
interface Answer {
  result?: { requestState?: string };
}

let server: TeaServer;
let clients: Client[];

beforeEach(async () => {
  clients = [];
  server = await teaServer();
});
afterEach(async () => {
  for (const client of clients) await client.close();
  await server.close();
});

/** The client of the protocol's own library. */
async function connect(
  mode: "legacy" | { pin: string },
  options: Partial<ConstructorParameters<typeof Client>[1]> = {},
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode }, ...options },
  );
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  return client;
}

const ERAS = [
  ["2025-11-25", "legacy" as const],
  ["2026-07-28", { pin: "2026-07-28" }],
] as const;

describe.each(ERAS)("a server of ours in %s", (version, mode) => {
  it("says who it is, and lists all that it has", async () => {
    const client = await connect(mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect(client.getServerVersion()).toEqual({ name: "tea", version: "7" });
    expect(client.getInstructions()).toBe("Ask for tea.");
    const names = (list: readonly { name: string }[]): string[] => list.map(({ name }) => name);
    expect(names((await client.listTools()).tools)).toEqual(["brew", "order", "wait", "spill"]);
    expect(names((await client.listResources()).resources)).toEqual(["menu", "leaf"]);
    expect(names((await client.listResourceTemplates()).resourceTemplates)).toEqual(["kind"]);
    expect(names((await client.listPrompts()).prompts)).toEqual(["recommend"]);
  });

  it("runs tools, with progress, and checks their arguments", async () => {
    const client = await connect(mode);
    const progress: unknown[] = [];
    const result = await client.callTool(
      { name: "brew", arguments: { kind: "green" } },
      { onprogress: (one) => void progress.push(one) },
    );
    expect(result.content).toEqual([{ type: "text", text: "Brewed green." }]);
    await vi.waitFor(() =>
      expect(progress).toEqual([
        { progress: 1, total: 2, message: "heating" },
        { progress: 2, total: 2 },
      ]),
    );
    const bad = await client.callTool({ name: "brew", arguments: {} });
    expect(bad.isError).toBe(true);
    expect(JSON.stringify(bad.content)).toContain("kind");
    const none = await client.callTool({ name: "brow", arguments: {} });
    expect(JSON.stringify(none.content)).toContain("Did you mean brew?");
    expect(await client.callTool({ name: "spill", arguments: {} })).toMatchObject({
      isError: true,
      content: [{ text: "The tea is on the floor." }],
    });
  });

  it("reads resources, also of templates, and says which it does not have", async () => {
    const client = await connect(mode);
    const read = async (uri: string) => (await client.readResource({ uri })).contents;
    expect(await read("tea://menu")).toEqual([
      { uri: "tea://menu", mimeType: "text/plain", text: "green, black" },
    ]);
    expect(await read("tea://leaf")).toMatchObject([{ mimeType: "image/gif" }]);
    expect(await read("tea://kinds/green")).toMatchObject([{ text: "green is a tea." }]);
    for (const uri of ["tea://nowhere", "tea://kinds/coffee"]) {
      await expect(read(uri)).rejects.toMatchObject({ code: -32602, data: { uri } });
    }
  });

  it("has prompts, and completes what is typed", async () => {
    const client = await connect(mode);
    const given = await client.getPrompt({ name: "recommend", arguments: { mood: "tired" } });
    expect(JSON.stringify(given.messages)).toContain("tired");
    await expect(client.getPrompt({ name: "recommend" })).rejects.toThrow('the argument "mood"');
    await expect(client.getPrompt({ name: "recommand" })).rejects.toThrow(
      "Did you mean recommend?",
    );
    const { completion } = await client.complete({
      ref: { type: "ref/resource", uri: "tea://kinds/{kind}" },
      argument: { name: "kind", value: "gr" },
    });
    expect(completion.values).toEqual(["green"]);
  });

  it("asks in the middle of a call, more than once", async () => {
    const client = await connect(mode, { capabilities: { elicitation: { form: {}, url: {} } } });
    const asked: string[] = [];
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message);
      return {
        action: "accept",
        ...(params.mode !== "url" && { content: { name: "green", cups: 3 } }),
      };
    });
    const result = await client.callTool({ name: "order", arguments: {} });
    expect(result.content).toEqual([{ type: "text", text: "3 cups of green: accept." }]);
    expect(asked).toEqual(["Which tea?", "Pay here."]);
    // From its beginning each time, and to its end once.
    expect(server.notes).toEqual(["started", "started", "started", "done"]);
  });

  it("goes on where the person does not want to answer", async () => {
    const client = await connect(mode, { capabilities: { elicitation: { form: {}, url: {} } } });
    client.setRequestHandler("elicitation/create", () => ({ action: "decline" }));
    const result = await client.callTool({ name: "order", arguments: {} });
    expect(result.content).toEqual([{ type: "text", text: "Not ordered: decline." }]);
  });

  it("stops a tool when its client cancels", async () => {
    const client = await connect(mode);
    const controller = new AbortController();
    const running = client.callTool({ name: "wait", arguments: {} }, { signal: controller.signal });
    await vi.waitFor(() => expect(server.notes).toContain("waiting"));
    controller.abort();
    await expect(running).rejects.toThrow("aborted");
    await vi.waitFor(() => expect(server.notes).toContain("aborted"));
  });

  it("notifies of lists that have changed, which are other ones from then on", async () => {
    const changed: string[] = [];
    const on = (list: string) => ({
      autoRefresh: false,
      debounceMs: 0,
      onChanged: () => void changed.push(list),
    });
    const client = await connect(mode, {
      listChanged: { tools: on("tools"), prompts: on("prompts"), resources: on("resources") },
    });
    await client.listTools();
    const [first] = server.tools;
    if (!first) throw new Error("There is no tool.");
    server.tools.push({ ...first, name: "brew-again" });
    await vi.waitFor(() => {
      server.changed("tools");
      server.changed("prompts");
      server.changed("resources");
      expect(new Set(changed)).toEqual(new Set(["tools", "prompts", "resources"]));
    });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("brew-again");
  });
});

describe("a server of ours", () => {
  it("notifies those that watch a resource, and no others", async () => {
    const client = await connect("legacy");
    const updated: string[] = [];
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
      updated.push(params.uri);
    });
    await client.subscribeResource({ uri: "tea://menu" });
    await vi.waitFor(() => {
      server.updated("tea://leaf");
      server.updated("tea://menu");
      expect(updated).toContain("tea://menu");
    });
    await client.unsubscribeResource({ uri: "tea://menu" });
    const before = updated.length;
    server.updated("tea://menu");
    await client.ping();
    expect(updated.slice(before)).toEqual([]);
    expect(updated).not.toContain("tea://leaf");
  });

  it("is not asked by a page of another site", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const ask = async (headers: Record<string, string>): Promise<number> => {
      const request = new Request("http://localhost/mcp", {
        method: "POST",
        body,
        headers: { "content-type": "application/json", ...headers },
      });
      const handler = await createMcpHandler({ version: "1" });
      const { status } = await handler.fetch(request);
      await handler.close();
      return status;
    };
    expect(await ask({ host: "evil.example" })).toBe(403);
    expect(await ask({ host: "localhost", origin: "https://evil.example" })).toBe(403);
    expect(await ask({ host: "localhost:1", origin: "http://127.0.0.1:2" })).not.toBe(403);
  });

  it("forgets the client that was quiet for longest where there are too many", async () => {
    const handler = await createMcpHandler({ version: "1", hosts: "any" });
    const initialize = (): Promise<Response> =>
      handler.fetch(
        post({
          method: "initialize",
          params: {
            protocolVersion: "2025-11-25",
            capabilities: {},
            clientInfo: { name: "t", version: "1" },
          },
        }),
      );
    const post = (message: object, session?: string): Request =>
      new Request("http://localhost/mcp", {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...(session !== undefined && { "mcp-session-id": session }),
        },
      });
    const first = (await initialize()).headers.get("mcp-session-id") ?? "";
    const second = (await initialize()).headers.get("mcp-session-id") ?? "";
    const ping = async (session: string): Promise<number> =>
      (await handler.fetch(post({ method: "ping" }, session))).status;
    for (let n = 2; n < MAX_SESSIONS; n++) await (await initialize()).body?.cancel();
    expect(await ping(first)).toBe(200);
    await initialize();
    expect(await ping(first)).toBe(200);
    expect(await ping(second)).toBe(404);
    await handler.close();
    expect(await ping(first)).toBe(404);
  });

  it("takes no state that it has not signed, nor that of another tool", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } },
    };
    const call = async (name: string, more: object = {}): Promise<Answer> => {
      const response = await fetch(server.url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": name,
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name, arguments: {}, _meta: meta, ...more },
        }),
      });
      return (await response.json()) as Answer;
    };
    const twin = server.tools.find(({ name }) => name === "order");
    if (!twin) throw new Error("There is no such tool.");
    server.tools.push({ ...twin, name: "order-2" });
    const inputResponses = { kind: { action: "accept", content: { name: "green" } } };
    const first = await call("order", {});
    expect(first).toMatchObject({
      result: { resultType: "input_required", inputRequests: { kind: {} } },
    });
    const { requestState } = first.result ?? {};
    const second = await call("order", { requestState, inputResponses });
    expect(second).toMatchObject({ result: { inputRequests: { pay: {} } } });
    const later = second.result?.requestState ?? "";
    // The answer to the first question is in the state, and only for this tool.
    expect(await call("order", { requestState: later })).toMatchObject({
      result: { inputRequests: { pay: {} } },
    });
    expect(await call("order-2", { requestState: later })).toMatchObject({
      result: { inputRequests: { kind: {} } },
    });
    const changed = `${later.slice(0, -2)}${later.endsWith("A") ? "B" : "A"}A`;
    expect(await call("order", { requestState: changed })).toMatchObject({
      error: { code: -32602 },
    });
    expect(await call("order", { requestState: "anything" })).toMatchObject({
      error: { code: -32602 },
    });
    // What was signed is not changed by a later answer.
    const pay = { action: "accept" };
    const other = { action: "accept", content: { name: "black", cups: 99 } };
    const end = await call("order", { requestState: later, inputResponses: { pay, kind: other } });
    expect(JSON.stringify(end)).toContain("of green");
  });

  it("reads no request beyond all measure", async () => {
    const body = "x".repeat(MAX_MESSAGE_BYTES + 1);
    const headers = { "content-type": "application/json" };
    const status = await fetch(server.url, { method: "POST", headers, body }).then(
      (response) => response.status,
      // It may have closed the connection before all was sent.
      () => 413,
    );
    expect(status).toBe(413);
    const client = await connect("legacy");
    await expect(client.ping()).resolves.toBeDefined();
  });

  it("does not serve other paths, and what `check` refuses", async () => {
    expect((await fetch(server.url.replace("/mcp", "/"))).status).toBe(404);
    const guarded = await teaServer({
      check: (request) =>
        request.headers.get("authorization") === "Bearer key"
          ? undefined
          : new Response("no", { status: 401 }),
    });
    try {
      expect((await fetch(guarded.url, { method: "POST" })).status).toBe(401);
      const headers = { authorization: "Bearer key" };
      expect((await fetch(guarded.url, { method: "POST", headers })).status).not.toBe(401);
    } finally {
      await guarded.close();
    }
  });
});
