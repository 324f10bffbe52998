import {
  createFilter,
  cutPage,
  type SessionListOptions,
  type SessionPageOptions,
} from "../format/page.ts";
import type { SessionFileSummary, SessionPage } from "../format/types.ts";
import { FolderRows } from "./folder-rows.ts";
import { compareCreated, compareUpdated, type Row, type RowFolder } from "./row.ts";

/** How often a page is cut again because its files have changed meanwhile. */
const MAX_CUTS = 3;

type KeyName = "createdKey" | "updatedKey";

/**
 * The summaries of all session files of a store, in the orders that lists have. A cache: files are
 * all there is, and what is kept beside them can be deleted at any time.
 */
export class SessionIndex {
  readonly #root: string;
  readonly #readFolders: () => Promise<readonly string[]>;
  readonly #now: () => number;
  #looks = 0;
  readonly #folders = new Map<string, FolderRows>();
  /** The rows of one folder, or of all (""), in order, for as long as none of them changes. */
  readonly #sorted = new Map<string, { versions: string; rows: Row[] }>();

  /** `readFolders`: the names of the folders of sessions, as they are now. `now`: the time of the file system. */
  constructor(
    root: string,
    readFolders: () => Promise<readonly string[]>,
    now: () => number = Date.now,
  ) {
    this.#root = root;
    this.#readFolders = readFolders;
    this.#now = now;
  }

  /** The sessions of one folder, by its name here, or of all. */
  async list(
    folder: string | undefined,
    { limit, ...options }: SessionListOptions & { limit?: number },
  ): Promise<SessionFileSummary[]> {
    const folders = await this.#refresh(folder, true);
    const isListed = createFilter(options);
    const found = this.#sort(folder, folders, "updatedKey").filter((row) =>
      isListed(row.summary, row.text),
    );
    return found.slice(0, limit).map(({ summary }) => summary);
  }

  /** A part of them. The files of the part are compared with what is known of them. */
  async listPage(
    folder: string | undefined,
    options: SessionPageOptions,
  ): Promise<SessionPage<SessionFileSummary>> {
    const folders = await this.#refresh(folder, false);
    const keyName: KeyName = options.order === "updated" ? "updatedKey" : "createdKey";
    const isListed = createFilter(options);
    for (let cuts = 1; ; cuts++) {
      const sorted = this.#sort(folder, folders, keyName);
      const { page, ...more } = cutPage(
        sorted,
        options,
        (row) => row[keyName],
        (row) => isListed(row.summary, row.text),
      );
      const before = describeVersions(folders);
      await recheck(page);
      if (cuts < MAX_CUTS && describeVersions(folders) !== before) continue;
      return { sessions: page.map(({ summary }) => summary), ...more };
    }
  }

  async #refresh(name: string | undefined, isWhole: boolean): Promise<FolderRows[]> {
    const names = name === undefined ? await this.#readFolders() : [name];
    const folders = names.map((each) => this.#findFolder(each));
    const turn = this.#looks++ % folders.length;
    await Promise.all(
      folders.map((folder, at) => folder.refresh({ isTurn: at === turn, isWhole })),
    );
    return folders;
  }

  #findFolder(name: string): FolderRows {
    const known = this.#folders.get(name);
    if (known) return known;
    const folder = new FolderRows(this.#root, name, this.#now);
    this.#folders.set(name, folder);
    return folder;
  }

  #sort(name = "", folders: readonly FolderRows[], keyName: KeyName): Row[] {
    const place = `${keyName}/${name}`;
    const versions = describeVersions(folders);
    const known = this.#sorted.get(place);
    if (known?.versions === versions) return known.rows;
    const rows = folders.flatMap((folder) => [...folder.rows()]);
    rows.sort(keyName === "createdKey" ? compareCreated : compareUpdated);
    this.#sorted.set(place, { versions, rows });
    return rows;
  }
}

function describeVersions(folders: readonly FolderRows[]): string {
  return folders.map(({ name, version }) => `${name}:${version}`).join();
}

async function recheck(rows: readonly Row[]): Promise<void> {
  const names = new Map<RowFolder, string[]>();
  for (const { folder, name } of rows) {
    const others = names.get(folder);
    if (others) others.push(name);
    else names.set(folder, [name]);
  }
  await Promise.all([...names].map(([folder, some]) => folder.recheck(some)));
}
