import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { MarkdownBlock } from "../markdown/markdown.ts";
import { hasHyperlinks, linkSpans, openLinks } from "./hyperlinks.ts";
import { formatCells, type Row, type Span, span, splitCells, textOfRow } from "./row.ts";
import { COLORS } from "./theme.ts";
import { wrapRows } from "./wrap.ts";

let root = "";
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-links-")));
  mkdirSync(join(root, "work/src"), { recursive: true });
  for (const name of ["work/src/cart.ts", "work/README.md", "work/größe.txt", "secret.txt"]) {
    writeFileSync(join(root, name), "");
  }
  symlinkSync(join(root, "secret.txt"), join(root, "work/leak.txt"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("links are written", () => {
  test.each([
    [{ TERM: "xterm-256color" }, false],
    [{ TERM: "xterm-kitty" }, true],
    [{ TERM: "xterm-ghostty" }, true],
    [{ TERM: "alacritty" }, true],
    [{ TERM: "foot-extra" }, true],
    [{ TERM: "linux" }, false],
    [{ TERM: "dumb", FORCE_HYPERLINK: "1" }, true],
    [{ TERM: "xterm-kitty", FORCE_HYPERLINK: "0" }, false],
    [{ TERM_PROGRAM: "WezTerm" }, true],
    [{ TERM_PROGRAM: "Apple_Terminal" }, false],
    [{ WT_SESSION: "1" }, true],
    [{ VTE_VERSION: "5000" }, false],
    [{ VTE_VERSION: "7006" }, true],
    [{ KITTY_WINDOW_ID: "1", TMUX: "/tmp/t", TERM: "tmux-256color" }, false],
    [{ TMUX: "/tmp/t", TERM_PROGRAM: "tmux", TERM_PROGRAM_VERSION: "3.3a" }, false],
    [{ TMUX: "/tmp/t", TERM_PROGRAM: "tmux", TERM_PROGRAM_VERSION: "3.4" }, true],
    [{ TMUX: "/tmp/t", TERM_PROGRAM: "tmux", TERM_PROGRAM_VERSION: "next-3.6" }, false],
    [{ KITTY_WINDOW_ID: "1", STY: "1.screen", TERM: "screen" }, false],
  ])("in %j: %s", (env, isThere) => {
    expect(hasHyperlinks(env)).toBe(isThere);
  });
});

const find = (text: string, env: Record<string, string> = {}) =>
  openLinks(env, () => join(root, "work"))(text).map(({ start, end, target }) => [
    text.slice(start, end),
    target.replace(root, "").replace(`//${hostname()}`, "//host"),
  ]);

describe("an address", () => {
  test.each([
    [
      "see https://example.org/a?b=c#d.",
      [["https://example.org/a?b=c#d", "https://example.org/a?b=c#d"]],
    ],
    ["(https://example.org/x)", [["https://example.org/x", "https://example.org/x"]]],
    [
      "https://en.example/Tea_(drink)",
      [["https://en.example/Tea_(drink)", "https://en.example/Tea_(drink)"]],
    ],
    ["**https://a.example**, next", [["https://a.example", "https://a.example/"]]],
    [
      "https://bücher.example/ä",
      [["https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"]],
    ],
    // It would lead to another host than it seems to.
    ["https://good.example@evil.example/", []],
    ["https://user:pass@evil.example/", []],
    ["javascript:alert(1) file:///etc/passwd vscode://x ssh://h mailto:a@b.c", []],
    ["https://", []],
    ["https://exa mple.org", [["https://exa", "https://exa/"]]],
    [`https://a.example/${"x".repeat(3_000)}`, []],
  ])("%s", (text, links) => {
    expect(find(text)).toEqual(links);
  });
});

describe("a file", () => {
  test.each([
    ["in src/cart.ts:12 and README.md.", ["src/cart.ts:12", "README.md"]],
    ["./src/cart.ts:3:7, größe.txt", ["./src/cart.ts:3:7", "größe.txt"]],
    ["src/missing.ts, src, cart", []],
    // Outside of the folder, by its path or by a link.
    ["../secret.txt leak.txt /etc/passwd", []],
  ])("%s", (text, names) => {
    expect(find(text).map(([name]) => name)).toEqual(names);
  });

  it("is linked with its host, and with the line where the terminal takes it", () => {
    expect(find("src/cart.ts:12")).toEqual([["src/cart.ts:12", "file://host/work/src/cart.ts"]]);
    expect(find("src/cart.ts:12", { KITTY_WINDOW_ID: "1" })).toEqual([
      ["src/cart.ts:12", "file://host/work/src/cart.ts#12"],
    ]);
    expect(find("größe.txt")).toEqual([["größe.txt", "file://host/work/gr%C3%B6%C3%9Fe.txt"]]);
    expect(find(join(root, "work/README.md"))).toHaveLength(1);
  });

  it("is left to a terminal that finds it by itself, and where there is no folder", () => {
    expect(find("src/cart.ts:12", { TERM_PROGRAM: "vscode" })).toEqual([]);
    expect(openLinks({}, () => undefined)("src/cart.ts https://a.example")).toHaveLength(1);
  });
});

describe("a link", () => {
  const links = (): ReturnType<typeof openLinks> => openLinks({}, () => join(root, "work"));
  const cut = (each: Span, from: number, to: number): Span => ({
    ...each,
    text: each.text.slice(from, to),
  });

  it("changes no text and no style, however it is divided", () => {
    const texts = fc.array(
      fc.constantFrom("see ", "https://a.exam", "ple/x", " src/", "cart.ts", ":1", ", ", "(", ")"),
    );
    fc.assert(
      fc.property(texts, (parts) => {
        const spans = parts.map((text, index) => span(text, String(index % 3)));
        const linked = linkSpans(spans, links(), cut);
        const letters = (all: readonly Span[]): string[] =>
          all.flatMap(({ text, style }) => [...text].map((letter) => letter + style));
        expect(letters(linked)).toEqual(letters(spans));
      }),
    );
  });

  it("is whole in each row that it is broken into, and written around its text alone", () => {
    const address = "https://example.org/a/very/long/path";
    const rows = wrapRows(linkSpans([span(`At ${address} now`, "2")], links(), cut), 20);
    const linked = rows.map((row: Row) => row.filter(({ link }) => link === address));
    expect(linked.map((row) => textOfRow(row)).join("")).toBe(address);
    const drawn = formatCells(splitCells(rows.at(-1) ?? []));
    expect(drawn.startsWith(`\x1b]8;;${address}\x07`)).toBe(true);
    expect(drawn.endsWith("path\x1b]8;;\x07 now\x1b[m")).toBe(true);
  });

  it("of Markdown is the address that is shown, not the text that names it", () => {
    const block = new MarkdownBlock({ theme: COLORS, links: links() });
    block.feed("[https://good.example](https://evil.example/x) and `src/cart.ts`\n");
    block.end();
    const [row = []] = block.rows(120);
    expect(textOfRow(row)).toBe("https://good.example (https://evil.example/x) and src/cart.ts");
    const linked = row.filter(({ link }) => link !== undefined);
    expect(linked.map(({ text, link }) => [text, link?.replace(/.*\/work/, "")])).toEqual([
      ["https://good.example", "https://good.example/"],
      ["https://evil.example/x", "https://evil.example/x"],
      ["src/cart.ts", "/src/cart.ts"],
    ]);
  });

  it("costs little in a long text", () => {
    const text = "the quick brown fox jumps over https://a.example/x and src/cart.ts, ".repeat(
      1_000,
    );
    const own = links();
    const startedAt = performance.now();
    own(text);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });

  it("has nothing in it that a terminal obeys, whatever the text is", () => {
    const pieces = fc.constantFrom(
      "https://a.example/",
      "http://",
      "\u001b",
      "\u0007",
      "]8;;",
      "src/cart.ts",
      "\u009c",
      ";",
      "\n",
    );
    const own = links();
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string())), (parts) => {
        for (const { target } of own(parts.join(""))) {
          expect(target).toMatch(/^(?:https?|file):\/\/[!-~]+$/);
        }
      }),
    );
  });
});
