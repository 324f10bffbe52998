import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { httpFetch } from "./http-fetch.ts";

async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("lets go of an answer whose encoding it does not know", async () => {
  let left: () => void = () => {};
  const isLeft = new Promise<void>((settle) => (left = settle));
  const url = await serve((response) => {
    response.once("close", left);
    response.writeHead(200, { "content-encoding": "rot13" });
    response.write("Bapr hcba n gvzr");
  });
  const { signal } = new AbortController();
  const init = { method: "POST", headers: {}, body: "", signal, redirect: "manual" } as const;
  await expect(httpFetch(url, init)).rejects.toThrow("unknown encoding, rot13");
  await isLeft;
});
