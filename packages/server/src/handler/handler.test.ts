import { Agent, type AgentOptions, defineTool } from "@gyre/agent";
import { call, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { type Connect, type Identity, ProtocolError } from "@gyre/protocol";
import { openHttp } from "@gyre/protocol/transports/http";
import { MemorySessions } from "@gyre/sessions/memory";
import { describe, expect, it } from "vitest";
import { RemoteAgent } from "../client/index.ts";
import type { SessionRequest } from "../sessions/session-service.ts";
import type { AgentSession } from "./agents.ts";
import { authorizeByToken } from "./authorize.ts";
import { createHandler, type Handler, type HandlerOptions } from "./handler.ts";

const BASE = "http://shop.example/api/gyre";
const ADA = "ada-token-of-16-chars";
const BOB = "bob-token-of-16-chars";
const USERS: Record<string, Identity> = {
  [ADA]: { user: "ada", tenant: "tea", roles: ["admin"] },
  [BOB]: { user: "bob", tenant: "tea" },
};

interface Made {
  handler: Handler;
  /** What the factory was asked for. */
  made: AgentSession[];
  errors: unknown[];
  connect: (token?: string) => Connect;
}

function make(script: readonly ScriptStep[], more: Partial<HandlerOptions> = {}): Made {
  const made: AgentSession[] = [];
  const errors: unknown[] = [];
  const model = scriptedModel(script);
  const options: AgentOptions = { model: model.model, protocol: model, tools: [pour] };
  const handler = createHandler({
    agents: (session) => {
      made.push(session);
      return new Agent({ ...session.stored, ...options });
    },
    authorize: authorizeByToken(USERS),
    onError: (error) => void errors.push(error),
    ...more,
  });
  return { handler, made, errors, connect: (token) => connectTo(handler, token) };
}

const pour = defineTool({
  name: "pour",
  description: "Pours tea.",
  parameters: { type: "object", properties: {} },
  needsApproval: true,
  execute: () => "poured",
});

/** Connects to a handler without a socket between. */
function connectTo(handler: Handler, token: string = ADA, base: string = BASE): Connect {
  const fetch = (url: string | URL | Request, init?: RequestInit): Promise<Response> =>
    handler(new Request(url, init));
  return (signal) => openHttp(base, { token, fetch, signal });
}

function ask(
  handler: Handler,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Response> {
  const init = { method, headers, ...(body !== undefined && { body }) };
  return handler(new Request(`${BASE}${path}`, init));
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

describe("createHandler: the session service as a function of requests", () => {
  it("RemoteAgent works against it, under any path, and the text streams", async () => {
    for (const base of [BASE, "http://shop.example", "http://shop.example/a/api/b"]) {
      const { handler } = make(["Green."]);
      const agent = await RemoteAgent.create({ connect: connectTo(handler, ADA, base) });
      const texts: string[] = [];
      for await (const text of agent.run("Which tea?").textStream) texts.push(text);
      expect(texts.join("")).toBe("Green.");
      await agent.close();
      await handler.close();
    }
  });

  it("sessions are stored: opened again by another handler, listed, renamed, put away, forked, searched", async () => {
    const storage = new MemorySessions();
    const first = make(["Green."], { storage });
    const wire = { connect: first.connect() };
    const agent = await RemoteAgent.create(wire);
    await agent.prompt("Which tea?");
    await RemoteAgent.rename(wire, agent.sessionId, "Tea");
    await first.handler.close();

    const second = make(["Two minutes."], { storage });
    const there = { connect: second.connect() };
    await RemoteAgent.archive(there, agent.sessionId);
    const { sessions } = await RemoteAgent.listPage(there, { limit: 9, query: "tea" });
    expect(sessions).toMatchObject([{ title: "Tea", firstPrompt: "Which tea?", archived: true }]);
    expect(sessions[0]).not.toHaveProperty("cwd");
    const fork = await RemoteAgent.fork(there, agent.sessionId);
    const { matches } = await RemoteAgent.search(there, { text: "green", limit: 9 });
    expect(matches).toHaveLength(2);
    const again = await RemoteAgent.attach(there, fork);
    expect((await again.prompt("For how long?")).text).toBe("Two minutes.");
    expect(again.state.messages).toHaveLength(4);
    await again.close();
    await second.handler.close();
    expect(second.errors).toEqual([]);
  });

  it("settings, resets and replaced messages are what they were when it is opened again", async () => {
    const storage = new MemorySessions();
    const first = make(["Green.", "Black."], { storage });
    const agent = await RemoteAgent.create({ connect: first.connect() });
    await agent.prompt("Which tea?");
    await agent.setThinkingLevel("low");
    await agent.setTools([]);
    await agent.reset();
    await agent.prompt("And now?");
    const { messages } = agent.state;
    await first.handler.close();
    const second = make([], { storage });
    const again = await RemoteAgent.attach({ connect: second.connect() }, agent.sessionId);
    expect(again.state.messages).toEqual(messages);
    expect([again.state.thinkingLevel, again.state.tools]).toEqual(["low", []]);
    await again.close();
    await second.handler.close();
  });

  it("a call that waits for a person survives the handler, and its answer is stored with who gave it", async () => {
    const storage = new MemorySessions();
    const first = make([call("pour", {}, "c1")], { storage });
    const agent = await RemoteAgent.create({ connect: first.connect() });
    expect((await agent.prompt("Tea!")).stop).toBe("suspended");
    await first.handler.close();
    const requests: SessionRequest[] = [];
    const second = make(["Here."], { storage, onRequest: (each) => void requests.push(each) });
    const again = await RemoteAgent.attach({ connect: second.connect(BOB) }, agent.sessionId);
    const { text } = await again.continue({ decisions: { c1: { type: "approve" } } });
    expect(text).toBe("Here.");
    expect(requests).toContainEqual({
      type: "approve",
      session: agent.sessionId,
      identity: { user: "bob", tenant: "tea" },
    });
    // The session is still ada's.
    expect(second.made.map(({ identity }) => identity)).toEqual([{ user: "ada", tenant: "tea" }]);
    await again.close();
    await second.handler.close();
    const session = await storage.open(agent.sessionId, { readOnly: true });
    const notes = await Promise.all(session.findIds("custom").map((id) => session.read(id)));
    expect(notes).toMatchObject([
      { kind: "gyre.session", data: { agent: "default", user: "ada", tenant: "tea" } },
      { kind: "gyre.decision", data: { calls: ["c1"], user: "bob", tenant: "tea" } },
    ]);
  });

  it("several agents: a client chooses by name, the first is the default, and a session keeps its own", async () => {
    const storage = new MemorySessions();
    const chosen: string[] = [];
    const factory = ({ agent, options, stored }: AgentSession): Agent => {
      const script = scriptedModel([]);
      chosen.push(`${agent} ${JSON.stringify(options)}`);
      return new Agent({ ...stored, model: script.model, protocol: script });
    };
    const { handler, connect } = make([], { storage, agents: { tea: factory, coffee: factory } });
    const wire = { connect: connect() };
    await (await RemoteAgent.create(wire)).close();
    const other = await RemoteAgent.create(wire, { agent: "coffee", strong: true });
    await other.closeSession();
    await (await RemoteAgent.attach(wire, other.sessionId)).close();
    expect(chosen).toEqual(["tea {}", 'coffee {"strong":true}', 'coffee {"strong":true}']);
    await expect(RemoteAgent.create(wire, { agent: "juice" })).rejects.toThrow(
      'There is no agent "juice" here: there are tea, coffee.',
    );
    await handler.close();
  });

  it("an agent that would not be stored is not served", async () => {
    const script = scriptedModel([]);
    const agents = (): Agent => new Agent({ model: script.model, protocol: script });
    const { connect, errors, handler } = make([], { agents });
    await expect(RemoteAgent.create({ connect: connect() })).rejects.toThrow("...stored");
    expect(errors).toHaveLength(1);
    await handler.close();
  });

  it("what a factory throws is for the log of the server", async () => {
    const agents = (): never => {
      throw new Error("the key is k-1");
    };
    const { connect, errors, handler } = make([], { agents });
    await expect(RemoteAgent.create({ connect: connect() })).rejects.toThrow(/^(?!.*k-1)/s);
    expect(errors).toEqual([new Error("the key is k-1")]);
    await handler.close();
  });

  it("options that decide who comes in, and what answers, are not left out by mistake", () => {
    expect(() => createHandler({ agents: () => never() } as never)).toThrow(
      "Anybody could come in",
    );
    expect(() => createHandler({ authorize: () => never() })).toThrow("There is no agent");
  });
});

function never(): never {
  throw new Error("not called");
}

describe("authorize", () => {
  it("a Response passes through as it is, with its cookies, and nothing is served", async () => {
    const authorize = (): Response => {
      const headers = new Headers({ "www-authenticate": "Bearer", "x-why": "late" });
      headers.append("set-cookie", "a=1");
      headers.append("set-cookie", "b=2");
      return new Response("Log in first.", { status: 401, headers });
    };
    const { handler, made } = make([], { authorize });
    const response = await ask(handler, "POST", "/api/connect");
    expect([response.status, await response.text()]).toEqual([401, "Log in first."]);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(made).toEqual([]);
    // A client does not try again, although the response is none of ours.
    const agent = RemoteAgent.create({ connect: connectTo(handler) });
    await expect(agent).rejects.toMatchObject({ code: "unauthorized" });
  });

  it("what it throws is a 500 without details, and is reported", async () => {
    const authorize = async (): Promise<never> => {
      throw new Error("the key is k-1");
    };
    const { handler, errors } = make([], { authorize });
    const response = await ask(handler, "POST", "/api/connect");
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("k-1");
    expect(errors).toEqual([new Error("the key is k-1")]);
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["no user", {}],
    ["an empty user", { user: "" }],
    ["true", true],
    ["roles that are none", { user: "ada", roles: "admin" }],
    ["a tenant that is a number", { user: "ada", tenant: 1 }],
  ])("%s lets no client in", async (_, given) => {
    const { handler, errors } = make([], { authorize: () => given as never });
    expect((await ask(handler, "POST", "/api/connect")).status).toBe(500);
    expect(String(errors)).toContain("authorize returned");
  });

  it("who it is reaches the factory and each request", async () => {
    const requests: SessionRequest[] = [];
    const { connect, handler, made } = make(["Green."], {
      onRequest: (request) => void requests.push(request),
    });
    const agent = await RemoteAgent.create({ connect: connect() }, { brief: true });
    await agent.prompt("Which tea?");
    await agent.close();
    expect(made).toMatchObject([{ identity: USERS[ADA], options: { brief: true } }]);
    const session = agent.sessionId;
    expect(requests).toEqual([
      { type: "session_create", identity: USERS[ADA] },
      { type: "session_attach", session, identity: USERS[ADA] },
      { type: "prompt", session, identity: USERS[ADA] },
    ]);
    await handler.close();
  });

  it("onRequest refuses what it throws, before anything is done", async () => {
    const { connect, handler } = make(["Green."], {
      onRequest: ({ type, identity }) => {
        if (type === "session_list" || identity?.user === "ada") return;
        throw new ProtocolError("unauthorized", "Only ada makes sessions.");
      },
    });
    const bob = { connect: connect(BOB) };
    await expect(RemoteAgent.create(bob)).rejects.toMatchObject({ code: "unauthorized" });
    expect(await RemoteAgent.list(bob)).toEqual([]);
    await handler.close();
  });

  it("a connection is only its user's: another user finds none of that name", async () => {
    const { handler } = make([]);
    const opened = await ask(handler, "POST", "/api/connect", bearer(ADA));
    const { connection } = (await opened.json()) as { connection: string };
    const path = `/api/connections/${connection}`;
    for (const [method, end] of [
      ["GET", "/events"],
      ["POST", "/frames"],
    ] as const) {
      expect((await ask(handler, method, path + end, bearer(BOB))).status).toBe(404);
    }
    await ask(handler, "DELETE", path, bearer(BOB));
    expect((await ask(handler, "POST", `${path}/frames`, bearer(ADA))).status).toBe(204);
    await handler.close();
  });

  it("a repeated request is known again for its user alone", async () => {
    const { connect, handler } = make([]);
    const create = async (token: string): Promise<unknown> => {
      const transport = await connect(token)(new AbortController().signal);
      const made = new Promise((resolve) =>
        transport.receive({
          onFrame: ({ type, payload }) => type === "ack" && resolve(payload["session"]),
          onFault: resolve,
          onClose: resolve,
        }),
      );
      void transport.send({ v: 1, type: "hello", id: "m_1", payload: { versions: [1] } });
      void transport.send({ v: 1, type: "session_create", id: "m_2", payload: {} });
      const session = await made;
      await transport.close();
      return session;
    };
    expect(await create(ADA)).toBe(await create(ADA));
    expect(await create(ADA)).not.toBe(await create(BOB));
    await handler.close();
  });

  it("a token is compared whole; none, a wrong one and a short one get 401 in our form", async () => {
    const { handler } = make([]);
    for (const headers of [{}, bearer("wrong"), bearer(ADA.slice(1)), bearer(`${ADA}x`)]) {
      const response = await ask(handler, "POST", "/api/connect", headers);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code: "unauthorized" } });
    }
    expect(() => authorizeByToken({ short: { user: "ada" } })).toThrow("less than 16");
  });
});

