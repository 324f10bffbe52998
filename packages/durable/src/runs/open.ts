import { fileURLToPath } from "node:url";
import { DurableError } from "../contract/errors.ts";
import { Runs } from "./runs.ts";
import type { Store } from "../contract/store.ts";
import type { StoreOptions } from "../contract/types.ts";

/**
 * Opens the runs of a file, "file:./runs.db", or of a database, "postgres://user@host/name". The
 * file is made where there is none; it has to be on a local disk.
 */
export async function openRuns(url: string, options: StoreOptions = {}): Promise<Runs> {
  return new Runs(await openStore(url, options), options);
}

/** Opens what is below `Runs`, for tests and tools of one's own. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const [, scheme] = /^([a-z]+):/.exec(url) ?? [];
  if (scheme === "file") {
    const { SqliteStore } = await import("../sqlite/sqlite-store.ts");
    return SqliteStore.open(parseFileUrl(url), options);
  }
  if (scheme === "postgres" || scheme === "postgresql") {
    assertEncoded(url);
    const { PostgresStore } = await import("../postgres/postgres-store.ts");
    return PostgresStore.open(url, options);
  }
  throw new DurableError(
    "bad_url",
    `Runs cannot be opened from ${url === undefined ? url : JSON.stringify(hidePassword(url))}: give a file, such as "file:./runs.db", or a database, such as "postgres://user@host/name".`,
  );
}

function parseFileUrl(url: string): string {
  const path = url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
  if (path !== "" && !path.endsWith("/")) return path;
  throw new DurableError(
    "bad_url",
    `${JSON.stringify(url)} names no file: write "file:./runs.db".`,
  );
}

/** Throws where a part of the password would be read as the host or the name. */
function assertEncoded(url: string): void {
  if (URL.canParse(url) && !/[@#]/.test(new URL(url).pathname + new URL(url).hash)) return;
  throw new DurableError(
    "bad_url",
    `${JSON.stringify(hidePassword(url))} is no address: encode characters such as "@", "/", "?", "#" and "%" of the password, "/" as "%2F", or set it as PGPASSWORD.`,
  );
}

function hidePassword(url: string): string {
  return url.replace(/^(\w+:\/\/[^:@/]*):.*@/s, "$1:***@");
}
