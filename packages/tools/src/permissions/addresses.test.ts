import fc from "fast-check";
import { expect, it } from "vitest";
import { readHost } from "@gyre/ai/network";
import { parseUrl } from "../web/fetch/address.ts";
import { createAddressMatcher } from "./addresses.ts";

/** Pieces of which an address may be mistaken for another one. */
const AUTHORITIES = [
  ...["good.test", "GOOD.test", "good.test.", "good.test..", "good.test:443", "good.test:8443"],
  ...["good.test@evil.test", "evil.test@good.test", "good.test:443@evil.test", "good%2etest"],
  ...["good。test", "ｇood.test", "goo\u00add.test", "xn--good.test", "gооd.test", "good\ttest"],
  ...["evil.test", "a.good.test", "good.test.evil.test", "evilgood.test", "evil.test\\@good.test"],
  ...["good.test#@evil.test", "good.test?@evil.test", "good.test\\evil.test", "93.184.215.14"],
  ...["0x5db8d70e", "1572394766", "0135.0270.0327.016", "[2606:4700::1111]", "[::ffff:5db8:d70e]"],
];
const SIGNS = ["https://", "https:", "https:\\\\", "HTTPS:///", " https://", "https:/\n/"];
const PATHS = [
  ...["docs", "admin", "Docs", "%64ocs", "%61dmin", "%2561dmin", "ADMIN", ".", "..", "%2e%2e"],
  ...["..%2f", "..;", "..%5c", "", "a", "x;y=1", "\\", "%2f", "%00", "ä", "%c3%a4", "a b", "\t"],
];
const address = fc
  .tuple(
    fc.constantFrom(...SIGNS),
    fc.oneof(fc.constant("good.test"), fc.constantFrom(...AUTHORITIES)),
    fc.constantFrom("", "docs/"),
    fc.array(fc.constantFrom(...PATHS), { maxLength: 4 }),
    fc.constantFrom("", "", "?q=1", "#x", "?/docs/", "\u00a0"),
  )
  .map(
    ([sign, authority, top, names, end]) => `${sign}${authority}/${top}${names.join("/")}${end}`,
  );

/** Where a connection goes, and what is asked for there; nothing where none is made. */
function connection(text: string): { host: string; port: string; path: string } | undefined {
  try {
    const url = parseUrl(text);
    return {
      host: readHost(url).replace(/\.$/, ""),
      port: url.port || "443",
      path: url.pathname + url.search,
    };
  } catch {
    // Not one that is fetched at all.
    return undefined;
  }
}

function matcher(pattern: string, forbids: boolean): (url: string) => boolean {
  const matches = createAddressMatcher(pattern, { forbids });
  if (typeof matches === "string") throw new Error(matches);
  return matches;
}

it("takes an address for the one that is connected to, in random ones", () => {
  const allows = matcher("https://good.test/docs/**", false);
  const forbids = matcher("https://good.test/**", true);
  const forbidsBelow = matcher("https://*.good.test", true);
  const forbidsAddress = matcher("https://93.184.215.14/**", true);
  const count = { connected: 0, allowed: 0, forbidden: 0 };
  fc.assert(
    fc.property(address, (text) => {
      const to = connection(text);
      if (!to) return;
      count.connected++;
      if (allows(text)) {
        count.allowed++;
        expect(to).toMatchObject({ host: "good.test", port: "443" });
        expect(decodeURIComponent(to.path)).toMatch(/^\/docs\/(?!.*(?:^|[/\\])\.\.?(?:[/\\;]|$))/s);
      }
      if (forbids(text)) count.forbidden++;
      expect(forbids(text)).toBe(to.host === "good.test");
      expect(forbidsBelow(text)).toBe(to.host.endsWith(".good.test"));
      expect(forbidsAddress(text)).toBe(to.host === "93.184.215.14");
    }),
    { numRuns: 5_000 },
  );
  for (const each of Object.values(count)) expect(each).toBeGreaterThan(10);
});

it("forbids a path however it is encoded", () => {
  const forbids = matcher("https://good.test/admin/**", true);
  const written = fc.tuple(...[..."admin"].map((each) => encodings(each)));
  fc.assert(
    fc.property(written, (letters) => {
      expect(forbids(`https://good.test/${letters.join("")}/x`)).toBe(true);
      expect(forbids(`https://good.test/x${letters.join("")}/x`)).toBe(false);
    }),
    { numRuns: 1_000 },
  );
});

function encodings(letter: string): fc.Arbitrary<string> {
  const code = letter.codePointAt(0)?.toString(16) ?? "";
  return fc.constantFrom(letter, letter.toUpperCase(), `%${code}`, `%25${code}`, `%2525${code}`);
}

it("forbids a host with letters beyond ASCII however often addresses were looked at before", () => {
  const forbids = createAddressMatcher("https://evil.org/**", { forbids: true });
  if (typeof forbids === "string") throw new Error(forbids);
  // Often enough for the engine to compile what it calls.
  for (let times = 0; times < 50_000; times++) forbids("https://good.example/x");
  const missed = Array.from({ length: 10_000 }).filter(() => !forbids("https://e\u00advil.org/x"));
  expect(missed).toHaveLength(0);
});
