import { type FileContent, hashFile, isRecord, MAX_STORED_BYTES } from "@gyre/ai";
import { isErrorCode, ProtocolError } from "@gyre/protocol";

/** Where a server takes files: over HTTP, whatever the connection of the agent is. */
export interface UploadServer {
  /** With `http:` or `https:`, such as `https://agents.example`. */
  url: string;
  /** Default: none is sent. */
  token?: string;
  signal?: AbortSignal;
  /** Default: the global one. */
  fetch?: typeof globalThis.fetch;
}

/** A file that is not stored yet. */
export interface NewFile {
  mediaType: string;
  name?: string;
  bytes: Uint8Array;
}

/** Stores the contents of a file for a session, and gives the block that refers to them. */
export async function uploadFile(
  session: string,
  { bytes, ...file }: NewFile,
  { fetch = globalThis.fetch, signal, token, url }: UploadServer,
): Promise<FileContent> {
  const size = bytes.length;
  if (size > MAX_STORED_BYTES) {
    throw new ProtocolError(
      "too_large",
      `The file has ${size} bytes, and a server stores at most ${MAX_STORED_BYTES}. Give it by url or id.`,
    );
  }
  const sha256 = await hashFile(bytes);
  const path = `/api/sessions/${encodeURIComponent(session)}/files/${sha256}`;
  const response = await fetch(`${url.replace(/\/+$/, "")}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/octet-stream",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: new Uint8Array(bytes),
    ...(signal && { signal }),
  });
  if (!response.ok) throw await readError(response);
  await response.body?.cancel();
  return { type: "file", ...file, source: { type: "stored", sha256, size } };
}

/** The error of the server, or what stands for it where something else has answered. */
async function readError(response: Response): Promise<ProtocolError> {
  const body: unknown = await response.json().catch(() => undefined);
  const { code, message } = isRecord(body) && isRecord(body["error"]) ? body["error"] : {};
  return new ProtocolError(
    isErrorCode(code) ? code : "unavailable",
    typeof message === "string" ? message : `The upload was answered with ${response.status}.`,
  );
}
