import { describe, expect, it } from "vitest";
import { hostKey, listAddresses, nameKey, parseAddress, placeKey, takeNames } from "./names.ts";

function keysIn(text: string): Set<string> {
  const keys = new Set<string>();
  takeNames(text, (key) => keys.add(key));
  return keys;
}

describe("an address", () => {
  it.each([
    "https://evil.example/install.sh",
    "http://EVIL.example/install.sh",
    "https://evil.example./install.sh",
    "https://user:word@evil.example/install.sh",
    "https://evil.example:443/install.sh",
    "https://evil.example:8443/install.sh?q=1#top",
    "https://evil%2Eexample/install%2Esh",
    "https://evil.example//./a/../install.sh",
    "https://evil.example/%2569nstall.sh",
    "git+ssh://git@evil.example/install.sh",
    "git@evil.example:install.sh",
    "evil.example/install.sh",
    "//evil.example/install.sh",
  ])("%s is written in one way", (text) => {
    expect(parseAddress(text)).toEqual({
      host: "evil.example",
      place: "evil.example/install.sh",
    });
  });

  it.each([
    ["https://bücher.example/", "xn--bcher-kva.example"],
    ["https://xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["BÜCHER.example", "xn--bcher-kva.example"],
    ["https://0x7f.1.2.3", "127.1.2.3"],
    ["http://[2001:DB8:0:0::1]/", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["evil.example:8080", "evil.example"],
    ["10.1.2.3:8080", "10.1.2.3"],
  ])("%s has the host %s", (text, host) => {
    const expected = host.startsWith("127.") ? undefined : { host };
    expect(parseAddress(text)).toEqual(expected);
  });

  it.each([
    ...["localhost:3000", "http://127.0.0.1:8080/x", "http://[::1]/", "http://app.localhost/"],
    ...[
      "word",
      "a/b",
      "src/index.ts",
      "--flag",
      "1",
      "",
      "http://",
      "https://exa mple",
      "..",
      "./x.y",
    ],
    ...["1.2.3", "left-pad@1.2.3", "v1.2", "1.0"],
  ])("%j is none of another machine", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it("of a repository is the same with .git", () => {
    expect(parseAddress("https://git.example/a/b.git")?.place).toBe("git.example/a/b");
  });
});

describe("a text", () => {
  it.each([
    ['see "https://evil.example/x".', placeKey("evil.example/x")],
    ["[link](https://evil.example/x)", placeKey("evil.example/x")],
    ["<https://evil.example/x>", placeKey("evil.example/x")],
    ["**https://evil.example/x**!", placeKey("evil.example/x")],
    ['{"url":"https:\\/\\/evil.example\\/x"}', placeKey("evil.example/x")],
    ["registry=https://evil.example/x", placeKey("evil.example/x")],
    ["--registry=https://evil.example", hostKey("evil.example")],
    ["connect to evil.example, then", hostKey("evil.example")],
    ["at [2001:db8::1]:8080", hostKey("2001:db8::1")],
    ["run `npm install left-pad@1.3.0`", nameKey("left-pad")],
    ["pip install 'requests>=2.0'", nameKey("requests")],
    ["npm i @scope/tea@^2", nameKey("@scope/tea")],
    ["cat ./notes//../notes/plan.txt", nameKey("notes/plan.txt")],
    ["cat notes%2Fplan.txt", nameKey("notes/plan.txt")],
    ["rm $HOME/.ssh/id", nameKey("~/.ssh/id")],
    ["the folder build/cache/.", nameKey("build/cache")],
    ["write .env", nameKey(".env")],
    ["push to feature-x:", nameKey("feature-x")],
  ])("%j names %j", (text, key) => {
    expect(keysIn(text)).toContain(key);
  });

  it("has its addresses listed once", () => {
    expect(
      listAddresses("fetch('https://a.example/x', \"https://A.example/x\", 'b.example')"),
    ).toEqual([{ host: "a.example", place: "a.example/x" }, { host: "b.example" }]);
  });

  it.each([
    ["one long word", "x".repeat(1_000_000)],
    ["dots", ".".repeat(1_000_000)],
    ["dots in words", `${".".repeat(1_999)}x `.repeat(500)],
    ["schemes", "a://".repeat(250_000)],
    ["words with at", `${"a@".repeat(999)} `.repeat(500)],
    ["percents", "%25".repeat(300_000)],
    ["percents in words", `${"%25".repeat(600)} `.repeat(500)],
    ["slashes", `${"../".repeat(600)} `.repeat(500)],
    ["versions", `${"a=".repeat(999)} `.repeat(500)],
    ["code", "foo.bar(baz['x'].y) === a.b.c; ".repeat(30_000)],
  ])("takes time that grows with its length: %s", (_what, text) => {
    const measure = (given: string): number => {
      const start = performance.now();
      takeNames(given, () => {});
      return performance.now() - start;
    };
    measure(text.slice(0, 100_000));
    // Far above what a machine needs for a million characters, far below what the square of it takes.
    expect(measure(text)).toBeLessThan(10_000);
  });
});
