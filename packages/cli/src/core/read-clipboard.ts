import { spawn } from "node:child_process";
import type { Environment } from "@gyre/coding/internal/core/environment";
import { MAX_IMAGE_BYTES } from "@gyre/coding/internal/conversation/prompt-files";

/** A longer text is not pasted. */
const MAX_TEXT_BYTES = 1024 * 1024;
/** The list of types is short. */
const MAX_LIST_BYTES = 64 * 1024;
/** A program that has not answered by then is killed. PowerShell takes seconds to start. */
const MAX_WAIT_MS = 15_000;

/** Pictures that services take, the one without losses first. */
export const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"] as const;
/** The names of plain text on a clipboard, the clearest first. */
export const TEXT_TYPES = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING"];

export type ClipboardContent =
  | { type: "picture"; mimeType: string; bytes: Buffer }
  | { type: "text"; text: string }
  /** Nothing that can be pasted: a sentence says why. */
  | { type: "nothing"; why: string };

/** Asks the terminal for the clipboard; undefined where it does not have kitty's clipboard protocol. */
export type AskTerminal = () => Promise<ClipboardContent | undefined>;

export interface ReadClipboardParts {
  env: Environment;
  platform: NodeJS.Platform;
  askTerminal?: AskTerminal;
}

/** A way to the clipboard; undefined: it is not there, and the next one is tried. */
type Reader = (run: Run) => Promise<ClipboardContent | undefined>;

interface Output {
  bytes: Buffer;
  isGood: boolean;
  isTooLong: boolean;
}
/** Runs a program; undefined where it is not installed. */
type Run = (
  command: string,
  args: readonly string[],
  maxBytes: number,
) => Promise<Output | undefined>;

/**
 * Reads the clipboard of the machine that the user sits at: a picture, else text. A program of the system is asked
 * first, and the terminal where there is none. In a session over SSH programs would read the other machine, so there the
 * terminal comes first.
 */
export async function readClipboard(parts: ReadClipboardParts): Promise<ClipboardContent> {
  const { askTerminal, env, platform } = parts;
  const run = programRunner(env);
  const programs = listReaders(env, platform);
  const terminal: Reader[] = askTerminal && !env["TMUX"] ? [askTerminal] : [];
  const isRemote = Boolean(env["SSH_CONNECTION"] || env["SSH_TTY"]);
  const readers = isRemote ? [...terminal, ...programs] : [...programs, ...terminal];
  for (const read of readers) {
    const content = await read(run);
    if (content) return content;
  }
  return nothing(
    isRemote
      ? "This terminal does not let programs read the clipboard over SSH (OSC 5522)."
      : "Nothing reads the clipboard: install wl-clipboard (Wayland) or xclip (X11).",
  );
}

function listReaders(env: Environment, platform: NodeJS.Platform): Reader[] {
  if (platform === "darwin") return [readMac];
  if (platform === "win32") return [readWindows];
  return [
    ...(env["WAYLAND_DISPLAY"] ? [readWayland] : []),
    ...(env["DISPLAY"] ? [readX11] : []),
    ...(env["WSL_DISTRO_NAME"] ? [readWindows] : []),
  ];
}

const readWayland: Reader = (run) =>
  readByType(run, "wl-paste", {
    list: ["--list-types"],
    get: (type) => ["--no-newline", "--type", type],
  });

const readX11: Reader = (run) =>
  readByType(run, "xclip", {
    list: ["-selection", "clipboard", "-t", "TARGETS", "-o"],
    get: (type) => ["-selection", "clipboard", "-t", type, "-o"],
  });

async function readByType(
  run: Run,
  command: string,
  args: { list: readonly string[]; get: (type: string) => readonly string[] },
): Promise<ClipboardContent | undefined> {
  const listed = await run(command, args.list, MAX_LIST_BYTES);
  if (!listed) return undefined;
  // Both programs fail where nothing was copied.
  if (!listed.isGood) return nothing("The clipboard is empty.");
  const type = chooseType(listed.bytes.toString("utf8").split(/\s*\n/));
  if (type === undefined) return nothing("The clipboard has neither a picture nor text.");
  const isPicture = type.startsWith("image/");
  const got = await run(command, args.get(type), isPicture ? MAX_IMAGE_BYTES : MAX_TEXT_BYTES);
  if (!got?.isGood) return got?.isTooLong ? tooLong(isPicture) : nothing(`${command} has failed.`);
  return toContent(type, got.bytes);
}

/** The type that is pasted: a picture, else text. */
export function chooseType(types: readonly string[]): string | undefined {
  return [...PICTURE_TYPES, ...TEXT_TYPES].find((type) => types.includes(type));
}

