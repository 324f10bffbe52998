import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { dbosEngine } from "../dbos/index.ts";
import { explainDbos, loadDbos } from "../dbos/executor.ts";
import { restateEngine } from "../restate/index.ts";
import { loadRestate } from "../restate/endpoint.ts";

const missing = (): never => {
  throw new Error("Cannot find package");
};
const wake = { priority: 0, tenant: "", pool: "" };

describe("an engine whose package is not installed", () => {
  it("says which one to install", async () => {
    await expect(loadDbos(missing)).rejects.toMatchObject({
      code: "no_driver",
      message:
        "The engine DBOS needs the package @dbos-inc/dbos-sdk: run `npm install @dbos-inc/dbos-sdk`.",
    });
    await expect(loadRestate("24.0.0", missing)).rejects.toMatchObject({
      code: "no_driver",
      message:
        "The engine Restate needs the package @restatedev/restate-sdk: run `npm install @restatedev/restate-sdk`.",
    });
  });

  it("says that this Node is too old for Restate", async () => {
    await expect(loadRestate("20.19.0", missing)).rejects.toMatchObject({
      code: "no_driver",
      message:
        "The engine Restate needs Node 22 or newer, and this is 20.19.0: run the worker with a newer Node, or use another engine.",
    });
  });
});

describe("an engine that cannot be reached", () => {
  it("says where, and what to do", async () => {
    const port = await findClosedPort();
    const place = `http://127.0.0.1:${port}`;
    await expect(restateEngine({ ingress: place }).wake("s", wake)).rejects.toMatchObject({
      code: "unavailable",
      message: `Restate cannot be reached at ${place} (connect ECONNREFUSED 127.0.0.1:${port}): start its server, or give \`ingress\` to restateEngine().`,
    });
    const url = `postgres://user:secret@127.0.0.1:${port}/runs`;
    const { message } = explainDbos(url, new Error(`connect ECONNREFUSED 127.0.0.1:${port}`));
    expect(message).toBe(
      `DBOS cannot use the database 127.0.0.1:${port}/runs: connect ECONNREFUSED 127.0.0.1:${port}. Start that server, or give another \`url\` to dbosEngine().`,
    );
  });
});

describe("an engine with wrong options", () => {
  it.each([
    [
      () => dbosEngine({ url: "file:./runs.db" }),
      /^DBOS needs a Postgres: give `url` as postgres:/,
    ],
    [() => dbosEngine({ url: "postgres://h/d", queue: "a b" }), /^The queue "a b" has other/],
    [() => restateEngine({ service: "1" }), /^The service "1" has other characters/],
    [() => restateEngine({ ingress: "localhost" }), /^`ingress` of restateEngine\(\) is not the/],
  ])("is refused: %s", (make, message) => {
    expect(make).toThrow(message);
  });
});

function findClosedPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address ? resolve(address.port) : reject(new Error("none")),
      );
    });
  });
}
