import { describe, expect, it } from "vitest";
import { formatNotification } from "./notification.ts";

const NOTE = { title: "gyre · shop", text: "done in 9 s" };
/** Tries to end the sequence and to begin others, in each way that terminals know. */
const ATTACK = "a\x1b]0;pwned\x07b\x1b\\c\x9cd\x9b2Je\x07f\x1bPq\ng\u202eh\r\x00\x18i";
const TERMINALS = [
  {},
  { KITTY_WINDOW_ID: "1" },
  { VTE_VERSION: "7200" },
  { TERM: "rxvt-unicode" },
  { TMUX: "/tmp/tmux" },
];

describe("a notification", () => {
  it("is the sequence that the terminal knows, and its bell", () => {
    expect(formatNotification({}, NOTE)).toBe("\x1b]9;gyre · shop: done in 9 s\x07\x07");
    expect(formatNotification({ TERM: "xterm-kitty" }, NOTE)).toBe(
      "\x1b]99;i=gyre:d=0;gyre · shop\x1b\\\x1b]99;i=gyre:p=body;done in 9 s\x1b\\\x07",
    );
    const likeUrxvt = "\x1b]777;notify;gyre · shop;done in 9 s\x1b\\\x07";
    expect(formatNotification({ VTE_VERSION: "7200" }, NOTE)).toBe(likeUrxvt);
    expect(formatNotification({ TERM: "foot" }, NOTE)).toBe(likeUrxvt);
  });

  it("passes through tmux", () => {
    expect(formatNotification({ TMUX: "/tmp/tmux", VTE_VERSION: "7200" }, NOTE)).toBe(
      "\x1bPtmux;\x1b\x1b]777;notify;gyre · shop;done in 9 s\x1b\x1b\\\x1b\\\x07",
    );
  });

  it("is the bell alone where nothing is to be shown", () => {
    expect(formatNotification({ KITTY_WINDOW_ID: "1" })).toBe("\x07");
  });

  it.each(TERMINALS)("has no control of its texts in it: %j", (env) => {
    const clean = formatNotification(env, { title: "T", text: "X" });
    const attacked = formatNotification(env, { title: ATTACK, text: ATTACK });
    const controls = (sequence: string): string => sequence.replaceAll(/[^\p{Cc}\u202e]/gu, "");
    expect(controls(attacked)).toBe(controls(clean));
  });

  it("does not end its title with a semicolon of the title", () => {
    const sequence = formatNotification({ VTE_VERSION: "1" }, { title: "a;b", text: "c;d" });
    expect(sequence).toBe("\x1b]777;notify;a,b;c;d\x1b\\\x07");
  });
});
