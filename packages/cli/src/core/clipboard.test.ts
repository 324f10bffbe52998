import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  clipboardPrograms,
  clipboardSequence,
  copyText,
  MAX_SEQUENCE_CHARS,
  type ClipboardProgram,
} from "./clipboard.ts";

describe("the terminal's clipboard", () => {
  it("is given the text in base64", () => {
    expect(clipboardSequence("Grüße", {})).toBe("\x1b]52;c;R3LDvMOfZQ==\x07");
  });

  it("is reached through tmux, too", () => {
    expect(clipboardSequence("a", { TMUX: "/tmp/tmux-1/default,1,0" })).toBe(
      "\x1b]52;c;YQ==\x07\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\",
    );
  });

  it("is not given more than terminals take", () => {
    expect(clipboardSequence("a".repeat(MAX_SEQUENCE_CHARS), {})).toBeUndefined();
  });
});

describe("programs for the clipboard", () => {
  const names = (programs: readonly ClipboardProgram[]): string[] =>
    programs.map(({ command }) => command);

  it("are those of the system and of the desktop that runs", () => {
    expect(names(clipboardPrograms({}, "darwin"))).toEqual(["pbcopy"]);
    expect(names(clipboardPrograms({}, "linux"))).toEqual([]);
    expect(names(clipboardPrograms({ DISPLAY: ":0", WAYLAND_DISPLAY: "w" }, "linux"))).toEqual([
      "wl-copy",
      "xclip",
      "xsel",
    ]);
    expect(names(clipboardPrograms({ WSL_DISTRO_NAME: "Debian" }, "linux"))).toEqual(["clip.exe"]);
  });

  it("are tried one after the other, beside the terminal", async () => {
    const tried: string[] = [];
    const written: string[] = [];
    const copied = await copyText("hello", {
      env: { DISPLAY: ":0" },
      platform: "linux",
      control: (sequence) => written.push(sequence) > 0,
      run: ({ command }, text) => {
        tried.push(`${command} ${text}`);
        return Promise.resolve(command === "xsel");
      },
    });
    expect(tried).toEqual(["xclip hello", "xsel hello"]);
    expect(written).toEqual(["\x1b]52;c;aGVsbG8=\x07"]);
    expect(copied).toEqual({ terminal: true, program: "xsel" });
  });

  it("get the text on their standard input", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gyre-clipboard-"));
    const got = join(folder, "got");
    try {
      await writeFile(join(folder, "wl-copy"), `#!/bin/sh\n/bin/cat > "${got}"\n`, { mode: 0o755 });
      const copied = await copyText("Grüße\n", {
        env: { PATH: folder, WAYLAND_DISPLAY: "w" },
        platform: "linux",
        control: () => true,
      });
      expect(copied).toEqual({ terminal: true, program: "wl-copy" });
      expect(await readFile(got, "utf8")).toBe("Grüße\n");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("that are not installed are no error", async () => {
    const copied = await copyText("hello", {
      env: { PATH: "/nowhere", DISPLAY: ":0" },
      platform: "linux",
      control: () => true,
    });
    expect(copied).toEqual({ terminal: true });
  });
});
