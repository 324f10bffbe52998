import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { createKeyStore } from "../keys/keys.ts";
import { login, loginByDevice } from "./login.ts";
import type { OAuthProvider } from "./provider.ts";
import { createOAuthStore } from "./tokens.ts";

type Form = Record<string, string>;

let folder = "";
let file = "";
let server: Server;
let provider: OAuthProvider;
/** What the server was sent, and what it answers next. */
let forms: Form[];
let answers: { status?: number; body: unknown }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "oauth-"));
  file = join(folder, "keys.json");
  forms = [];
  answers = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => (body += String(bytes)));
    request.on("end", () => {
      forms.push(Object.fromEntries(new URLSearchParams(body)));
      const { status = 200, body: answer } = answers.shift() ?? { status: 500, body: "" };
      response.writeHead(status);
      response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider = {
    id: "acme",
    name: "Acme",
    clientId: "app",
    authorizationUrl: `${address}/authorize`,
    tokenUrl: `${address}/token`,
    deviceUrl: `${address}/device`,
    scopes: ["models", "offline"],
  };
});
afterEach(async () => {
  server.close();
  server.closeAllConnections();
  await rm(folder, { recursive: true });
});

const refused = (error: string) => ({ status: 400, body: { error } });

describe("login", () => {
  it("sends the code back with what only this login knows", async () => {
    answers.push({ body: { access_token: "t1", refresh_token: "r1", expires_in: 3600 } });
    const clock = manualClock();
    let asked = new URL("http://none");
    const tokens = await login(provider, {
      clock,
      open: async (url) => {
        asked = new URL(url);
        const back = new URL(asked.searchParams.get("redirect_uri") ?? "");
        // Pages that know the port, and not the state.
        for (const state of ["", "guess"]) {
          const answer = await fetch(`${back.href}?code=stolen&state=${state}`);
          expect(answer.status).toBe(404);
        }
        back.searchParams.set("code", "c1");
        back.searchParams.set("state", asked.searchParams.get("state") ?? "");
        expect(await (await fetch(back)).text()).toContain("You are logged in at Acme");
      },
    });
    expect(tokens).toEqual({
      accessToken: "t1",
      refreshToken: "r1",
      expiresAt: clock.now() + 3_600_000,
    });
    const [form = {}] = forms;
    expect(form).toMatchObject({ grant_type: "authorization_code", code: "c1", client_id: "app" });
    expect(asked.searchParams.get("scope")).toBe("models offline");
    expect(asked.searchParams.get("code_challenge_method")).toBe("S256");
    expect(asked.searchParams.get("code_challenge")).toBe(
      createHash("sha256")
        .update(form["code_verifier"] ?? "")
        .digest("base64url"),
    );
  });

  it("that a person refuses is an error with the code of the service", async () => {
    const failed = login(provider, {
      open: async (url) => {
        const asked = new URL(url).searchParams;
        const state = asked.get("state");
        await fetch(`${asked.get("redirect_uri")}?error=access_denied&state=${state}`);
      },
    });
    await expect(failed).rejects.toMatchObject({ name: "OAuthError", code: "access_denied" });
    expect(forms).toEqual([]);
  });

  it("ends with the reason of its signal", async () => {
    const control = new AbortController();
    const failed = login(provider, {
      signal: control.signal,
      open: () => control.abort(new Error("enough")),
    });
    await expect(failed).rejects.toThrow("enough");
  });

  it("sends nothing to an address without TLS", async () => {
    const open = vi.fn<(url: string) => void>();
    const insecure = { ...provider, authorizationUrl: "http://acme.example/authorize" };
    await expect(login(insecure, { open })).rejects.toThrow("it is not https");
    expect(open).not.toHaveBeenCalled();
  });
});

