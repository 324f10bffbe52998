import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "@gyre/ai";
import { plainText } from "@gyre/coding/internal/text/plain-text";
import { readClipboard } from "../../../core/read-clipboard.ts";
import type { Environment } from "../../../core/io.ts";
import type { Editor } from "../editor/editor.ts";
import { readTerminalClipboard, type TerminalQuestion } from "../terminal/kitty-clipboard.ts";

const OWNER_ONLY = 0o600;
const BYTES_PER_KB = 1024;

export interface ClipboardPasterOptions {
  env: Environment;
  clock: Pick<Clock, "after">;
  editor: Pick<Editor, "attach" | "take">;
  ask: TerminalQuestion;
}

/**
 * Puts what is on the clipboard into the editor. A picture becomes a file for the user alone, which is there until the
 * program ends, and a sign in the prompt that stands for its path: a prompt that names a picture sends it.
 */
export class ClipboardPaster {
  readonly #options: ClipboardPasterOptions;
  #folder: Promise<string> | undefined;
  #count = 0;
  #isReading = false;

  constructor(options: ClipboardPasterOptions) {
    this.#options = options;
  }

  /** Returns why nothing was pasted, as a sentence. */
  async paste(): Promise<string | undefined> {
    // The key repeats faster than programs answer.
    if (this.#isReading) return undefined;
    this.#isReading = true;
    try {
      return await this.#paste();
    } finally {
      this.#isReading = false;
    }
  }

  /** Removes the pictures. */
  async close(): Promise<void> {
    const folder = await this.#folder;
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }

  async #paste(): Promise<string | undefined> {
    const { ask, clock, editor, env } = this.#options;
    const content = await readClipboard({
      env,
      platform: process.platform,
      askTerminal: () => readTerminalClipboard({ ask, clock, env }),
    });
    if (content.type === "nothing") return content.why;
    if (content.type === "text") {
      editor.take({ type: "paste", text: plainText(content.text) });
      return undefined;
    }
    const { bytes, mimeType } = content;
    const kind = mimeType.replace("image/", "");
    this.#count += 1;
    this.#folder ??= mkdtemp(join(tmpdir(), "gyre-pictures-"));
    const path = join(await this.#folder, `picture-${this.#count}.${kind}`);
    await writeFile(path, bytes, { mode: OWNER_ONLY });
    const size = `${Math.max(1, Math.round(bytes.length / BYTES_PER_KB))} KB`;
    // The name of the folder may have spaces.
    editor.attach(`"${path}"`, `picture #${this.#count}, ${kind.toUpperCase()}, ${size}`);
    return undefined;
  }
}
