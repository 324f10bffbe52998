import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TerminalRun } from "../../../testing/terminal-program.ts";
import { ask, terminalWorld } from "../../../testing/terminal-world.ts";

// What is typed, pasted and put aside: the built program in a real terminal.

const world = terminalWorld();
const { open } = world;
const PNG = Buffer.from("\x89PNG\r\n\x1a\nand the rest", "latin1");

/** It shows this, and has done all that it was asked to. */
async function idle(run: TerminalRun, shown: string): Promise<void> {
  await run.until((rows) => {
    const screen = rows.join("\n");
    return screen.includes(shown) && !screen.includes("Esc interrupts");
  });
}

/** A folder for PATH with one program in it. */
async function programFolder(name: string, script: string): Promise<string> {
  const folder = join(await world.program.makeHome(), "bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "picture.png"), PNG);
  writeFileSync(join(folder, name), `#!/bin/sh\n${script.replaceAll("FOLDER", folder)}\n`);
  chmodSync(join(folder, name), 0o755);
  return folder;
}

/** What the last request has as pictures, in base64. */
function picturesIn(body: unknown): string[] {
  return [...JSON.stringify(body).matchAll(/"data":"([A-Za-z0-9+/=]+)"/g)].map(
    ([, data = ""]) => data,
  );
}

describe("Ctrl+V", () => {
  const script =
    'case "$*" in *--list-types*) echo image/png;; *) /bin/cat FOLDER/picture.png;; esac';

  it("pastes the picture of the clipboard, which is sent with the prompt", async () => {
    const folder = await programFolder("wl-paste", script);
    const env = { PATH: `${folder}:${process.env["PATH"]}`, WAYLAND_DISPLAY: "wayland-0" };
    const { run, service } = await open([{ say: "A parrot." }], { env });
    run.type("What is ");
    run.press("ctrl+v");
    await run.until("› What is [picture #1, PNG, 1 KB]");
    const temporary = join(run.home, "tmp");
    const isPicture = (name: string): boolean => name.startsWith("gyre-pictures-");
    expect(readdirSync(temporary).filter(isPicture)).toHaveLength(1);
    ask(run, "?");
    await idle(run, "A parrot.");
    expect(picturesIn(service.requests.at(-1)?.body)).toEqual([PNG.toString("base64")]);
    ask(run, "/exit");
    await run.end;
    expect(readdirSync(temporary).filter(isPicture)).toEqual([]);
  });

  it("pastes text where there is no picture", async () => {
    const text =
      'case "$*" in *--list-types*) echo text/plain;; *) printf "from the clipboard";; esac';
    const folder = await programFolder("wl-paste", text);
    const env = { PATH: `${folder}:${process.env["PATH"]}`, WAYLAND_DISPLAY: "wayland-0" };
    const { run } = await open([], { env });
    run.press("ctrl+v");
    await run.until("› from the clipboard");
    expect(run.screen().join("\n")).not.toContain("pasted");
  });

  it("reads a picture through a terminal with kitty's clipboard protocol", async () => {
    const env = { KITTY_WINDOW_ID: "1", PATH: "/usr/bin:/bin", SSH_TTY: "/dev/pts/9" };
    const { run, service } = await open([{ say: "A parrot." }], { env });
    const encode = (text: string): string => Buffer.from(text).toString("base64");
    const answer = (fields: string): void => run.type(`\x1b]5522;type=read:${fields}\x1b\\`);
    let heard = "";
    run.listen((bytes) => {
      heard += bytes.toString("latin1");
      for (const type of [".", "image/png"]) {
        const question = `\x1b]5522;type=read;${encode(type)}\x1b\\`;
        if (!heard.includes(question)) continue;
        heard = heard.replace(question, "");
        const data = type === "." ? encode("text/html image/png") : PNG.toString("base64");
        answer("status=OK");
        answer(`status=DATA:mime=${encode(type)};${data}`);
        answer("status=DONE");
      }
    });
    run.press("ctrl+v");
    await run.until("› [picture #1, PNG, 1 KB]");
    ask(run, " What is it?");
    await idle(run, "A parrot.");
    expect(picturesIn(service.requests.at(-1)?.body)).toEqual([PNG.toString("base64")]);
  });

  it("says in a line what is missing, and keeps what was typed", async () => {
    const { run } = await open([], { env: { WAYLAND_DISPLAY: "", DISPLAY: "" } });
    run.type("typed");
    run.press("ctrl+v");
    await run.until("Nothing reads the clipboard: install wl-clipboard (Wayland) or xclip (X11).");
    expect(run.screen().join("\n")).toContain("› typed");
  });
});

describe("Ctrl+S", () => {
  it("puts the prompt aside until the next message is sent", async () => {
    const { run } = await open([{ say: "First." }, { say: "Second." }]);
    run.type("A long plan");
    run.press("ctrl+s");
    await run.until("⇡ aside: A long plan · Ctrl+S brings it back");
    // A command is no message, and one that does not exist comes back alone.
    ask(run, "/claer");
    await run.until('There is no command "/claer"');
    expect(run.screen().join("\n")).toContain("⇡ aside: A long plan");
    run.press("ctrl+u");
    ask(run, "One thing before");
    await idle(run, "First.");
    await run.until("› A long plan");
    expect(run.screen().join("\n")).not.toContain("⇡ aside");
    run.press("enter");
    await idle(run, "Second.");
  });

  it("brings it back by the same key, and keeps it when the program ends", async () => {
    const { run } = await open([]);
    run.type("Not yet");
    run.press("ctrl+s");
    await run.until("⇡ aside: Not yet");
    run.press("ctrl+s");
    await run.until("› Not yet");
    run.press("ctrl+s");
    await run.until("⇡ aside: Not yet");
    ask(run, "/exit");
    await run.end;
    const next = await open([], { home: run.home });
    next.run.press("up");
    next.run.press("up");
    await next.run.until("› Not yet");
    expect(next.run.screen().join("\n")).not.toContain("⇡ aside");
  });
});
