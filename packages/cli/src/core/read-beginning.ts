import { open } from "node:fs/promises";

/** At most so many bytes of a file, from its beginning. Rejects with the system's error. */
export async function readBeginning(path: string, bytes: number): Promise<string> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
