import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../support/postgres.ts";

export type BackendName = "sqlite" | "postgres";

/** A store of a command's own, and empty ones beside it. */
export interface Backend {
  readonly name: BackendName;
  /** The address of another empty store. */
  create(): Promise<string>;
  readonly server?: PostgresServer;
  remove(): Promise<void>;
}

/** `sync`: commits wait for the disk, as they do in real use. */
export async function openBackend(
  name: BackendName,
  options: { sync?: boolean } = {},
): Promise<Backend> {
  let count = 0;
  if (name === "sqlite") {
    const folder = await mkdtemp(join(tmpdir(), "gyre-durable-"));
    return {
      name,
      create: async () => `file:${join(folder, `${++count}.db`)}`,
      remove: () => rm(folder, { recursive: true }),
    };
  }
  const server = await startPostgres(options);
  return {
    name,
    server,
    create: async () => {
      const database = `gyre_${++count}`;
      await server.run(`create database ${database}`);
      return server.url(database);
    },
    remove: () => server.remove(),
  };
}
