import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { htmlToText } from "./html-text.ts";

const BASE = "https://site.test/docs/page";

describe("htmlToText", () => {
  it("reads a page as a person would", () => {
    const html = `<!doctype html><html><head><title>A &amp; B</title>
      <style>p { color: red }</style><script>if (a < b) alert("</p>")</script></head>
      <body><!-- not <b>this</b> --><h1>Top</h1><p>One <b>two</b>,
      three.<br>Four</p><ul><li>First</li><li>Second <i>one</i></li></ul>
      <table><tr><th>K</th><td>V</td></tr></table>
      <pre>a
  b</pre><hr><img src="x" alt="A cat">end</body></html>`;
    expect(htmlToText(html, BASE)).toBe(
      [
        "A & B",
        "",
        "# Top",
        "",
        "One two, three.",
        "Four",
        "",
        "- First",
        "- Second one",
        "",
        "K | V |",
        "",
        "a\n  b",
        "",
        "---",
        "[image: A cat]end",
      ].join("\n"),
    );
  });

  it("keeps links as text, made whole, and only those that can be fetched", () => {
    const html = `<a href="../a?b=1&amp;c=2">up</a> <a href='https://x.test/'>there</a>
      <a href=/root>root</a> <a href="#here">here</a> <a href="javascript:alert(1)">no</a> <a>none</a>`;
    expect(htmlToText(html, BASE)).toBe(
      "[up](https://site.test/a?b=1&c=2) [there](https://x.test/) [root](https://site.test/root) here no none",
    );
  });

  it.each([
    ["a bare <", "1 < 2 and <3", "1 < 2 and <3"],
    ["an end in a value", `<p title="a > b">x</p>`, "x"],
    ["a quote in a tag", `<p it's>x</p>`, "x"],
    ["an open comment", "a<!-- b", "a"],
    ["an open script", "a<script>b", "a"],
    ["an open tag", `a<p class="b`, "a"],
    ["svg inside of svg", "a<svg><svg></svg><title>t</title></svg>b", "ab"],
    ["an empty svg", "a<svg/>b", "ab"],
    ["letters in upper case", "<SCRIPT>x</Script >y", "y"],
    ["nothing", "", ""],
    ["a comment that ends with --!>", "a<!-- x --!>b", "ab"],
    ["a comment that ends at once", "a<!-->b", "ab"],
    ["an end tag without a name", "a</>b", "ab"],
    ["CDATA where it has no meaning", "a<![CDATA[b]]>c", "ac"],
    ["a script that closes itself", "a<script/>b</script>c", "ac"],
    ["tags in a title", "<title><b>x</title>", "<b>x"],
    ["a script in a value", `<img alt="<script>x</script>">y`, "[image: <script>x</script>]y"],
    ["a script end in a style", "<style>'</script>'</style>y", "y"],
    ["100,000 open tags", `${"<div>".repeat(100_000)}x${"</div>".repeat(100_000)}`, "x"],
    ["an address of a million characters", `<a href="/${"x".repeat(1_000_000)}">y</a>`, "y"],
  ])("copes with %s", (_, html, expected) => {
    expect(htmlToText(html, BASE)).toBe(expected);
  });

  it("takes any text, without the scripts in it", () => {
    const piece = fc.constantFrom(
      ...["<", ">", "/", '"', "'", "=", " ", "a", "p", "script", "<script>", "</script>", "<!--"],
      ...["-->", "<a href=", "&amp;", "&#", "<pre>", "</pre>", "\n", "<li>", "<svg>", "x", "<?"],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        expect(htmlToText(pieces.join(""), BASE)).toBeTypeOf("string");
        const hidden = `${pieces.join("")}--></svg></script>"'><script>SECRET</script>`;
        expect(htmlToText(hidden, BASE)).not.toContain("SECRET");
      }),
    );
  });

  it.each([
    "<",
    "<a ",
    '<a b="',
    "<!--",
    "<script>",
    "<a href='x' ",
    "<p>\n",
    "<pre>\n",
    "&#",
    "<b>",
    "</",
    "<p><b>",
    "<svg>",
    "<table>",
    "<a b=c ",
    "<![CDATA[",
    "&notin",
  ])("takes time in proportion to the page: %s", (unit) => {
    // Half a million characters: were it quadratic, this would not come to an end.
    const html = unit.repeat(500_000 / unit.length);
    expect(htmlToText(html, BASE).length).toBeLessThanOrEqual(html.length);
    expect(htmlToText(`<pre>${"\n".repeat(500_000)}x`, BASE)).toBe("x");
  });
});

describe("character references", () => {
  it.each([
    ["numbers and names", "&lt;&#228;&#xE4;&#x1F44D;&mdash;&nbsp;&shy;x", "<ää👍— x"],
    ["rare names, and those of two characters", "&hearts;&alpha;&NotEqualTilde;", "♥α≂̸"],
    ["old names without an end", "&ampx &copy=1", "&x ©=1"],
    ["numbers of an old encoding", "&#x80;&#150;", "€–"],
    ["what is not one", "&unheard; &constructor; AT&T &", "&unheard; &constructor; AT&T &"],
    ["numbers that are no character", "&#0;&#x110000;&#xD800;", "\uFFFD\uFFFD\uFFFD"],
  ])("%s", (_, html, expected) => {
    expect(htmlToText(html, BASE)).toBe(expected);
  });

  it("in an address do not end without a semicolon", () => {
    expect(htmlToText(`<a href="?a=1&copy=2&amp;b">x</a>`, BASE)).toBe(
      "[x](https://site.test/docs/page?a=1&copy=2&b)",
    );
  });
});
