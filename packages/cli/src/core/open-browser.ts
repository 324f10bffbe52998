import { spawn } from "node:child_process";
import type { Environment } from "./io.ts";

/** What opens a page on a system: the program and its arguments before the address. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  // Not `start`, which is a command of a shell.
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
  linux: ["xdg-open"],
};

/**
 * Whether a browser that opens here is in front of the user: not over SSH, and not without a screen.
 */
export function hasBrowser(
  env: Environment,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (!OPENERS[platform] || env["SSH_CONNECTION"] || env["CI"]) return false;
  return platform !== "linux" || Boolean(env["DISPLAY"] ?? env["WAYLAND_DISPLAY"]);
}

/**
 * Opens a page of the web in the user's browser. False where that is not possible, or the program that does it is not there;
 * whether the page was shown is not known.
 */
export function openBrowser(
  url: URL,
  env: Environment,
  platform: NodeJS.Platform = process.platform,
): Promise<boolean> {
  const [program, ...args] = OPENERS[platform] ?? [];
  const isWeb = url.protocol === "https:" || url.protocol === "http:";
  if (program === undefined || !isWeb || !hasBrowser(env, platform)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url.href], {
      env: { ...env },
      stdio: "ignore",
      detached: true,
      windowsHide: true,
    });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
