import { describe, expect, it } from "vitest";
import {
  allowsAddress,
  allowsHost,
  createHostList,
  normalizeHost,
  parseAuthority,
  parseDomain,
} from "./domains.ts";

describe("parseDomain", () => {
  it.each([
    ["registry.npmjs.org", { host: "registry.npmjs.org", isSuffix: false }],
    ["*.GitHub.com", { host: "github.com", isSuffix: true }],
    ["localhost:8080", { host: "localhost", isSuffix: false, port: 8080 }],
    ["10.0.0.5", { host: "10.0.0.5", isSuffix: false }],
    ["[0:0::1]:81", { host: "::1", isSuffix: false, port: 81 }],
    ["bücher.example", { host: "xn--bcher-kva.example", isSuffix: false }],
  ])("reads %s", (text, domain) => expect(parseDomain(text)).toEqual(domain));

  it.each([
    ...["", "*", "*.", "*.*", "a*.example", "https://a.example", "a.example/path", "a.example:0"],
    ...[
      "a.example:70000",
      "user@a.example",
      "*.10.0.0.5",
      "a..example",
      "-a.example",
      "a b",
      "::1",
    ],
  ])("refuses %s", (text) => expect(() => parseDomain(text)).toThrow("is no domain"));
});

describe("which host is allowed", () => {
  const domains = ["registry.npmjs.org", "*.github.com", "git.example:22", "127.0.0.1:99"].map(
    parseDomain,
  );
  it.each([
    ["registry.npmjs.org:443", true],
    ["registry.npmjs.org:80", true],
    ["REGISTRY.npmjs.org.:443", true],
    ["registry.npmjs.org:22", false],
    ["api.github.com:443", true],
    ["a.b.github.com:443", true],
    ["github.com:443", false],
    ["evilgithub.com:443", false],
    ["github.com.evil.example:443", false],
    ["git.example:22", true],
    ["git.example:443", false],
    ["127.0.0.1:99", true],
    ["127.0.0.1:80", false],
  ])("%s: %s", (text, isAllowed) => {
    const target = parseAuthority(text);
    expect(target && allowsHost(domains, target)).toBe(isAllowed);
  });

  it("has private addresses only where they are listed themselves", () => {
    expect(allowsAddress(domains, { host: "127.0.0.1", port: 99 })).toBe(true);
    expect(allowsAddress(domains, { host: "127.0.0.1", port: 443 })).toBe(false);
    expect(allowsAddress(domains, { host: "10.0.0.1", port: 443 })).toBe(false);
    const local = [parseDomain("localhost:3000")];
    expect(allowsAddress(local, { host: "127.0.0.1", port: 3000 })).toBe(true);
    expect(allowsAddress(local, { host: "::1", port: 3000 })).toBe(true);
    expect(allowsAddress(local, { host: "10.0.0.1", port: 3000 })).toBe(false);
  });
});

describe("normalizeHost", () => {
  it.each([
    ...[
      "",
      ".",
      "..",
      "a..b",
      "a.example..",
      "0x7f.1",
      "127.1",
      "2130706433",
      "0177.0.0.1",
      "0x7f000001",
    ],
    ...[
      "1.2.3.4.",
      "a.0x7f",
      "[::1%eth0]",
      "[::1",
      "::1",
      "[127.0.0.1]",
      "registry.npmjs.org\u3002",
      "ｒegistry.npmjs.org",
    ],
    ...[
      "\u212Aernel.org",
      "a\r\nb",
      "a b",
      "a%2eexample",
      "user@a.example",
      "a.example#b",
      "a\\b",
      "a\0b",
      "é.example",
    ],
    ...["-a.example", "a-.example", `${"a".repeat(64)}.example`, `${"a.".repeat(127)}example`],
  ])("takes no %j", (text) => expect(normalizeHost(text)).toBeUndefined());

  it("writes an address of IPv6 in one way", () => {
    for (const text of ["[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]"]) {
      expect(normalizeHost(text)).toBe("::ffff:7f00:1");
    }
  });
});

describe("a list of hosts", () => {
  const list = createHostList(["example.org", "*.github.com", "build.example:8080"]);

  it.each([
    ["example.org", 443, true],
    ["EXAMPLE.org.", 80, true],
    ["example.org", 8080, false],
    ["api.example.org", 443, false],
    ["a.b.github.com", 443, true],
    ["github.com", 443, false],
    ["evilgithub.com", 443, false],
    ["build.example", 8080, true],
    ["[::1]", 443, false],
    ["not a host", 443, false],
  ])("%s:%i: %s", (host, port, isAllowed) => expect(list.allows(host, port)).toBe(isAllowed));

  it.each([
    ["example.org", true],
    ["*.example.org", false],
    ["example.org:443", true],
    ["example.org:8080", false],
    ["*.github.com", true],
    ["*.api.github.com", true],
    ["api.github.com", true],
    ["github.com", false],
    ["*.com", false],
    ["build.example", false],
    ["build.example:8080", true],
  ])("covers %s: %s", (domain, isCovered) => expect(list.covers(domain)).toBe(isCovered));

  it("that is empty has none", () => {
    const none = createHostList([]);
    expect([none.allows("example.org", 443), none.covers("example.org")]).toEqual([false, false]);
  });
});
