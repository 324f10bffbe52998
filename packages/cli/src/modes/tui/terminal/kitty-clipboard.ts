import type { Clock } from "@gyre/ai";
import { chooseType, type ClipboardContent, toContent } from "../../../core/read-clipboard.ts";
import type { Environment } from "../../../core/io.ts";
import { MAX_IMAGE_BYTES } from "@gyre/coding/internal/conversation/prompt-files";

/** How long a terminal may take to say whether it has the protocol. */
const SUPPORT_MS = 1_000;
/** The terminal may ask the user first. */
const ANSWER_MS = 30_000;
const ST = "\x1b\\";
/** Asks for the state of the mode that belongs to the protocol, then for what every terminal answers. */
const ASK_SUPPORT = "\x1b[?5522$p\x1b[c";
/** Names the types on the clipboard in place of their data. */
const LIST = ".";

/** Writes a question to the terminal; `onAnswer` gets what it answers until the returned function is called. */
export type TerminalQuestion = (question: string, onAnswer: (answer: string) => void) => () => void;

export interface TerminalClipboardParts {
  ask: TerminalQuestion;
  env: Environment;
  clock: Pick<Clock, "after">;
}

/**
 * Reads the clipboard by kitty's protocol (OSC 5522), which reaches the user's machine from a remote one. Undefined where
 * the terminal does not have it.
 */
export async function readTerminalClipboard(
  parts: TerminalClipboardParts,
): Promise<ClipboardContent | undefined> {
  const { env } = parts;
  const isKitty = env["TERM"] === "xterm-kitty" || Boolean(env["KITTY_WINDOW_ID"]);
  if (!isKitty && !(await findSupport(parts))) return undefined;
  const listed = await readType(parts, LIST);
  if ("why" in listed) return { type: "nothing", why: listed.why };
  const type = chooseType(listed.bytes.toString("utf8").split(/\s+/));
  if (type === undefined) {
    const isEmpty = listed.bytes.length === 0;
    const why = isEmpty
      ? "The clipboard is empty."
      : "The clipboard has neither a picture nor text.";
    return { type: "nothing", why };
  }
  const got = await readType(parts, type);
  return "why" in got ? { type: "nothing", why: got.why } : toContent(type, got.bytes);
}

function findSupport({ ask, clock }: TerminalClipboardParts): Promise<boolean> {
  return new Promise((settle) => {
    const done = (hasIt: boolean): void => {
      stop();
      cancel();
      settle(hasIt);
    };
    const cancel = clock.after(SUPPORT_MS, () => done(false));
    const stop = ask(ASK_SUPPORT, (answer) => {
      const [, state] = /^\[\?5522;(\d)\$y$/.exec(answer) ?? [];
      if (state !== undefined) done(/[123]/.test(state));
      else if (/^\[\?[\d;]*c$/.test(answer)) done(false);
    });
  });
}

function readType(
  { ask, clock }: TerminalClipboardParts,
  type: string,
): Promise<{ bytes: Buffer } | { why: string }> {
  return new Promise((settle) => {
    const parts: Buffer[] = [];
    let size = 0;
    const done = (outcome: { bytes: Buffer } | { why: string }): void => {
      stop();
      cancel();
      settle(outcome);
    };
    const cancel = clock.after(ANSWER_MS, () =>
      done({ why: "The terminal did not answer what is on the clipboard." }),
    );
    const question = `\x1b]5522;type=read;${Buffer.from(type).toString("base64")}${ST}`;
    const stop = ask(question, (answer) => {
      const [, fields, data = ""] = /^\]5522;([^;]*)(?:;([^]*))?$/.exec(answer) ?? [];
      if (fields === undefined) return;
      const [, status] = /(?:^|:)status=(\w+)/.exec(fields) ?? [];
      if (status === "DATA") {
        const bytes = Buffer.from(data, "base64");
        size += bytes.length;
        // What is too long is counted to its end, so that the rest of it is no answer to the next question.
        if (size <= MAX_IMAGE_BYTES + 1) parts.push(bytes);
        else parts.splice(0, parts.length, Buffer.alloc(MAX_IMAGE_BYTES + 1));
      } else if (status === "DONE") done({ bytes: Buffer.concat(parts) });
      else if (status === "EPERM") {
        done({ why: "The terminal does not allow programs to read the clipboard." });
      } else if (status !== "OK")
        done({ why: `The terminal cannot read the clipboard (${status}).` });
    });
  });
}
