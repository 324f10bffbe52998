import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hasBrowser, openBrowser } from "./open-browser.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-browser-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a browser", () => {
  it.each([
    [{ DISPLAY: ":0" }, "linux", true],
    [{ WAYLAND_DISPLAY: "w" }, "linux", true],
    [{}, "linux", false],
    [{}, "darwin", true],
    [{ SSH_CONNECTION: "a b" }, "darwin", false],
    [{ DISPLAY: ":0", CI: "true" }, "linux", false],
    [{}, "aix", false],
  ] as const)("with %j on %s is in front of the user: %s", (env, platform, is) => {
    expect(hasBrowser(env, platform)).toBe(is);
  });

  it("gets the address as one argument, without a shell", async () => {
    const opener = join(folder, "xdg-open");
    const out = join(folder, "opened");
    writeFileSync(opener, `#!/bin/sh\nprintf '%s' "$*" > '${out}'\n`);
    chmodSync(opener, 0o755);
    const env = { PATH: `${folder}:/usr/bin:/bin`, DISPLAY: ":0" };
    const url = new URL("https://login.example/a?b=c&d=$(touch owned);e");
    expect(await openBrowser(url, env, "linux")).toBe(true);
    await vi.waitFor(() => expect(readFileSync(out, "utf8")).toBe(url.href));
  });

  it("is not opened for anything but pages of the web, nor where its program is missing", async () => {
    const env = { PATH: folder, DISPLAY: ":0" };
    expect(await openBrowser(new URL("file:///etc/passwd"), env, "linux")).toBe(false);
    expect(await openBrowser(new URL("https://a.example"), env, "linux")).toBe(false);
  });
});
