import { shownLine } from "@gyre/coding/internal/text/shown-text";

type Environment = Readonly<Record<string, string | undefined>>;

const BELL = "\x07";
const STRING_END = "\x1b\\";
/** Terminals that take the sequence of urxvt. */
const LIKE_URXVT = /^(?:rxvt|foot|contour)/;

/** What a notification says. */
export interface Notification {
  title: string;
  text: string;
}

/**
 * What has the terminal ring, and show a notification where there is one: by the sequence of kitty (OSC 99) or urxvt
 * (OSC 777) in terminals that are known to have it, else by the one of iTerm2 (OSC 9), which others skip. Nothing in the
 * texts is obeyed.
 */
export function formatNotification(env: Environment, shown?: Notification): string {
  if (!shown) return BELL;
  const title = shownLine(shown.title);
  const text = shownLine(shown.text);
  return passThrough(env, formatFor(env, title, text)) + BELL;
}

function formatFor(env: Environment, title: string, text: string): string {
  const { KITTY_WINDOW_ID, TERM = "", VTE_VERSION } = env;
  if (KITTY_WINDOW_ID !== undefined || TERM.includes("kitty")) {
    const first = `\x1b]99;i=gyre:d=0;${title}${STRING_END}`;
    return `${first}\x1b]99;i=gyre:p=body;${text}${STRING_END}`;
  }
  if (VTE_VERSION !== undefined || LIKE_URXVT.test(TERM)) {
    // A semicolon ends the title.
    return `\x1b]777;notify;${title.replaceAll(";", ",")};${text}${STRING_END}`;
  }
  return `\x1b]9;${title}: ${text}${BELL}`;
}

/** tmux gives the terminal around it what is wrapped so, if it is allowed to. */
function passThrough({ TMUX }: Environment, sequence: string): string {
  if (TMUX === undefined) return sequence;
  return `\x1bPtmux;${sequence.replaceAll("\x1b", "\x1b\x1b")}${STRING_END}`;
}
