// Conversations as files; a real program has a database.
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChatStore } from "@gyre/server/streams";

const FOLDER = join(process.cwd(), ".chats");

/** The id comes from a page: it must not lead out of the folder. */
function findFile(id: string): string {
  if (!/^[\w-]{1,64}$/.test(id)) throw new Error(`"${id}" is not the id of a conversation.`);
  return join(FOLDER, `${id}.json`);
}

export const store: ChatStore = {
  async load(id) {
    try {
      return JSON.parse(await readFile(findFile(id), "utf8"));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  },
  async save(id, chat) {
    const file = findFile(id);
    await mkdir(FOLDER, { recursive: true });
    // A file that is written halfway is never read.
    await writeFile(`${file}.new`, JSON.stringify(chat));
    await rename(`${file}.new`, file);
  },
};
