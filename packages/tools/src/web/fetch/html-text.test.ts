import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEntities, htmlToText } from "./html-text.ts";

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
  ])("takes time in proportion to the page: %s", (unit) => {
    // Half a million characters: were it quadratic, this would not come to an end.
    const html = unit.repeat(500_000 / unit.length);
    expect(htmlToText(html, BASE).length).toBeLessThanOrEqual(html.length);
    expect(htmlToText(`<pre>${"\n".repeat(500_000)}x`, BASE)).toBe("x");
  });
});

describe("decodeEntities", () => {
  it("knows numbers and the usual names", () => {
    expect(decodeEntities("&lt;&#228;&#xE4;&#x1F44D;&mdash;&nbsp;&shy;")).toBe("<ää👍— ");
  });

  it("leaves alone what it does not know", () => {
    expect(decodeEntities("&unheard; &copy=1 &constructor; AT&T &")).toBe(
      "&unheard; &copy=1 &constructor; AT&T &",
    );
  });

  it("makes nothing of numbers that are no character", () => {
    expect(decodeEntities("&#0;&#x110000;")).toBe("\uFFFD\uFFFD");
  });
});
