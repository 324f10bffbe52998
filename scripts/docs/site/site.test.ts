import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { plant } from "../../shared/tree.ts";
import { createSearch, MAX_HITS } from "./browser/search.mjs";
import { buildSite } from "./build.mjs";
import { highlightCode } from "./code.mjs";
import { findDeadLinks } from "./links.mjs";
import { renderMarkdown } from "./markdown.mjs";
import { readChildren, readNavigation } from "./navigation.mjs";
import { makeSearchIndex } from "./search-index.mjs";
import { serveSite } from "./serve.mjs";
import { findTarget, toOutput } from "./sources.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** What a browser loads for the script of a page, packed. */
const MAX_SCRIPT_BYTES = 15_000;
const MAX_INDEX_BYTES = 200_000;

const render = (text: string, exists: (path: string) => boolean = () => true) =>
  renderMarkdown(
    "docs/page.md",
    text,
    (path) =>
      exists(path)
        ? path.endsWith(".md") || path === ""
          ? { page: path === "" ? "docs/page.md" : `docs/${path}` }
          : { file: path }
        : { missing: path },
    () => false,
  );

describe("the site of this repository", () => {
  let files: Map<string, string>;
  let problems: string[];

  beforeAll(async () => {
    if (!existsSync(`${root}/packages/cli/dist/main.js`)) {
      throw new Error("The site uses the built highlighter: run `npm run build` first.");
    }
    ({ files, problems } = await buildSite(root));
  });

  it("has no dead link, no dead anchor and no HTML of its pages' own", () => {
    expect(problems).toEqual([]);
  });

  it("has the guide, the reference, the READMEs and the programs", () => {
    expect([...files.keys()]).toEqual(
      expect.arrayContaining([
        "index.html",
        "tools.html",
        "reference/index.html",
        "reference/ai/models.html",
        "project/index.html",
        "project/packages/ai/index.html",
        "programs/first-agent.html",
        "terminal.svg",
      ]),
    );
  });

  it("says below a program what it prints, of each process", () => {
    const captions = (name: string) => [
      ...(files.get(`programs/${name}.html`) ?? "").matchAll(/<figcaption>(.*?)<\/figcaption>/g),
    ];
    expect(captions("first-agent").map(([, text]) => text)).toEqual(["prints"]);
    expect(files.get("programs/first-agent.html")).toContain("It is 42.");
    expect(captions("approval").map(([, text]) => text)).toEqual([
      "process 1 prints",
      "process 2 prints",
    ]);
    expect(captions("long-run").map(([, text]) => text)).toEqual(["process 2 prints"]);
  });

  it("has a small script, and an index that is loaded with the first search", () => {
    const size = (name: string) => gzipSync(files.get(name) ?? "").length;
    expect(size("site.js")).toBeLessThan(MAX_SCRIPT_BYTES);
    expect(size("search-index.js")).toBeLessThan(MAX_INDEX_BYTES);
    expect(files.get("tools.html")).not.toContain("search-index.js");
  });

  it("loads nothing from elsewhere, and forbids it", () => {
    for (const [path, html] of files) {
      if (!path.endsWith(".html")) continue;
      expect(html).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
      expect(html.match(/<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?\/\//)).toBe(
        null,
      );
      expect(html.match(/<style|<script>| style="| on[a-z]+="/)).toBe(null);
    }
  });

  it("names source files, which have no address yet", () => {
    expect(files.get("project/CONTRIBUTING.html")).toContain(
      '<code class="file">packages/agent/src/loop/loop.ts</code>',
    );
    expect([...files.values()].join("")).not.toContain('href="https://git.gyre.example');
  });
});

describe("a site with mistakes", () => {
  const build = (tree: Record<string, string>) =>
    buildSite(plant({ "docs/README.md": "# Guide\n\n[A](a.md)\n", ...tree }));

  it.each([
    ["a page that is not there", "[a](no.md)", 'docs/a.md: links to "no.md", and there is no docs'],
    ["a file that is not there", "[a](../src/no.ts)", "there is no src/no.ts"],
    ["a file outside of the tree", "[a](../../../etc/passwd)", "and there is no ../"],
    ["an anchor that is not there", "[a](README.md#no)", 'links to "index.html#no"'],
    ["an anchor of the same page", "[a](#no)", 'links to "a.html#no"'],
    ["HTML", 'Text <img src="x">', "docs/a.md: HTML is not shown: <img"],
    ["a block of HTML", "<div>text</div>", "docs/a.md: HTML is not shown: <div>"],
    ["a script as an address", "[a](javascript:alert(1))", "is no address of a page"],
  ])("reports %s", async (_, text, problem) => {
    const { problems } = await build({ "docs/a.md": `# A\n\n${text}\n` });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
  });

  it("reports a page without a title, and two files of one name", async () => {
    const { problems } = await build({
      "docs/a.md": "Text\n\n[program](programs/b.ts), [page](programs/b.md)\n",
      "docs/programs/b.ts": "",
      "docs/programs/b.md": "# B\n",
    });
    expect(problems).toEqual([
      "docs/a.md: there is no heading of the first level",
      "docs/programs/b.ts and another file would both be programs/b.html",
    ]);
  });

  it("reports a page that no other links to", async () => {
    const { problems } = await build({ "docs/a.md": "# A\n", "docs/b.md": "# B\n\n[me](b.md)\n" });
    expect(problems).toEqual(["docs/b.md: no page links to it, add it to docs/README.md"]);
  });

  it("reports an anchor that a page has twice", () => {
    const files = new Map([["a.html", '<p id="x"></p><p id="x"></p><a href="b.html">b</a>']]);
    expect(findDeadLinks(files)).toEqual([
      'a.html has the anchor "x" twice',
      'a.html links to "b.html", and there is no such file',
    ]);
  });
});

describe("links", () => {
  it("lead to pages, with their anchors, relative to the page", () => {
    expect(render("# A\n\n[b](sub/b.md#there)").html).toContain('<a href="sub/b.html#there">b</a>');
    expect(render("# A\n\n[web](https://a.test/?x=1&y=2)").html).toContain(
      'href="https://a.test/?x=1&amp;y=2"',
    );
  });

  it("to source files are their path, or lead to the repository where it has an address", () => {
    const html = render("# A\n\n[b.ts](src/b.ts), [how](src/b.ts)").html;
    expect(html).toContain(
      '<code class="file">src/b.ts</code>, how (<code class="file">src/b.ts</code>)',
    );
    const addresses = { repository: "https://a.test/gyre", homepage: "", keywords: {} };
    expect(findTarget(root, "docs/tools.md", "../package.json", undefined)).toEqual({
      file: "package.json",
    });
    expect(findTarget(root, "docs/tools.md", "../package.json", addresses)).toEqual({
      address: "https://a.test/gyre/blob/main/package.json",
    });
  });

  it("have one place in the site for each file", () => {
    expect(
      ["docs/README.md", "docs/a/README.md", "docs/b.md", "README.md", "packages/ai/README.md"].map(
        toOutput,
      ),
    ).toEqual([
      "index.html",
      "a/index.html",
      "b.html",
      "project/index.html",
      "project/packages/ai/index.html",
    ]);
  });
});

describe("Markdown", () => {
  it("has an anchor at each heading, a second one of the same text as well", () => {
    const { headings } = render("# A\n\n## The `b` of C\n\n### Twice\n\n### Twice\n");
    expect(headings.map(({ anchor }) => anchor)).toEqual(["a", "the-b-of-c", "twice", "twice-1"]);
  });

  it("says what a program prints, and keeps other text apart", () => {
    const printed = '<figure class="output"><figcaption>prints</figcaption>';
    expect(render("# A\n\n```ts\nrun();\n```\n\n```text\nran\n```\n").html).toContain(printed);
    expect(render("# A\n\n```sh run\nls\n```\n\n```text\nran\n```\n").html).toContain(printed);
    expect(render("# A\n\n```ts no-run x\nrun();\n```\n\n```text\na\n```\n").html).not.toContain(
      printed,
    );
    expect(render("# A\n\n```text\nalone\n```\n").html).not.toContain(printed);
  });

  it("drops comments, which are for the tests", () => {
    expect(render("# A\n\n<!-- answers: [] -->\n\nText").html).not.toContain("answers");
  });

  it("lets no tag of a page through, whatever it writes", () => {
    const piece = fc.constantFrom(
      ..."<script>,</script>,<b onclick=x>,\",',`,```,\n,\n\n,[,](,),![,<!--,-->,|,&lt;,&#60;,# ,> ,- ,a,*,javascript:,x.md,<https://a>".split(
        ",",
      ),
    );
    const allowed =
      /^<\/?(?:h[1-6]|p|a|em|strong|del|code|pre|span|div|figure|figcaption|ul|ol|li|blockquote|hr|br|img|input|table|thead|tbody|tr|th|td)(?: [a-z-]+="[^"<>]*"| disabled=""| checked="")*\/?>$/;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const { html } = render(`# A\n\n${pieces.join("")}`);
        for (const [tag] of html.matchAll(/<[^>]*>?/g)) expect(tag).toMatch(allowed);
        expect(html).not.toMatch(/(?:href|src)="\s*javascript:/i);
      }),
      { numRuns: 500 },
    );
  });

  it("colors code without changing it", () => {
    expect(highlightCode("const a = 1; // <b>", "ts")).toBe(
      '<span class="keyword">const</span> a = <span class="number">1</span>; <span class="comment">// &lt;b&gt;</span>',
    );
    const unescape = (html: string) =>
      html
        .replaceAll(/<[^>]*>/g, "")
        .replaceAll("&lt;", "<")
        .replaceAll("&gt;", ">")
        .replaceAll("&quot;", '"')
        .replaceAll("&amp;", "&");
    fc.assert(
      fc.property(fc.string(), fc.constantFrom("ts", "sh", "json", "none"), (code, language) => {
        expect(unescape(highlightCode(code, language))).toBe(code);
      }),
    );
  });
});

