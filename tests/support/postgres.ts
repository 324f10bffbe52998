import { spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where Debian puts the versions of Postgres. */
const DEBIAN = "/usr/lib/postgresql";
const START_MS = 60_000;

/** A Postgres of a test's own. */
export interface PostgresServer {
  readonly port: number;
  /** For the database of this name, which is there: "postgres". */
  url(database?: string): string;
  /** Runs statements by Postgres' own client, in the database of this address. */
  run(sql: string, url?: string): Promise<void>;
  /** `fast` ends transactions, `immediate` is a crash. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** The folder of Postgres' programs; undefined where it is not installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const newest = versions.sort((a, b) => Number(b) - Number(a));
  return newest
    .map((version) => join(DEBIAN, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
}

/**
 * Starts a server in a folder of its own. `sync`: commits wait for the disk, as they do in real use;
 * without it they outlive a crash of the server, not of the machine.
 */
export async function startPostgres(options: { sync?: boolean } = {}): Promise<PostgresServer> {
  const bin = findPostgres();
  if (bin === undefined) throw new Error("Postgres is not installed.");
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
  const server: PostgresServer = {
    port,
    url: (database = "postgres") => `postgres://postgres@127.0.0.1:${port}/${database}`,
    run: (sql, url = server.url()) => run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, url),
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

/** Postgres does not run as root. */
function findUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = ["-u", "-g"].map((flag) =>
    Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout),
  );
  if (!uid || !gid)
    throw new Error('Postgres does not run as root, and there is no user "postgres".');
  return { uid, gid };
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
