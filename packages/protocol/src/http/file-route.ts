import { MAX_STORED_BYTES } from "@gyre/ai";
import type { Identity } from "../server/identity.ts";
import { collectBody } from "./exchange.ts";
import type { Route } from "./route.ts";

const OK = 200;
const NO_CONTENT = 204;
const PATH = /\/api\/sessions\/([^/]+)\/files\/([0-9a-f]{64})/;

/** Reads the files of sessions; `SessionService` of `@gyre/server` is one. */
export interface FileSource {
  /** The contents of a file, by the SHA-256 of its bytes. Throws `ProtocolError` where they are not there. */
  readFile(session: string, sha256: string, identity?: Identity): Promise<Uint8Array>;
  /**
   * Stores the contents of a file of a session, for messages that refer to them. Throws `ProtocolError` where they
   * have another hash, or there is no store. Absent: there is no route for it.
   */
  writeFile?(
    session: string,
    sha256: string,
    bytes: Uint8Array,
    identity?: Identity,
  ): Promise<void>;
}

/**
 * `GET /api/sessions/:id/files/:sha256`: the contents of a file of a session. What has a hash never changes, so
 * clients may keep it. `POST` to the same address stores them, where the source can: what is too large for a frame gets
 * to a session in this way before a message refers to it.
 */
export function createFileRoutes(source: FileSource): Route[] {
  return [
    {
      method: "GET",
      path: PATH,
      async handle(_, reply, [id = "", sha256 = ""], identity) {
        const bytes = await source.readFile(decodeId(id), sha256, identity);
        reply.begin(OK, {
          // A browser that gets it by itself must not run what a model or a tool has made.
          "content-type": "application/octet-stream",
          "content-disposition": "attachment",
          "x-content-type-options": "nosniff",
          "content-length": String(bytes.length),
          "cache-control": "private, max-age=31536000, immutable",
        });
        reply.end(bytes);
      },
    },
    ...(source.writeFile ? [createUpload(source.writeFile.bind(source))] : []),
  ];
}

function createUpload(write: NonNullable<FileSource["writeFile"]>): Route {
  return {
    method: "POST",
    path: PATH,
    async handle(request, reply, [id = "", sha256 = ""], identity) {
      await write(decodeId(id), sha256, await collectBody(request, MAX_STORED_BYTES), identity);
      reply.begin(NO_CONTENT);
      reply.end();
    },
  };
}

function decodeId(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    // No id of a session: it is not found by it.
    return id;
  }
}
