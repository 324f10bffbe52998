import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ClipboardContent, readClipboard } from "./read-clipboard.ts";

const PNG = Buffer.from("\x89PNG\r\n\x1a\nand the rest", "latin1");
const PICTURE = { type: "picture", mimeType: "image/png", bytes: PNG };
const WAYLAND = { WAYLAND_DISPLAY: "wayland-0" };
const MAX_PICTURE = 5 * 1024 * 1024;

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-read-clipboard-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A program on the PATH. */
async function put(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, name), 0o755);
}

/** A file that a program prints. */
async function file(name: string, bytes: Buffer | string): Promise<string> {
  await writeFile(join(folder, name), bytes);
  return `/bin/cat '${join(folder, name)}'`;
}

function read(
  env: Record<string, string>,
  platform: NodeJS.Platform = "linux",
  askTerminal?: () => Promise<ClipboardContent | undefined>,
): Promise<ClipboardContent> {
  return readClipboard({
    env: { PATH: folder, ...env },
    platform,
    ...(askTerminal && { askTerminal }),
  });
}

/** As wl-paste and xclip do it: the type is an argument. */
async function putByType(name: string, types: Record<string, string>): Promise<void> {
  const list = Object.keys(types).join("\n");
  const cases = Object.entries(types).map(([type, print]) => `*"${type}"*) ${print};;`);
  const listed = await file(`${name}-types`, `${list}\n`);
  await put(
    name,
    `case "$*" in *--list-types*|*TARGETS*) ${listed};; ${cases.join(" ")} *) exit 1;; esac`,
  );
}

describe("wl-paste and xclip", () => {
  it.each([
    ["wl-paste", WAYLAND],
    ["xclip", { DISPLAY: ":0" }],
  ])("%s: a picture comes before text", async (name, env: Record<string, string>) => {
    const png = await file("png", PNG);
    await putByType(name, { "text/html": "echo no", "text/plain": "echo no", "image/png": png });
    expect(await read(env)).toEqual(PICTURE);
  });

  it.each([
    ["wl-paste", WAYLAND],
    ["xclip", { DISPLAY: ":0" }],
  ])("%s: text is text, with its letters and line ends", async (name, env) => {
    await putByType(name, { UTF8_STRING: await file("text", "Grüße\nfrom here\n") });
    expect(await read(env as Record<string, string>)).toEqual({
      type: "text",
      text: "Grüße\nfrom here\n",
    });
  });

  it("say that the clipboard is empty, or has something else", async () => {
    await put("wl-paste", "exit 1");
    expect(await read(WAYLAND)).toEqual({ type: "nothing", why: "The clipboard is empty." });
    await putByType("wl-paste", { "application/zip": "echo zip" });
    const why = "The clipboard has neither a picture nor text.";
    expect(await read(WAYLAND)).toEqual({ type: "nothing", why });
  });

  it("a picture that is larger than services take is not read to its end", async () => {
    const large = Buffer.concat([PNG, Buffer.alloc(MAX_PICTURE)]);
    await putByType("wl-paste", { "image/png": `${await file("png", large)}; exit 0` });
    const why = "The picture on the clipboard is larger than 5 MB, the most that services take.";
    expect(await read(WAYLAND)).toEqual({ type: "nothing", why });
  });

  it("what is no picture, though its type says so, is not sent", async () => {
    await putByType("wl-paste", { "image/png": "echo no picture" });
    const why = "The picture on the clipboard is damaged.";
    expect(await read(WAYLAND)).toEqual({ type: "nothing", why });
  });

  it("the next program is asked where one is not installed", async () => {
    await putByType("xclip", { "image/png": await file("png", PNG) });
    expect(await read({ ...WAYLAND, DISPLAY: ":0" })).toEqual(PICTURE);
  });
});

describe("macOS", () => {
  it("pngpaste gives the picture, pbpaste the text", async () => {
    await put("pngpaste", await file("png", PNG));
    expect(await read({}, "darwin")).toEqual(PICTURE);
    await put("pngpaste", "exit 1");
    await put("pbpaste", "printf 'plain text'");
    expect(await read({}, "darwin")).toEqual({ type: "text", text: "plain text" });
  });

  it("without pngpaste osascript gives the picture", async () => {
    const hex = PNG.toString("hex").toUpperCase();
    await put("osascript", await file("hex", `«data PNGf${hex}»\n`));
    await put("pbpaste", "printf 'not asked'");
    expect(await read({}, "darwin")).toEqual(PICTURE);
  });
});

describe("Windows and WSL", () => {
  it.each(["win32", "linux"] as const)("PowerShell gives both (%s)", async (platform) => {
    const env = platform === "linux" ? { WSL_DISTRO_NAME: "Debian" } : {};
    await put("powershell.exe", await file("out", `picture:${PNG.toString("base64")}`));
    expect(await read(env, platform)).toEqual(PICTURE);
    const text = Buffer.from("Grüße").toString("base64");
    await put("powershell.exe", await file("out", `text:${text}`));
    expect(await read(env, platform)).toEqual({ type: "text", text: "Grüße" });
  });

  it("an error of PowerShell is none of its output", async () => {
    await put("powershell.exe", "echo 'Exception calling GetImage'; exit 1");
    const why = "powershell.exe has failed.";
    expect(await read({}, "win32")).toEqual({ type: "nothing", why });
  });
});

describe("the terminal", () => {
  const fromTerminal: ClipboardContent = { type: "text", text: "from the terminal" };

  it("is asked where there is no program", async () => {
    expect(await read({}, "linux", () => Promise.resolve(fromTerminal))).toEqual(fromTerminal);
  });

  it("comes after a program here, and before it over SSH", async () => {
    await putByType("wl-paste", { "text/plain": "printf program" });
    const ask = (): Promise<ClipboardContent> => Promise.resolve(fromTerminal);
    expect(await read(WAYLAND, "linux", ask)).toEqual({ type: "text", text: "program" });
    const remote = { ...WAYLAND, SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" };
    expect(await read(remote, "linux", ask)).toEqual(fromTerminal);
  });

  it("is not asked through tmux, which keeps the answer", async () => {
    const { type } = await read({ TMUX: "/tmp/tmux" }, "linux", () => {
      throw new Error("It was asked.");
    });
    expect(type).toBe("nothing");
  });

  it("one line says what is missing where nothing reads the clipboard", async () => {
    const unknown = (): Promise<undefined> => Promise.resolve(undefined);
    expect(await read({}, "linux", unknown)).toEqual({
      type: "nothing",
      why: "Nothing reads the clipboard: install wl-clipboard (Wayland) or xclip (X11).",
    });
    expect(await read({ SSH_TTY: "/dev/pts/1" }, "linux", unknown)).toEqual({
      type: "nothing",
      why: "This terminal does not let programs read the clipboard over SSH (OSC 5522).",
    });
  });
});
