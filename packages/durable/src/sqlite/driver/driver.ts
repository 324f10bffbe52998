import { accessSync, constants } from "node:fs";
import { dirname } from "node:path";
import { errorMessage, isRecord, toRecord } from "@gyre/ai";
import { DurableError } from "../../contract/errors.ts";
import type { SqlValue } from "../../sql/rows.ts";

/** A prepared statement. */
export interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint };
  all(...values: SqlValue[]): unknown[];
}

/** A connection to a file. All calls are synchronous. */
export interface Driver {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): unknown;
}

type DriverClass = new (path: string) => Driver;

export type DriverName = "node:sqlite" | "libsql";

/** Opens a file with what this Node has, else with the package `libsql`. */
export async function openDriver(path: string, name?: DriverName): Promise<Driver> {
  const own = name === "libsql" ? undefined : findOwn();
  if (own) return new own(path);
  if (name === "node:sqlite") {
    throw new DurableError("no_driver", `Node ${process.version} has no node:sqlite.`);
  }
  return new (await loadLibsql())(path);
}

function findOwn(): DriverClass | undefined {
  const found: unknown = process.getBuiltinModule("node:sqlite");
  return isRecord(found) ? (found["DatabaseSync"] as DriverClass) : undefined;
}

async function loadLibsql(): Promise<DriverClass> {
  try {
    return (await import("libsql")).default;
  } catch (cause) {
    throw new DurableError(
      "no_driver",
      `Node ${process.version} has no node:sqlite, and the package libsql is not there (${errorMessage(cause)}). Run: npm install libsql@0.5.29, or use Node 22.13 or newer.`,
      { cause },
    );
  }
}

const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const CANTOPEN = 14;
const NOTADB = 26;
const PERM = 3;
const FULL = 13;
const NAMES: Readonly<Record<string, number>> = {
  SQLITE_BUSY: BUSY,
  SQLITE_LOCKED: LOCKED,
  SQLITE_READONLY: READONLY,
  SQLITE_CANTOPEN: CANTOPEN,
  SQLITE_NOTADB: NOTADB,
  SQLITE_PERM: PERM,
  SQLITE_FULL: FULL,
};

/** SQLite's number of an error, without its extension; 0 where it has none. */
function readNumber(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  const fields: unknown = error;
  const { errcode, code, rawCode } = toRecord(fields);
  const number = [errcode, rawCode].find((each) => typeof each === "number");
  if (typeof number === "number") return number & 0xff;
  const [, name] = /^(SQLITE_[A-Z]+)/.exec(String(code)) ?? [];
  if (name !== undefined && NAMES[name] !== undefined) return NAMES[name];
  if (error.message.includes("database is locked")) return BUSY;
  // libsql gives the number of an error at opening in its text alone.
  const [, opening] = /local database .*: (\d+)/.exec(error.message) ?? [];
  return Number(opening ?? 0);
}

/** Another connection has the file at this moment. */
export function isBusy(error: unknown): boolean {
  const number = readNumber(error);
  return number === BUSY || number === LOCKED;
}

/** SQLite opens a file that may only be read, and fails at the first write. */
export function assertWritable(path: string): void {
  for (const place of [path, dirname(path)]) {
    try {
      accessSync(place, constants.W_OK);
    } catch (error) {
      const { code } = toRecord(error);
      if (code === "EACCES" || code === "EROFS") throw refuseWrites(path, error);
    }
  }
}

function refuseWrites(path: string, cause: unknown): DurableError {
  return new DurableError(
    "no_access",
    `The file ${path} cannot be written: give this user the right to write to it and to its folder.`,
    { cause },
  );
}

/** An error of SQLite in a sentence that says what to do. */
export function explainError(path: string, error: unknown): unknown {
  if (error instanceof DurableError) return error;
  const options = { cause: error };
  switch (readNumber(error)) {
    case READONLY:
    case PERM:
      return refuseWrites(path, error);
    case CANTOPEN:
      return new DurableError(
        "no_access",
        `The file ${path} cannot be opened: its folder has to exist, and this user needs the right to write to both.`,
        options,
      );
    case NOTADB:
      return new DurableError(
        "not_a_store",
        `The file ${path} is no SQLite database: give the path of another file, or of none, which is then made.`,
        options,
      );
    case FULL:
      return new DurableError("unavailable", `The disk of ${path} is full.`, options);
    default:
      return error;
  }
}
