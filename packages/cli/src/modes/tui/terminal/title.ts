import { shownLine } from "@gyre/coding/internal/text/shown-text";

/** What the program does, as the title of the terminal says it. */
export type TitleState = "idle" | "working" | "asking";

const SIGNS: Readonly<Record<TitleState, string>> = { idle: "", working: "● ", asking: "? " };
const BELL = "\x07";
/** A bar without an end, and none. Other terminals take the sequence for a notification. */
const PROGRESS = { on: `\x1b]9;4;3${BELL}`, off: `\x1b]9;4;0${BELL}` };
/** Keeps the title that was there, and brings it back. */
export const KEEP_TITLE = "\x1b[22;2t";
export const RESTORE_TITLE = "\x1b[23;2t";

/** The title of the terminal, and its bar in terminals that have one: each is written when it changes. */
export class Title {
  readonly #write: (sequence: string) => unknown;
  readonly #hasProgress: boolean;
  #shown = "";
  #isBusy = false;

  constructor(
    write: (sequence: string) => unknown,
    env: Readonly<Record<string, string | undefined>>,
  ) {
    this.#write = write;
    this.#hasProgress =
      env["WT_SESSION"] !== undefined ||
      env["ConEmuANSI"] === "ON" ||
      env["TERM_PROGRAM"] === "ghostty";
  }

  show(state: TitleState, folder: string): void {
    const title = `${SIGNS[state]}gyre · ${shownLine(folder)}`;
    if (title !== this.#shown) this.#write(`\x1b]2;${title}${BELL}`);
    this.#shown = title;
    this.#showProgress(state === "working");
  }

  /** Takes the bar away. */
  end(): void {
    this.#showProgress(false);
  }

  #showProgress(isBusy: boolean): void {
    if (!this.#hasProgress || isBusy === this.#isBusy) return;
    this.#isBusy = isBusy;
    this.#write(isBusy ? PROGRESS.on : PROGRESS.off);
  }
}