describe("who may come in: pages", () => {
  it("a page of another site is refused before authorize is asked, also with cookies", async () => {
    let asked = 0;
    const { handler } = make([], {
      authorize: () => {
        asked++;
        return { user: "ada" };
      },
    });
    const headers = { origin: "https://evil.example", cookie: "session=1" };
    const response = await ask(handler, "POST", "/api/connect", headers);
    expect([response.status, asked]).toEqual([403, 0]);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    const own = await ask(handler, "POST", "/api/connect", { origin: "https://shop.example" });
    expect([own.status, asked]).toEqual([201, 1]);
    await handler.close();
  });

  it("a page that is allowed by its exact origin gets CORS headers, refusals too", async () => {
    const origin = "https://page.example";
    const { handler } = make([], { origins: [origin] });
    const preflight = await ask(handler, "OPTIONS", "/api/connect", { origin });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([
      204,
      origin,
    ]);
    const refused = await ask(handler, "POST", "/api/connect", { origin });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([
      401,
      origin,
    ]);
    const like = { origin: "https://page.example.evil.example" };
    expect((await ask(handler, "OPTIONS", "/api/connect", like)).status).toBe(403);
  });
});

describe("limits", () => {
  it("a body above the limit gets 413, by its header or its bytes", async () => {
    const { handler } = make([], { maxBodyBytes: 100 });
    const opened = await ask(handler, "POST", "/api/connect", bearer(ADA));
    const { connection } = (await opened.json()) as { connection: string };
    const path = `/api/connections/${connection}/frames`;
    const response = await ask(handler, "POST", path, bearer(ADA), "x".repeat(101));
    expect(response.status).toBe(413);
    await handler.close();
  });

  it("one connection too many gets 429, until one leaves", async () => {
    const { handler, connect } = make([], { maxConnections: 1 });
    const transport = await connect()(new AbortController().signal);
    const full = await ask(handler, "POST", "/api/connect", bearer(ADA));
    expect([full.status, full.headers.get("retry-after")]).toEqual([429, "5"]);
    const closed = new Promise<void>((resolve) =>
      transport.receive({ onFrame: () => {}, onFault: () => {}, onClose: () => resolve() }),
    );
    await transport.close();
    await closed;
    expect((await ask(handler, "POST", "/api/connect", bearer(ADA))).status).toBe(201);
    await handler.close();
  });

  it("unknown paths and methods are answered", async () => {
    const { handler } = make([]);
    expect((await ask(handler, "GET", "/api/none", bearer(ADA))).status).toBe(404);
    const wrong = await ask(handler, "PUT", "/api/connect", bearer(ADA));
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("a handler that closes begins nothing, and says goodbye", async () => {
    const { handler, connect } = make([]);
    const agent = await RemoteAgent.create({ connect: connect() });
    await handler.close();
    expect((await ask(handler, "POST", "/api/connect", bearer(ADA))).status).toBe(503);
    await agent.close();
  });
});
