import { type EntryRow, writeSession } from "@gyre/sessions";
import type { Store } from "../contract/store.ts";
import type { ExportOptions } from "../contract/types.ts";
import { READ_AT_ONCE, readRows } from "./read-log.ts";

/** Writes the log of a session to a new session file. Resolves to the number of entries. */
export async function exportSession(
  store: Store,
  session: string,
  path: string,
  { cwd = process.cwd(), createdAt, onProgress }: ExportOptions & { createdAt: number },
): Promise<number> {
  let count = 0;
  const rows = async function* (): AsyncGenerator<EntryRow, void, void> {
    for await (const { token: _token, ...row } of readRows(store, session)) {
      yield row;
      count++;
      if (count % READ_AT_ONCE === 0) onProgress?.(count);
    }
  };
  await writeSession(path, { id: session, cwd, createdAt }, rows());
  return count;
}
