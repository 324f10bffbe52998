import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuns, type Runs, type StoreOptions } from "@gyre/durable";
import { type EngineSpec, openEngine } from "@gyre/durable/testing";
import {
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
} from "../../../support/postgres.ts";
import { startRestate } from "../../../support/restate.ts";
import { findRestate, installEngines } from "./engines.ts";

export const STORES = ["sqlite", "postgres"] as const;
/** Engines have their runs in Postgres. */
export const ENGINES = ["dbos", "restate"] as const;

export type StoreName = (typeof STORES)[number];
export type EngineName = (typeof ENGINES)[number];
export type BackendName = StoreName | EngineName;

/** A store of a command's own, and empty ones beside it. */
export interface Backend {
  readonly name: BackendName;
  /** The address of another empty store. */
  create(): Promise<string>;
  /** What decides who works on the runs of a store, if that is not the store. */
  engine(url: string): EngineSpec | undefined;
  readonly server?: PostgresServer;
  remove(): Promise<void>;
}

export async function openBackend(
  name: BackendName,
  options: PostgresOptions = {},
): Promise<Backend> {
  let count = 0;
  if (name === "sqlite") {
    const folder = await mkdtemp(join(tmpdir(), "gyre-durable-"));
    return {
      name,
      create: async () => `file:${join(folder, `${++count}.db`)}`,
      engine: () => undefined,
      remove: () => rm(folder, { recursive: true }),
    };
  }
  const site = name === "postgres" ? undefined : await startEngine(name);
  const server = await startPostgres(options);
  return {
    name,
    server,
    create: async () => {
      const database = `gyre_${++count}`;
      await server.run(`create database ${database}`);
      return server.url(database);
    },
    engine: (url) => site?.engine(url),
    remove: async () => {
      await server.remove();
      await site?.remove();
    },
  };
}

/** Runs as a program opens them, with the engine of the backend. */
export async function openBackendRuns(
  backend: Backend,
  url: string,
  options: StoreOptions = {},
): Promise<Runs> {
  const spec = backend.engine(url);
  return openRuns(url, { ...options, ...(spec && { engine: await openEngine(spec) }) });
}

async function startEngine(
  name: EngineName,
): Promise<{ engine(url: string): EngineSpec; remove(): Promise<void> }> {
  installEngines();
  if (name === "dbos") {
    return { engine: (url) => ({ name, options: { url } }), remove: async () => {} };
  }
  const server = await startRestate(findRestate());
  const { ingress, admin } = server;
  return {
    engine: (url) => {
      const service = `gyre${new URL(url).pathname.replaceAll(/\W/g, "-")}`;
      return { name, options: { ingress, admin, service, port: 0 } };
    },
    remove: () => server.remove(),
  };
}
