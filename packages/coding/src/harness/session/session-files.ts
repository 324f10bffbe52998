import type { Middleware } from "@gyre/agent";
import { type FileStore, storeContent, type UserContent, withStoredFiles } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { Models } from "../../models/models.ts";

/**
 * The contents of large files of a harness: in the store of the session that it writes to now. Where there is
 * none, they stay in the messages.
 */
export class SessionFiles implements FileStore {
  readonly #log: { readonly session: Session | undefined };
  /** Has the agent keep references to the files that its tools give. */
  readonly middleware: Middleware = {
    // What a sub-agent reads is no part of the session.
    tool: async (call, next) => {
      const result = await next();
      if (call.parentId !== undefined) return result;
      const content = await this.store(result.content);
      return content === result.content ? result : { ...result, content: [...content] };
    },
  };

  constructor(log: { readonly session: Session | undefined }) {
    this.#log = log;
  }

  /** Models whose requests have the contents. */
  addTo(models: Models): Models {
    return {
      client: withStoredFiles(models.client, this),
      fallbacks: models.fallbacks,
      current: () => models.current(),
      find: (name) => models.find(name),
      list: () => models.list(),
    };
  }

  /** Content that refers to what is large. */
  async store(content: readonly UserContent[]): Promise<readonly UserContent[]> {
    const files = this.#log.session?.files;
    return files ? storeContent(content, files) : content;
  }

  async write(sha256: string, bytes: Uint8Array): Promise<void> {
    await this.#log.session?.files?.write(sha256, bytes);
  }

  async read(sha256: string): Promise<Uint8Array | undefined> {
    return this.#log.session?.files?.read(sha256);
  }
}