describe("loginByDevice", () => {
  const code = { device_code: "d1", user_code: "AB-CD", verification_uri: "https://a.example/go" };

  it("asks again at the pace of the server until the code was entered", async () => {
    const clock = manualClock();
    answers.push(
      { body: { ...code, interval: 2, expires_in: 60 } },
      refused("authorization_pending"),
      refused("slow_down"),
      { body: { access_token: "t1" } },
    );
    const shown = vi.fn<(step: { url: string; code: string }) => void>();
    const tokens = loginByDevice(provider, { clock, show: shown });
    for (const [seconds, count] of [
      [2, 2],
      [2, 3],
      [7, 4],
    ] as const) {
      await vi.waitFor(() => expect(clock.pending).toBe(1));
      await clock.advance(seconds * 1000);
      await vi.waitFor(() => expect(forms).toHaveLength(count));
    }
    expect(await tokens).toEqual({ accessToken: "t1" });
    expect(shown).toHaveBeenCalledWith({ url: "https://a.example/go", code: "AB-CD" });
    expect(forms[1]).toMatchObject({ device_code: "d1", client_id: "app" });
  });

  it.each([
    ["access_denied", 60],
    ["expired_token", 1],
  ])("ends with %s", async (ended, expires_in) => {
    const clock = manualClock();
    answers.push({ body: { ...code, interval: 2, expires_in } }, refused("access_denied"));
    const tokens = loginByDevice(provider, { clock, show: () => {} });
    const failed = tokens.catch((reason: unknown) => reason);
    await vi.waitFor(() => expect(clock.pending).toBe(1));
    await clock.advance(2000);
    expect(await failed).toMatchObject({ code: ended });
  });
});

describe("the store of tokens", () => {
  it("keeps them beside keys, for the owner alone", async () => {
    await createKeyStore({ file }).set("other", "a-key");
    const store = createOAuthStore([provider], { file });
    await store.save("acme", { accessToken: "t1" });
    expect(await store.get({ id: "acme" })).toBe("t1");
    expect(await store.get({ id: "other" })).toBeUndefined();
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({
      other: "a-key",
      acme: { oauth: { accessToken: "t1" } },
    });
    if (process.platform !== "win32") expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect([await store.remove("acme"), await store.remove("acme")]).toEqual([true, false]);
  });

  it("renews a token that is about to end, once for all who ask", async () => {
    const clock = manualClock();
    const store = createOAuthStore([provider], { file, clock });
    const expiresAt = clock.now() + 30_000;
    await store.save("acme", { accessToken: "t1", refreshToken: "r1", expiresAt });
    answers.push({ body: { access_token: "t2", expires_in: 3600 } });
    const both = await Promise.all([store.get({ id: "acme" }), store.get({ id: "acme" })]);
    expect(both).toEqual(["t2", "t2"]);
    expect(forms).toEqual([{ client_id: "app", grant_type: "refresh_token", refresh_token: "r1" }]);
    expect(await store.get({ id: "acme" })).toBe("t2");
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({
      acme: { oauth: { accessToken: "t2", refreshToken: "r1" } },
    });
  });

  it("uses what another process has renewed meanwhile", async () => {
    const store = createOAuthStore([provider], { file });
    await store.save("acme", { accessToken: "t1", refreshToken: "r1", expiresAt: 1 });
    answers.push(refused("invalid_grant"));
    server.prependOnceListener("request", () => {
      const oauth = { accessToken: "t2", refreshToken: "r2", expiresAt: Date.now() + 3_600_000 };
      writeFileSync(file, JSON.stringify({ acme: { oauth } }));
    });
    expect(await store.get({ id: "acme" })).toBe("t2");
  });

  it.each([
    [{ refreshToken: "r1" }, "is not valid any more. Log in at Acme again."],
    [{}, "has ended. Log in at Acme again."],
  ])("says what to do where it cannot renew: %j", async (tokens, text) => {
    const store = createOAuthStore([provider], { file });
    await store.save("acme", { accessToken: "secret-1", expiresAt: 1, ...tokens });
    answers.push(refused("invalid_grant"));
    const error: unknown = await store.get({ id: "acme" }).catch((reason: unknown) => reason);
    expect(String(error)).toContain(text);
    expect(String(error)).not.toContain("secret");
  });

  it.each(["<html>", "[]", '{"access_token":""}', "x".repeat(300_000)])(
    "refuses an answer without a token: %.20s",
    async (body) => {
      const store = createOAuthStore([provider], { file });
      await store.save("acme", { accessToken: "t1", refreshToken: "r1", expiresAt: 1 });
      answers.push({ body });
      await expect(store.get({ id: "acme" })).rejects.toMatchObject({ code: "invalid_response" });
    },
  );
});
