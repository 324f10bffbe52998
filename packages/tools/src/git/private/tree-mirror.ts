import { chmod, rename } from "node:fs/promises";
import { copyTree, describeTree, removeTree } from "./held-tree.ts";

export interface TreeMirrorOptions {
  real: string;
  own: string;
  /** A name that no command can change, on the file system of the real folder. */
  besideReal: () => string;
  /** The same for the other one. */
  besideOwn: () => string;
  /** Takes out of a copy what the user's git is not to find. */
  clean?: (copy: string) => Promise<void>;
}

/**
 * Keeps a folder that git makes and removes as a whole (a rebase) and the copy that commands have
 * of it the same. What is in it is needed to go on, so that a crash must not leave it in the copy alone.
 */
export class TreeMirror {
  readonly #options: TreeMirrorOptions;
  /** As they were when they were last the same. */
  #real: string | undefined;
  #own: string | undefined;

  constructor(options: TreeMirrorOptions) {
    this.#options = options;
  }

  /** Copies what was changed on one side to the other. Where both were changed, each stays as it is. */
  async sync(): Promise<"same" | "conflict"> {
    const { real, own, besideReal, besideOwn, clean } = this.#options;
    const [theirs, ours] = [await describe(real), await describe(own)];
    const isTheirs = theirs !== this.#real;
    const isOurs = ours !== this.#own;
    if (isTheirs && isOurs && !(theirs === undefined && ours === undefined)) return "conflict";
    if (isOurs && !isTheirs) {
      await replace(own, real, besideReal, ours !== undefined, clean);
      this.#real = await describe(real);
      this.#own = ours;
    } else if (isTheirs && !isOurs) {
      await replace(real, own, besideOwn, theirs !== undefined);
      this.#own = await describe(own);
      this.#real = theirs;
    } else {
      this.#real = theirs;
      this.#own = ours;
    }
    return "same";
  }
}

/** Nothing for a folder that is not there. */
function describe(path: string): Promise<string | undefined> {
  return describeTree(path).catch(ignoreMissing);
}

/** Makes `to` what `from` is. The copy is whole before the old one goes. */
async function replace(
  from: string,
  to: string,
  beside: () => string,
  isThere: boolean,
  clean?: TreeMirrorOptions["clean"],
): Promise<void> {
  const made = beside();
  const old = beside();
  try {
    if (isThere) {
      await copyTree(from, made);
      await clean?.(made);
      await chmod(made, 0o755);
    }
    await rename(to, old).catch(ignoreMissing);
    if (isThere) await rename(made, to);
  } finally {
    for (const path of [made, old]) await removeTree(path).catch(ignoreMissing);
  }
}

function ignoreMissing(error: unknown): undefined {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  if (!isMissing) throw error;
}
