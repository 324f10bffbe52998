import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { type PostgresServer, startPostgres } from "./postgres.ts";

/** A store of durable runs that tests run on. */
export interface TestStore {
  readonly name: "sqlite" | "postgres";
  /** The address of an empty one. */
  create(): Promise<string>;
  /** Of Postgres. */
  readonly server: PostgresServer;
}

/** The same tests on a file and on Postgres; the second where there is one. */
export function describeStores(name: string, suite: (store: TestStore) => void): void {
  describe(`${name}, on a file`, () => {
    const folder = mkdtempSync(join(tmpdir(), "gyre-stores-"));
    let count = 0;
    afterAll(() => rmSync(folder, { recursive: true }));
    suite({
      name: "sqlite",
      create: () => Promise.resolve(`file:${join(folder, `${++count}.db`)}`),
      get server(): PostgresServer {
        throw new Error("A file has no server.");
      },
    });
  });
  describe(`${name}, on Postgres`, { tags: "postgres" }, () => {
    let server: PostgresServer | undefined;
    let count = 0;
    const find = (): PostgresServer => {
      if (!server) throw new Error("Postgres is not started.");
      return server;
    };
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.remove());
    suite({
      name: "postgres",
      async create() {
        const database = `test_${++count}`;
        await find().run(`create database ${database}`);
        return find().url(database);
      },
      get server() {
        return find();
      },
    });
  });
}
