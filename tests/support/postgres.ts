import { spawn, spawnSync } from "node:child_process";
import { chownSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { findPostgres, installPostgres } from "./postgres-programs.ts";

export { findPostgres } from "./postgres-programs.ts";

const START_MS = 60_000;

/** A Postgres of a test's own. */
export interface PostgresServer {
  readonly port: number;
  /** For the database of this name, which is there: "postgres". */
  url(database?: string): string;
  /** Runs statements in the database of this address, and resolves to the rows of a single one. */
  run(sql: string, url?: string): Promise<unknown[]>;
  /** `fast` ends transactions, `immediate` is a crash. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export interface PostgresOptions {
  /** Commits wait for the disk, as they do in real use; otherwise they outlive a crash of the server alone. */
  readonly sync?: boolean;
  /** It counts statements, for `pg_stat_statements`. */
  readonly counts?: boolean;
}

/**
 * Starts a server in a folder of its own. Where there is no Postgres, one is
 * installed.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const bin = findPostgres() ?? installPostgres();
  const folder = await mkdtemp(join(tmpdir(), "gyre-postgres-"));
  const user = findUser();
  if (user) chownSync(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const port = await findPort();
  const run = async (program: string, ...args: string[]): Promise<void> => {
    const child = spawn(join(bin, program), args, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      ...user,
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const code = await new Promise((resolve) => child.on("exit", resolve));
    if (code !== 0) throw new Error(`${program} ended with ${String(code)}: ${output}`);
  };
  await run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync");
  const flags = [`-p ${port}`, "-h 127.0.0.1", `-k ${folder}`, "-c max_connections=200"];
  if (!options.sync) flags.push("-c fsync=off");
  if (options.counts) flags.push("-c shared_preload_libraries=pg_stat_statements");
  const server: PostgresServer = {
    port,
    url: (database = "postgres") => `postgres://postgres@127.0.0.1:${port}/${database}`,
    run: (sql, url = server.url()) => runSql(url, sql),
    start: () =>
      run(
        ...(["pg_ctl", "-D", data, "-w", "-t", String(START_MS / 1000)] as const),
        ...["-l", join(folder, "log"), "-o", flags.join(" "), "start"],
      ),
    stop: (mode = "fast") => run("pg_ctl", "-D", data, "-w", "-m", mode, "stop"),
    remove: async () => {
      await server.stop("immediate").catch(() => {});
      await rm(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function runSql(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Postgres does not run as root, nor as a user without a name. */
function findUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ["postgres", "daemon"]) {
    const [uid, gid] = ["-u", "-g"].map((flag) =>
      Number(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout),
    );
    if (uid && gid) return { uid, gid };
  }
  throw new Error(
    'Postgres does not run as root, and there is neither a user "postgres" nor "daemon".',
  );
}

function findPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}
