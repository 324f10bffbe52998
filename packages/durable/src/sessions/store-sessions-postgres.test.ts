import { describeSessionStorage } from "@gyre/sessions/testing";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { openUnderTest } from "../worker/harness.ts";

describe("sessions of a store on Postgres", { tags: "postgres" }, () => {
  let server: PostgresServer;
  let count = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());
  describeSessionStorage(it, async () => {
    const schema = `sessions_${++count}`;
    await server.run(`create schema ${schema}`);
    return openUnderTest(server.url(), { schema, pool: 2 });
  });
});