/** pngpaste is quick, but has to be installed; osascript writes the bytes in hex. */
const readMac: Reader = async (run) => {
  const png = await run("pngpaste", ["-"], MAX_IMAGE_BYTES);
  if (png?.isTooLong) return tooLong(true);
  if (png?.isGood && png.bytes.length > 0) return toContent("image/png", png.bytes);
  if (!png) {
    const script = ["-e", "get the clipboard as «class PNGf»"];
    const hex = await run("osascript", script, 2 * MAX_IMAGE_BYTES + MAX_LIST_BYTES);
    if (hex?.isTooLong) return tooLong(true);
    const [, digits] = /«data PNGf([0-9A-F]+)»/.exec(hex?.bytes.toString("utf8") ?? "") ?? [];
    if (digits !== undefined) return toContent("image/png", Buffer.from(digits, "hex"));
  }
  const text = await run("pbpaste", [], MAX_TEXT_BYTES);
  if (!text) return undefined;
  return text.isTooLong ? tooLong(false) : toContent("text/plain", text.bytes);
};

/** Prints `picture:` or `text:` and base64: what PowerShell prints otherwise depends on its code page. */
const WINDOWS_SCRIPT = [
  "Add-Type -AssemblyName System.Windows.Forms,System.Drawing",
  "$i=[Windows.Forms.Clipboard]::GetImage()",
  "if($i){$m=New-Object IO.MemoryStream;$i.Save($m,[Drawing.Imaging.ImageFormat]::Png);$k='picture';$b=$m.ToArray()}",
  "else{$k='text';$b=[Text.Encoding]::UTF8.GetBytes([Windows.Forms.Clipboard]::GetText())}",
  "[Console]::Out.Write($k+':'+[Convert]::ToBase64String($b))",
].join(";");

const readWindows: Reader = async (run) => {
  const args = ["-NoProfile", "-NonInteractive", "-Sta", "-Command", WINDOWS_SCRIPT];
  const output = await run("powershell.exe", args, 2 * MAX_IMAGE_BYTES);
  if (!output) return undefined;
  if (output.isTooLong) return tooLong(true);
  const [, kind, data = ""] =
    /^(picture|text):([A-Za-z0-9+/=]*)\s*$/.exec(output.bytes.toString("latin1")) ?? [];
  if (!output.isGood || kind === undefined) return nothing("powershell.exe has failed.");
  const bytes = Buffer.from(data, "base64");
  return toContent(kind === "picture" ? "image/png" : "text/plain", bytes);
};

/** The content of bytes that came as a type, within the limits of services. */
export function toContent(type: string, bytes: Buffer): ClipboardContent {
  const isPicture = type.startsWith("image/");
  if (bytes.length > (isPicture ? MAX_IMAGE_BYTES : MAX_TEXT_BYTES)) return tooLong(isPicture);
  if (bytes.length === 0) return nothing("The clipboard is empty.");
  if (!isPicture) return { type: "text", text: bytes.toString("utf8") };
  const mimeType = findPictureType(bytes);
  if (mimeType === undefined) return nothing("The picture on the clipboard is damaged.");
  return { type: "picture", mimeType, bytes };
}

/** By the first bytes: services refuse a picture that is not what its type says. */
function findPictureType(bytes: Buffer): string | undefined {
  const head = bytes.toString("latin1", 0, 12);
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("GIF8")) return "image/gif";
  return head.startsWith("RIFF") && head.startsWith("WEBP", 8) ? "image/webp" : undefined;
}

function tooLong(isPicture: boolean): ClipboardContent {
  return nothing(
    isPicture
      ? "The picture on the clipboard is larger than 5 MB, the most that services take."
      : "The text on the clipboard is larger than 1 MB. Put it into a file, and name that with @.",
  );
}

function nothing(why: string): ClipboardContent {
  return { type: "nothing", why };
}

function programRunner(env: Environment): Run {
  return (command, args, maxBytes) =>
    new Promise((settle) => {
      const child = spawn(command, args, {
        env,
        stdio: ["ignore", "pipe", "ignore"],
        timeout: MAX_WAIT_MS,
      });
      const parts: Buffer[] = [];
      let size = 0;
      child.stdout.on("data", (part: Buffer) => {
        size += part.length;
        if (size > maxBytes) child.kill();
        else parts.push(part);
      });
      child.once("error", () => settle(undefined));
      child.once("close", (code) => {
        const isTooLong = size > maxBytes;
        settle({ bytes: Buffer.concat(parts), isGood: code === 0 && !isTooLong, isTooLong });
      });
    });
}
