import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError } from "../frames/protocol-error.ts";
import { listenRoutes } from "../testing/http-streams.ts";
import { answerError, findRoute, type Route, httpStatus } from "./route.ts";

function route(method: string, path: Route["path"]): Route {
  return { method, path, handle: () => {} };
}

const routes = [route("GET", "/a"), route("POST", "/a"), route("GET", /\/b\/([^/]+)/)];

describe("HTTP: a route", () => {
  it("is found by its method and its whole path", () => {
    expect(findRoute(routes, "POST", "/a")).toEqual({ route: routes[1], match: [] });
  });

  it("gets what the groups of its pattern found", () => {
    expect(findRoute(routes, "GET", "/b/one")).toEqual({ route: routes[2], match: ["one"] });
  });

  it("is not found by a part of its path", () => {
    expect(findRoute(routes, "GET", "/b/one/two")).toEqual({ route: undefined, allowed: [] });
    expect(findRoute(routes, "GET", "/x/b/one")).toEqual({ route: undefined, allowed: [] });
  });

  it("lists the methods of its path", () => {
    expect(findRoute(routes, "PUT", "/a")).toEqual({ route: undefined, allowed: ["GET", "POST"] });
  });
});

describe("HTTP: an error", () => {
  it("has a status for each error code", () => {
    for (const code of ERROR_CODES) expect(httpStatus(code)).toBeGreaterThanOrEqual(400);
  });

  it("is answered as JSON with its code, its message and its details", async () => {
    const error = new ProtocolError("rate_limited", "Slowly.", { details: { retryAfterMs: 1200 } });
    const { body, headers, status } = await answered(error);
    expect({ status, body }).toEqual({
      status: 429,
      body: { error: { code: "rate_limited", message: "Slowly.", retryAfterMs: 1200 } },
    });
    expect(headers.get("retry-after")).toBe("2");
  });

  it("that is none of ours keeps its words to itself", async () => {
    const { body, status } = await answered(new Error("the key is k-1"));
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain("k-1");
    expect(body).toMatchObject({ error: { code: "internal_error" } });
  });
});

async function answered(
  error: Error,
): Promise<{ status: number; headers: Headers; body: unknown }> {
  const server = await listenRoutes([
    { method: "GET", path: "/", handle: (_, response) => answerError(response, error) },
  ]);
  const response = await fetch(server.url);
  const body: unknown = await response.json();
  await server.close();
  return { status: response.status, headers: response.headers, body };
}
