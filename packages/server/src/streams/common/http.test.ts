import { expect, it } from "vitest";
import { readJsonBody, RequestError, withCors } from "./http.ts";

const route = async (): Promise<Response> => new Response("tea", { headers: { "x-own": "1" } });

it("lets pages of the listed origins in, and no others", async () => {
  const open = withCors(route, { origins: ["https://shop.example"], credentials: true });
  const ask = (origin: string, method = "POST", more = {}): Promise<Response> =>
    open(new Request("http://page.example", { method, headers: { origin, ...more } }));
  const allowed = await ask("https://shop.example");
  expect(Object.fromEntries(allowed.headers)).toMatchObject({
    "access-control-allow-origin": "https://shop.example",
    "access-control-allow-credentials": "true",
    vary: "origin",
    "x-own": "1",
  });
  expect(await allowed.text()).toBe("tea");
  for (const origin of ["https://shop.example.evil.example", "null", "http://shop.example"]) {
    expect((await ask(origin)).headers.has("access-control-allow-origin")).toBe(false);
  }
  const preflight = { "access-control-request-method": "POST" };
  const asked = await ask("https://shop.example", "OPTIONS", preflight);
  expect(asked.status).toBe(204);
  expect(asked.headers.get("access-control-allow-headers")).toBe("content-type, last-event-id");
  expect(() => withCors(route, { origins: "*", credentials: true })).toThrow("list the `origins`");
});

it("reads no more of a body than it may", async () => {
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled++;
      controller.enqueue(new Uint8Array(1000));
    },
  });
  const init = { method: "POST", body, duplex: "half" } as const;
  const request = new Request("http://page.example", init);
  await expect(readJsonBody(request, 10_000)).rejects.toThrow(RequestError);
  expect(pulled).toBeLessThan(20);
});
