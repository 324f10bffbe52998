import { errorMessage, readStoredFile, StoredFileError } from "@gyre/ai";
import type { Session } from "../format/types.ts";
import { listStoredFiles } from "./stored-files.ts";

/** Contents that an entry refers to and that are not there as they were. */
export interface FileProblem {
  kind: "missing_file" | "damaged_file";
  sha256: string;
  /** The first entry that refers to them. */
  entry: number;
  /** For people. */
  message: string;
}

/** Reads every entry and all contents that it refers to, and lists what is wrong with these. */
export async function findFileProblems(session: Session): Promise<FileProblem[]> {
  const problems: FileProblem[] = [];
  const seen = new Set<string>();
  const { files } = session;
  if (!files) return problems;
  for (const id of session.findIds("message", "result", "queue", "decision")) {
    // Damage of the entry itself is reported when the session is opened.
    const entry = await session.read(id).catch(() => undefined);
    for (const source of entry ? listStoredFiles(JSON.stringify(entry)) : []) {
      const { sha256 } = source;
      if (seen.has(sha256)) continue;
      seen.add(sha256);
      try {
        await readStoredFile(source, files);
      } catch (error) {
        if (!(error instanceof StoredFileError) || error.code === "too_large") throw error;
        problems.push({ kind: error.code, sha256, entry: id, message: errorMessage(error) });
      }
    }
  }
  return problems;
}