describe("the navigation", () => {
  it("is the order of the guide's first page", () => {
    const text =
      "# Guide\n\n## Start\n\n- [One](one.md): words\n- **Two**: [a](two.md), [b](two.md#b)\n- Add [c](../C.md)\n";
    expect(readNavigation(text, "docs/README.md")).toEqual([
      {
        title: "Start",
        items: [
          { entries: [{ text: "One", source: "docs/one.md" }] },
          {
            label: "Two",
            entries: [
              { text: "a", source: "docs/two.md" },
              { text: "b", source: "docs/two.md", anchor: "b" },
            ],
          },
          { label: "Add", entries: [{ text: "c", source: "C.md" }] },
        ],
      },
    ]);
  });

  it("has the pages of a folder below the page that lists them", () => {
    const text =
      "# D\n\n- [a](a.md), [again](a.md)\n\n| x |\n|---|\n| [b](b.md) |\n\n[up](../c.md)\n";
    expect(readChildren(text, "docs/d/README.md")).toEqual([
      { text: "a", source: "docs/d/a.md" },
      { text: "b", source: "docs/d/b.md" },
    ]);
  });
});

describe("the search", () => {
  const filler = Array.from({ length: 20 }, (_, at) => `## Part ${at}\n\nfiller${at}\n`).join("\n");
  const pages = [
    renderMarkdown(
      "docs/limits.md",
      `# Limits\n\nA run ends.\n\n## Retry\n\nWaits with backoff.\n\n${filler}`,
      () => ({ missing: "" }),
      () => false,
    ),
    renderMarkdown(
      "docs/tools.md",
      "# Tools\n\nA retry is possible.\n\n```ts\ndefineTool();\n```\n\n## Résumé of limits\n\nText.\n",
      () => ({ missing: "" }),
      () => false,
    ),
  ];
  const search = createSearch(makeSearchIndex(pages));
  const find = (query: string) => search(query).map(({ href }) => href);

  it("has a word in a title before one in a text", () => {
    expect(find("retry")).toEqual(["limits.html#retry", "tools.html"]);
    expect(find("limits")[0]).toBe("limits.html");
  });

  it("finds beginnings, parts of names, and words without their accents", () => {
    expect(find("retr")).toEqual(["limits.html#retry", "tools.html"]);
    expect(find("tool definetool")[0]).toBe("tools.html");
    expect(find("resume")).toEqual(["tools.html#résumé-of-limits"].map(encodeURI));
  });

  it("wants every word, of the section or of its page's title", () => {
    expect(find("limits backoff")).toEqual(["limits.html#retry"]);
    expect(find("backoff definetool")).toEqual([]);
    expect(find("  ")).toEqual([]);
    expect(find("constructor")).toEqual([]);
  });

  it("shows so many hits at most", () => {
    expect(find("part")).toHaveLength(MAX_HITS);
  });
});

describe("the server", () => {
  it("serves the files below a path, and nothing else", async () => {
    const files = new Map([
      ["index.html", "first"],
      ["a/b.html", "second"],
    ]);
    const { address, close } = await serveSite(files, { base: "/x/" });
    const get = async (path: string) => {
      const response = await fetch(new URL(path, address));
      return [response.status, await response.text()];
    };
    try {
      expect(await get("/x/")).toEqual([200, "first"]);
      expect(await get("/x/a/b.html")).toEqual([200, "second"]);
      expect((await get("/"))[0]).toBe(404);
      expect((await get("/x/%"))[0]).toBe(404);
      expect((await get("/x/%2e%2e%2fpackage.json"))[0]).toBe(404);
    } finally {
      close();
    }
  });
});
