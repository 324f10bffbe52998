import { statfsSync, statSync } from "node:fs";
import type { StoreCheck } from "../contract/types.ts";
import type { Connection } from "./driver/connection.ts";

/** Numbers by which Linux names file systems that are on other machines. */
const NETWORK_TYPES: Readonly<Record<number, string>> = {
  0x6969: "NFS",
  0x517b: "SMB",
  0xfe534d42: "SMB",
  0xff534d42: "SMB",
  0x01021997: "9p",
};

/** Looks at a file: its version, its content, and the disk that it is on. */
export async function checkSqlite(connection: Connection): Promise<StoreCheck[]> {
  return connection.read(() => [
    checkVersion(connection),
    checkContent(connection),
    checkDisk(connection.path),
  ]);
}

function checkVersion(connection: Connection): StoreCheck {
  const row = connection.first<{ version: string }>("select sqlite_version() as version");
  const schema = connection.first<{ user_version: number }>("pragma user_version");
  const kilobytes = Math.ceil(statSync(connection.path).size / 1_000);
  const message = `SQLite ${row?.version ?? "?"}, ${connection.path} (${kilobytes} kB), tables of version ${schema?.user_version ?? "?"}`;
  return { name: "store", status: "ok", message };
}

function checkContent(connection: Connection): StoreCheck {
  const row = connection.first<{ quick_check: string }>("pragma quick_check(1)");
  return row?.quick_check === "ok"
    ? { name: "content", status: "ok", message: "sound" }
    : {
        name: "content",
        status: "problem",
        message: `The file is damaged (${row?.quick_check ?? "no answer"}): stop the workers, and go back to a copy or use SQLite's own ".recover".`,
      };
}

function checkDisk(path: string): StoreCheck {
  const network = NETWORK_TYPES[statfsSync(path).type];
  return network === undefined
    ? { name: "disk", status: "ok", message: "of this machine" }
    : {
        name: "disk",
        status: "problem",
        message: `The file is on a network file system (${network}), where locks do not hold: move it to a disk of this machine, or use Postgres.`,
      };
}
