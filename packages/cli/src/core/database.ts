import { resolve } from "node:path";
import type { Session, SessionStorage } from "@gyre/sessions";
import { EXIT, ExitError, UsageError } from "./exit-codes.ts";

/** A relative path is meant from the folder that the program was started in. */
export function resolveFileUrl(url: string, cwd: string): string {
  const [, path = ""] = /^file:(?!\/\/)(.*[^/])$/.exec(url) ?? [];
  return path === "" ? url : `file:${resolve(cwd, path)}`;
}

/** Why a database could not be opened, in terms of this program. */
export function explainDatabaseError(error: Error & { code: string }): ExitError | UsageError {
  const options = { cause: error };
  if (error.code === "bad_url") return new UsageError(error.message, options);
  return new ExitError(EXIT.failed, error.message, options);
}

/** Sessions in a database, bound to this machine, which has their files. */
export interface DatabaseSessions {
  storage: SessionStorage;
  /** The session, whose end closes the database. */
  own(session: Session): Session;
  close(): Promise<void>;
}

/** Opens the sessions of a database. Throws `UsageError` and `ExitError`. */
export async function openDatabaseSessions(url: string, cwd: string): Promise<DatabaseSessions> {
  const { DurableError, hostPool, openRuns } = await import("@gyre/durable");
  const runs = await openRuns(resolveFileUrl(url, cwd)).catch((error: unknown) => {
    throw error instanceof DurableError ? explainDatabaseError(error) : error;
  });
  return {
    storage: runs.sessions({ pool: hostPool() }),
    own(session) {
      const close = session.close.bind(session);
      return Object.assign(session, {
        async close() {
          await close();
          await runs.close();
        },
      });
    },
    close: () => runs.close(),
  };
}
