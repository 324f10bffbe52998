import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import {
  DEFAULT_DRAIN_MS,
  DEFAULT_IDLE_MS,
  DEFAULT_PORT,
  isLoopback,
  serveOptions,
} from "./options.ts";

const io = { cwd: "/work", env: { XDG_STATE_HOME: "/state" } };

describe("the options of gyre serve", () => {
  it("are this machine alone, a known port and a token beside the sessions by default", () => {
    expect(serveOptions({}, io)).toEqual({
      drainMs: DEFAULT_DRAIN_MS,
      idleMs: DEFAULT_IDLE_MS,
      isQuiet: false,
      place: {
        host: "127.0.0.1",
        port: DEFAULT_PORT,
        listeners: [],
        tokenFile: join("/state", "gyre", "serve-token"),
        hosts: [],
        origins: [],
      },
    });
  });

  it("allow keys of clients on this machine alone", () => {
    const keys = { "client-keys": true };
    expect(serveOptions(keys, io)).toMatchObject({ clientKeys: true });
    expect(serveOptions({ ...keys, stdio: true }, io)).toMatchObject({ clientKeys: true });
    expect(serveOptions({ ...keys, host: "::1", "tcp-port": "0" }, io).clientKeys).toBe(true);
    for (const open of [
      { host: "0.0.0.0" },
      { host: "gyre.example.org" },
      { listen: ["tcp://192.0.2.1:0"] },
      { listen: ["tcp://127.0.0.1:0", "tcp://[::]:7421"] },
    ]) {
      expect(() => serveOptions({ ...keys, ...open }, io)).toThrow(
        /--client-keys is for this machine alone/,
      );
    }
  });

  it("are what the command line says", () => {
    const values: Values = {
      port: "0",
      host: "::1",
      "tcp-port": "7421",
      listen: ["tcp://127.0.0.1:0"],
      "health-port": "7422",
      "health-limit": "2.5",
      "token-file": "token",
      "allow-host": ["gyre.example.org", "gyre.example.org:8443"],
      "allow-origin": ["https://example.org"],
      drain: "0.5",
      idle: "30",
      quiet: true,
    };
    expect(serveOptions(values, io)).toEqual({
      drainMs: 500,
      idleMs: 30_000,
      isQuiet: true,
      place: {
        host: "::1",
        port: 0,
        listeners: [
          { url: "tcp://[::1]:7421", option: "tcp-port" },
          { url: "tcp://127.0.0.1:0", option: "listen" },
        ],
        health: { port: 7422, limitMs: 2500 },
        tokenFile: resolve("/work", "token"),
        hosts: ["gyre.example.org", "gyre.example.org:8443"],
        origins: ["https://example.org"],
      },
    });
  });

  it("have no place with --stdio", () => {
    expect(serveOptions({ stdio: true }, io)).toEqual({
      drainMs: DEFAULT_DRAIN_MS,
      idleMs: DEFAULT_IDLE_MS,
      isQuiet: false,
    });
  });

  it.each<[Values, string]>([
    [{ port: "65536" }, '--port "65536"'],
    [{ port: "-1" }, '--port "-1"'],
    [{ "tcp-port": "" }, '--tcp-port ""'],
    [{ host: " " }, '--host " "'],
    [{ drain: "-1" }, '--drain "-1"'],
    [{ drain: "1e9" }, '--drain "1e9"'],
    [{ "allow-host": ["https://example.org"] }, "--allow-host"],
    [{ "allow-host": ["example.org/path"] }, "--allow-host"],
    [{ "allow-origin": ["example.org"] }, "--allow-origin"],
    [{ "allow-origin": ["https://example.org/"] }, "--allow-origin"],
    [{ "allow-origin": ["*"] }, "--allow-origin"],
    [{ "health-port": "x" }, '--health-port "x"'],
    [{ "health-port": "0", "health-limit": "0.5" }, '--health-limit "0.5"'],
    [{ "health-port": "0", "health-limit": "no" }, '--health-limit "no"'],
    [{ "health-limit": "5" }, "--health-limit is for --health-port"],
    [{ stdio: true, "health-port": "0" }, "--health-port means nothing there"],
    [{ stdio: true, "allow-host": ["a"] }, "--allow-host means nothing there"],
  ])("refuse %j", (values, why) => {
    expect(() => serveOptions(values, io)).toThrow(why);
  });
});

describe("loopback", () => {
  it.each([
    ["127.0.0.1", true],
    ["127.8.9.1", true],
    ["::1", true],
    ["localhost", true],
    ["0.0.0.0", false],
    ["::", false],
    ["192.168.1.5", false],
    ["127.0.0.1.example.org", false],
  ])("%s: %s", (host, is) => {
    expect(isLoopback(host)).toBe(is);
  });
});
