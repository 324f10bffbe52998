import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix, win32 } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanPath } from "./search-path.ts";
import { cleanEnvironment } from "./environment.ts";

/** What is there also if nothing was given. */
const NOTHING = cleanEnvironment({});

/** Made up, in the shape of real ones. */
const KEY = `sk-ant-${"a1B2".repeat(8)}`;

describe("cleanEnvironment", () => {
  it("lets through what programs need", () => {
    const wanted = {
      PATH: "/usr/bin:/bin",
      HOME: "/home/me",
      USER: "me",
      LOGNAME: "me",
      SHELL: "/bin/bash",
      LANG: "de_DE.UTF-8",
      LC_ALL: "C.UTF-8",
      TERM: "xterm-256color",
      TMPDIR: "/var/tmp",
      TZ: "Europe/Berlin",
      CI: "true",
    };
    expect(cleanEnvironment(wanted)).toMatchObject(wanted);
  });

  it("keeps programs from asking, paging and coloring", () => {
    expect(
      cleanEnvironment({ PAGER: "less", EDITOR: "vi", GIT_TERMINAL_PROMPT: "1" }),
    ).toMatchObject({
      GIT_TERMINAL_PROMPT: "0",
      GIT_PAGER: "cat",
      PAGER: "cat",
      EDITOR: "false",
      GIT_EDITOR: "false",
      NO_COLOR: "1",
    });
  });

  it.each([
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GITHUB_TOKEN",
    "NPM_TOKEN",
    "DATABASE_URL",
    "PGPASSWORD",
    "SSH_AUTH_SOCK",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HTTP_COOKIE",
    "SENTRY_DSN",
    "SLACK_WEBHOOK",
  ])("does not let %s through, also not if asked to", (name) => {
    expect(cleanEnvironment({ [name]: "x1" }, { network: true, keep: [name] })).toEqual(NOTHING);
  });

  it.each([
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "BASH_ENV",
    "ENV",
    "PS4",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_COUNT",
    "GIT_DIR",
    "LESSOPEN",
    "npm_config_script_shell",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "DOCKER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "IFS",
    "ZDOTDIR",
    "BASH_FUNC_ls%%",
  ])("does not let %s steer programs", (name) => {
    expect(cleanEnvironment({ [name]: "/tmp/evil" }, { keep: [name] })).toEqual(NOTHING);
  });

  it("hides a key behind any name that is let through", () => {
    const names = ["USER", "TERM", "TZ", "CI", "LANG", "LC_ALL", "HTTPS_PROXY", "MINE"];
    for (const name of names) {
      const clean = cleanEnvironment({ [name]: KEY }, { network: true, keep: ["MINE"] });
      expect(Object.values(clean), name).not.toContain(KEY);
    }
  });

  it("gives proxies to what may use the network, without passwords", () => {
    const from = {
      HTTPS_PROXY: "http://proxy.test:3128",
      no_proxy: "localhost",
      http_proxy: "http://me:hunter22@proxy.test:3128",
    };
    expect(cleanEnvironment(from)).toEqual(NOTHING);
    expect(cleanEnvironment(from, { network: true })).toEqual({
      ...NOTHING,
      HTTPS_PROXY: "http://proxy.test:3128",
      no_proxy: "localhost",
    });
  });

  it("finds programs by whole paths, and not in the workspace", () => {
    const PATH = ".::node_modules/.bin:/ws/node_modules/.bin:/usr/bin:/ws2/bin:/ws:~/bin";
    expect(cleanEnvironment({ PATH }, { workspace: "/ws" })["PATH"]).toBe("/usr/bin:/ws2/bin");
    expect(cleanEnvironment({ PATH: ".:bin" })["PATH"]).toBe("/usr/local/bin:/usr/bin:/bin");
  });

  it("follows links into the workspace", () => {
    const base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-path-")));
    mkdirSync(join(base, "ws/bin"), { recursive: true });
    symlinkSync(join(base, "ws"), join(base, "link"));
    symlinkSync(join(base, "ws/bin"), join(base, "bin"));
    const path = [join(base, "link/bin"), join(base, "bin"), join(base, "other")].join(":");
    for (const workspace of [join(base, "ws"), join(base, "link")]) {
      expect(cleanPath(path, workspace)).toBe(join(base, "other"));
    }
    rmSync(base, { recursive: true });
  });

  it("parts PATH as the system does", () => {
    const path = String.raw`C:\Program Files\Git\cmd;.;bin;D:\tools;C:\ws\node_modules\.bin;C:\ws;C:\ws2`;
    const clean = String.raw`C:\Program Files\Git\cmd;D:\tools;C:\ws2`;
    expect(cleanPath(path, String.raw`c:\ws`, win32)).toBe(clean);
    expect(cleanPath("/usr/bin:.:/ws/bin:/ws/..bin:/a;b", "/ws", posix)).toBe("/usr/bin:/a;b");
  });

  it.each([
    [win32, String.raw`C:\Windows\System32;C:\Windows`],
    [posix, "/usr/local/bin:/usr/bin:/bin"],
  ])("has folders of the system where none is left of PATH", (system, path) => {
    for (const given of [undefined, "", [".", "bin"].join(system.delimiter)]) {
      expect(cleanPath(given, undefined, system)).toBe(path);
    }
  });

  it("finds PATH in a copy of the variables of Windows", () => {
    expect(cleanEnvironment({ Path: "/opt/bin" })["PATH"]).toBe("/opt/bin");
    expect(cleanEnvironment({ Path: "/opt/bin" })["Path"]).toBeUndefined();
  });

  it("takes no value that does not look like one", () => {
    const from = {
      HOME: "../x",
      LANG: "/tmp/evil$(id)",
      LC_ALL: "() { :;}; echo no",
      TZ: "() { :;}; echo no",
      USER: "a\nb",
    };
    expect(cleanEnvironment(from)).toEqual(NOTHING);
  });

  it("sets what the application wants, last", () => {
    const clean = cleanEnvironment(
      { MINE: "1", OTHER: "2" },
      { keep: ["MINE"], set: { PAGER: "x" } },
    );
    expect(clean).toEqual({ ...NOTHING, MINE: "1", PAGER: "x" });
  });

  it("gives only names that it knows, whatever it is given", () => {
    const known = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TERM|TMPDIR|TZ|CI)$/;
    const names = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[A-Z_]{1,12}$/),
      fc.constantFrom("PATH", "HOME", "LC_X", "__proto__", "constructor", "path"),
    );
    fc.assert(
      fc.property(fc.dictionary(names, fc.string({ unit: "binary" })), (from) => {
        for (const name of Object.keys(cleanEnvironment(from))) {
          expect(known.test(name) || Object.hasOwn(NOTHING, name), name).toBe(true);
        }
      }),
    );
  });

  it("is what a program sees", () => {
    const env = cleanEnvironment({ ...process.env, BASH_ENV: "/nowhere", MY_API_KEY: KEY });
    const printed = execFileSync("/usr/bin/env", { env, encoding: "utf8" });
    expect(printed).toContain("GIT_TERMINAL_PROMPT=0");
    expect(printed).not.toContain(KEY);
    expect(printed).not.toContain("BASH_ENV");
  });
});
