import { describe, expect, it } from "vitest";
import { guardedFetch, LoginProblem, MAX_LOGIN_BYTES } from "./guarded-fetch.ts";

/** Names of a network without a network. */
const HOSTS: Readonly<Record<string, string[]>> = {
  "mcp.example": ["93.184.215.14"],
  "login.example": ["93.184.215.15"],
  "inside.example": ["10.0.0.7"],
  "mixed.example": ["93.184.215.14", "169.254.169.254"],
  "intranet.example": ["10.1.1.1"],
};

function lookup(host: string): Promise<string[]> {
  const found = HOSTS[host];
  return found ? Promise.resolve(found) : Promise.reject(new Error("ENOTFOUND"));
}

async function reach(server: string, target: string): Promise<"asked" | string> {
  let asked = "refused";
  const fetch = guardedFetch(
    new URL(server),
    () => {
      asked = "asked";
      return Promise.resolve(new Response("{}"));
    },
    lookup,
  );
  await fetch(target).catch((error: unknown) => {
    expect(error).toBeInstanceOf(LoginProblem);
  });
  return asked;
}

describe("a request of a login", () => {
  it.each([
    ["https://mcp.example/mcp", "https://mcp.example/.well-known/x", "asked"],
    ["https://mcp.example/mcp", "https://login.example/token", "asked"],
    ["https://mcp.example/mcp", "https://unknown.example/token", "asked"],
    ["https://mcp.example/mcp", "http://login.example/token", "refused"],
    ["https://mcp.example/mcp", "https://inside.example/token", "refused"],
    ["https://mcp.example/mcp", "https://mixed.example/token", "refused"],
    ["https://mcp.example/mcp", "https://127.0.0.1/token", "refused"],
    ["https://mcp.example/mcp", "https://localhost/token", "refused"],
    ["https://mcp.example/mcp", "https://x.localhost/token", "refused"],
    ["https://mcp.example/mcp", "https://[::1]/token", "refused"],
    ["https://mcp.example/mcp", "https://[::ffff:169.254.169.254]/", "refused"],
    ["https://mcp.example/mcp", "https://2852039166/", "refused"],
    ["https://mcp.example/mcp", "https://user:pass@login.example/", "refused"],
    ["https://mcp.example/mcp", "ftp://login.example/", "refused"],
    ["http://localhost:1/mcp", "http://localhost:2/token", "asked"],
    ["http://127.0.0.1:1/mcp", "http://localhost:2/token", "asked"],
    ["http://[::1]:1/mcp", "http://127.0.0.1:2/token", "asked"],
    ["http://localhost:1/mcp", "https://login.example/token", "asked"],
    ["http://localhost:1/mcp", "http://169.254.169.254/latest", "refused"],
    ["http://localhost:1/mcp", "https://10.0.0.1/token", "refused"],
    ["https://intranet.example/mcp", "https://inside.example/token", "asked"],
    ["https://intranet.example/mcp", "http://inside.example/token", "refused"],
    ["https://intranet.example/mcp", "https://localhost/token", "refused"],
    ["https://intranet.example/mcp", "https://169.254.169.254/", "refused"],
  ])("of %s to %s is %s", async (server, target, outcome) => {
    expect(await reach(server, target)).toBe(outcome);
  });

  it("follows no redirection by itself", async () => {
    const inits: (RequestInit | undefined)[] = [];
    const fetch = guardedFetch(new URL("https://mcp.example"), (_url, init) => {
      inits.push(init);
      return Promise.resolve(new Response(null, { status: 302, headers: { location: "/x" } }));
    });
    expect((await fetch("https://mcp.example/a", { redirect: "follow" })).status).toBe(302);
    expect(inits[0]?.redirect).toBe("manual");
  });

  it("reads no answer beyond all measure", async () => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const fetch = guardedFetch(new URL("https://mcp.example"), () =>
      Promise.resolve(new Response(body)),
    );
    const response = await fetch("https://mcp.example/a");
    await expect(response.text()).rejects.toThrow(LoginProblem);
    expect(sent).toBeLessThan(MAX_LOGIN_BYTES * 2);
  });

  it.each([204, 304])("has an answer with the status %i", async (status) => {
    const fetch = guardedFetch(new URL("https://mcp.example"), () =>
      Promise.resolve(new Response(null, { status })),
    );
    expect((await fetch("https://mcp.example/a")).status).toBe(status);
  });
});
