import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentMessage } from "@gyre/agent";
import type { AssistantContent, AssistantMessage } from "@gyre/ai";
import { createSession, type Session } from "@gyre/sessions";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeExport } from "../../../slash-commands/export.ts";
import { sessionHtml } from "./html.ts";
import { EXPORT_STYLE } from "./style.ts";
import { markdownHtml } from "./markdown-html.ts";
import { OLD_OUTPUT } from "../../../testing/old-prompt.ts";

const PIXEL = "iVBORw0KGgo=";
const EVIL = `"><script>alert('1')</script><img src=x onerror=alert(2)>\u202e`;

let folder = "";
let session: Session;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-export-"));
  session = await createSession(join(folder, "s.jsonl"), { cwd: `/src/${EVIL}`, id: `id${EVIL}` });
});
afterEach(async () => {
  await session.close();
  await rm(folder, { recursive: true, force: true });
});

async function append(...messages: readonly AgentMessage[]): Promise<void> {
  for (const message of messages) await session.append({ type: "message", message });
}

function answer(
  content: readonly AssistantContent[],
  more: Partial<AssistantMessage> = {},
): AssistantMessage {
  return {
    role: "assistant",
    content: [...content],
    api: "x",
    provider: "service",
    model: "model",
    usage: { input: 1200, output: 30, cost: { total: 0.5 } },
    stopReason: "stop",
    timestamp: 0,
    ...more,
  };
}

const RESULT = {
  role: "toolResult" as const,
  toolCallId: "1",
  toolName: "shell",
  content: [],
  isError: true,
  timestamp: 0,
};

async function page(): Promise<string> {
  let html = "";
  for await (const piece of sessionHtml(session)) html += piece;
  return html;
}

describe("keys", () => {
  const KEY = "sk-ant-api03-abcdefghijklmnop";
  const SIGNED = "https://files.example/a.pdf?X-Amz-Signature=0123456789abcdef0123456789abcdef";

  it("are redacted wherever they stand, and pictures stay whole", async () => {
    // Larger than what stays in the session file.
    const picture = Buffer.alloc(300_000, `${KEY} `).toString("base64");
    const image = { type: "image" as const, data: picture, mimeType: "image/png" };
    await session.append({ type: "title", title: `About ${KEY}` });
    await append(
      {
        role: "user",
        content: [
          { type: "text", text: `Use ${KEY}.` },
          image,
          {
            type: "file",
            mediaType: "application/pdf",
            name: `${KEY}.pdf`,
            source: { type: "url", url: SIGNED },
          },
          {
            type: "file",
            mediaType: "text/plain",
            name: `token=${KEY}.txt`,
            source: {
              type: "base64",
              data: Buffer.from(KEY.repeat(12_000)).toString("base64"),
            },
          },
        ],
        timestamp: 0,
      },
      answer(
        [
          { type: "thinking", thinking: `It is ${KEY}.` },
          {
            type: "serviceTool",
            id: "s1",
            name: "web_search",
            input: { query: KEY },
            output: [{ type: "web_search_result", url: SIGNED, title: KEY }],
            raw: { deep: [{ authorization: `Bearer ${KEY}` }] },
          },
          {
            type: "serviceTool",
            id: "s2",
            name: "code_execution",
            output: { stdout: `ANTHROPIC_API_KEY=${KEY}`, return_code: 0 },
          },
          {
            type: "text",
            text: `So: ${KEY}`,
            citations: [{ url: SIGNED, title: `A page with ${KEY}`, text: KEY }],
          },
          { type: "toolCall", id: "1", name: "shell", arguments: { command: `curl -H ${KEY}` } },
        ],
        { errorMessage: `It was refused: ${KEY}` },
      ),
      { ...RESULT, content: [{ type: "text", text: KEY }], details: { diff: `+${KEY}` } },
      {
        ...{ role: "userCommand", command: `echo ${KEY}`, output: KEY, exitCode: 0, timestamp: 0 },
      } as AgentMessage,
    );
    const html = await page();
    expect(html).not.toContain(KEY);
    expect(html).not.toContain("0123456789abcdef0123456789abcdef");
    expect(html.match(/\[redacted\]/g)?.length).toBeGreaterThan(10);
    expect(html).toContain(`base64,${picture}`);
    // The session itself keeps them: a model may need them.
    const [id = 0] = session.findIds("title");
    expect(await session.read(id)).toMatchObject({ title: `About ${KEY}` });
  });

  it("are none of what only looks a little like one", async () => {
    const text = "The task-list has sk- in it, and token counts: 12.";
    await append(answer([{ type: "text", text }]));
    expect(await page()).toContain(text);
  });
});

/** The tags of a page, each as it is written. What is text has no such sign. */
function findTags(html: string): string[] {
  return html.match(/<[^>]*>?/g) ?? [];
}

/** All that we ever write. */
const OURS = [
  /^<!doctype html>$/,
  /^<\/?(?:html|head|title|style|body|header|footer|h[1-6]|p|section|details|summary|b|pre|code|span)>$/,
  /^<\/?(?:strong|em|del|blockquote|ul|ol|li|table|thead|tbody|tr|th|td|br|hr)>$/,
  /^<html lang="en">$/,
  /^<meta (?:charset="utf-8"|(?:name|http-equiv)="[\w-]+" content="[^"<>]*")>$/,
  /^<(?:section|p|span|pre|th|td) class="[a-z]+">$/,
  /^<details open>$/,
  /^<ol start="\d+">$/,
  /^<img alt="" src="data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+">$/,
  /^<a href="(?:https?:\/\/|mailto:)[^"<>]*" rel="noopener noreferrer">$/,
  /^<\/a>$/,
];

function foreignTags(html: string): string[] {
  return findTags(html).filter((tag) => !OURS.some((ours) => ours.test(tag)));
}

describe("a page", () => {
  it("has prompts, answers, thoughts, calls with results and diffs, pictures, and what it cost", async () => {
    await append(
      {
        role: "user",
        content: [
          { type: "text", text: "Fix it" },
          { type: "image", data: PIXEL, mimeType: "image/png" },
        ],
        timestamp: 0,
      },
      answer([
        { type: "thinking", thinking: "Hmm." },
        { type: "text", text: "I **will**." },
        { type: "toolCall", id: "1", name: "shell", arguments: { command: "npm test" } },
        { type: "toolCall", id: "2", name: "edit", arguments: { path: "a.ts" } },
      ]),
      {
        role: "toolResult",
        toolCallId: "1",
        toolName: "shell",
        content: [{ type: "text", text: "1 failing" }],
        isError: true,
        timestamp: 0,
      },
      {
        role: "toolResult",
        toolCallId: "2",
        toolName: "edit",
        content: [{ type: "text", text: "ok" }],
        details: { diff: "@@ -1 +1 @@\n-old\n+new" },
        isError: false,
        timestamp: 0,
      },
    );
    await session.append({ type: "title", title: "The <parser>" });
    const html = await page();
    expect(html).toContain("<title>The &lt;parser&gt;</title>");
    expect(html).toContain(`<img alt="" src="data:image/png;base64,${PIXEL}">`);
    expect(html).toContain("<details><summary>Thinking</summary>");
    expect(html).toContain("I <strong>will</strong>.");
    expect(html).toContain(
      `<summary><b>shell</b> npm test <span class="failed">failed</span></summary><pre>command: npm test</pre><pre>1 failing</pre>`,
    );
    expect(html).toContain(
      `<details open><summary><b>edit</b> a.ts</summary><pre>@@ -1 +1 @@\n<span class="removed">-old</span>\n<span class="added">+new</span></pre>`,
    );
    expect(html).toContain("<footer><p>Tokens: 1,200 in · 30 out · $0.50</p></footer>");
    expect(html).toContain("prefers-color-scheme: dark");
    expect(foreignTags(html)).toEqual([]);
  });

  it("counts all that was paid for: other branches, and what is no answer", async () => {
    await append({ role: "user", content: "One", timestamp: 0 }, answer([]));
    const { leaf } = session;
    await append({ role: "user", content: "Two", timestamp: 0 }, answer([]));
    const usage = { input: 100, output: 10, cost: { total: 0.25 } };
    const data = { purpose: "summaries", model: "scripted/one", usage };
    await session.append({ type: "custom", kind: "usage", data });
    await session.branch(leaf);
    const html = await page();
    expect(html).not.toContain("Two");
    expect(html).toContain("<footer><p>Tokens: 2,500 in · 70 out · $1.25</p></footer>");
  });

  it("colors what a diff changes, and no name of a file", async () => {
    const diff = "--- a.sql\n+++ a.sql\n@@ -1,2 +1,1 @@\n--- gone\n+++ here\n-x\n";
    await append(answer([{ type: "toolCall", id: "1", name: "edit", arguments: {} }]), {
      ...RESULT,
      toolCallId: "1",
      toolName: "edit",
      details: { diff },
      isError: false,
    });
    expect(await page()).toContain(
      `<pre>--- a.sql\n+++ a.sql\n@@ -1,2 +1,1 @@\n<span class="removed">--- gone</span>\n<span class="added">+++ here</span>\n<span class="removed">-x</span>\n</pre>`,
    );
  });

  it("says of a call that was denied that it was, and why", async () => {
    const content = [{ type: "text" as const, text: "Denied: not now. Ask later." }];
    await append(answer([{ type: "toolCall", id: "1", name: "shell", arguments: {} }]), {
      ...RESULT,
      content,
      outcome: "denied",
      reason: "not now. Ask later.",
    });
    const html = await page();
    expect(html).toContain(`<span class="refused">denied: not now.</span>`);
    expect(html).not.toContain(">failed<");
  });

  it("names the commands of the user, without what they printed", async () => {
    await append({ role: "user", content: `Why?\n\n${OLD_OUTPUT}`, timestamp: 0 });
    expect(await page()).toContain(
      `<pre class="text">Why?</pre><p class="with">with the output of \`npm test\`</p></section>`,
    );
  });

  it("has a row for each file, and pictures that are in the store of the session", async () => {
    const picture = Buffer.alloc(300_000, 7).toString("base64");
    const source = { type: "url", url: "https://example.org/a.pdf" } as const;
    await append({
      role: "user",
      content: [
        { type: "file", mediaType: "application/pdf", name: "a <b>.pdf", source },
        { type: "image", mimeType: "image/png", data: picture },
      ],
      timestamp: 0,
    });
    const html = await page();
    expect(html).toContain('<p class="file">a &lt;b&gt;.pdf, application/pdf</p>');
    expect(html).toContain(`<img alt="" src="data:image/png;base64,${picture}">`);
    expect(foreignTags(html)).toEqual([]);
  });

  it("has no tag that is not ours, whatever was said in any field", async () => {
    await session.append({ type: "title", title: EVIL });
    await append(
      {
        role: "user",
        content: [
          { type: "text", text: EVIL },
          { type: "image", data: EVIL, mimeType: "image/png" },
          { type: "image", data: PIXEL, mimeType: EVIL },
          { type: "image", data: PIXEL, mimeType: "image/svg+xml" },
          {
            type: "file",
            mediaType: EVIL,
            name: EVIL,
            source: { type: "stored", sha256: EVIL, size: 1 },
          },
          { type: "file", mediaType: `image/${EVIL}`, source: { type: "base64", data: PIXEL } },
        ],
        timestamp: 0,
      },
      answer(
        [
          { type: "thinking", thinking: EVIL },
          { type: "text", text: `${EVIL}\n\n\`\`\`${EVIL}\n${EVIL}\n\`\`\`\n[a](javascript:x)` },
          { type: "serviceTool", id: "9", name: EVIL, input: { [EVIL]: EVIL }, output: EVIL },
          { type: "toolCall", id: EVIL, name: EVIL, arguments: { [EVIL]: EVIL, command: EVIL } },
          { type: "toolCall", id: "2", name: EVIL, arguments: {}, rawArguments: EVIL },
          { type: "toolCall", id: "3", name: EVIL, arguments: {} },
        ],
        { provider: EVIL, model: EVIL, errorMessage: EVIL },
      ),
      ...[EVIL, "3", "none"].map((toolCallId) => ({
        role: "toolResult" as const,
        toolCallId,
        toolName: EVIL,
        content: [{ type: "text" as const, text: EVIL }],
        details: toolCallId === "3" ? { files: [{ diff: `+${EVIL}\n-${EVIL}` }] } : {},
        isError: true,
        timestamp: 0,
      })),
    );
    await session.append({
      type: "compaction",
      first: 1,
      until: null,
      message: { role: "user", content: EVIL, timestamp: 0 },
    });
    const html = await page();
    expect(foreignTags(html)).toEqual([]);
    expect(html).not.toContain("\u202e");
    expect(html).not.toMatch(/javascript:/);
  });

  it("lets nothing be loaded", async () => {
    expect(await page()).toContain(
      `content="default-src 'none'; img-src data:; style-src 'unsafe-inline'"`,
    );
  });

  it("shows the branch that is talked in", async () => {
    await append({ role: "user", content: "left behind", timestamp: 0 });
    await session.branch(null);
    await append({ role: "user", content: "gone on", timestamp: 0 });
    const html = await page();
    expect(html).toContain("gone on");
    expect(html).not.toContain("left behind");
  });
});

describe("Markdown", () => {
  it("becomes paragraphs, headings, lists, tables, code and quotes", () => {
    const text = "# A\n\n1. b\n2. c\n\n- [x] d\n\n|e|f|\n|-|-|\n|g|h|\n\n> i\n\n```\nj<k\n```";
    expect(markdownHtml(text)).toBe(
      `<h3>A</h3><ol><li>b</li><li>c</li></ol><ul><li>☑ d</li></ul><table><thead><tr><th>e</th><th>f</th></tr></thead><tbody><tr><td>g</td><td>h</td></tr></tbody></table><blockquote><p>i</p></blockquote><pre class="code"><code>j&lt;k</code></pre>`,
    );
  });

  it("keeps the sides of a table's columns", () => {
    const html = markdownHtml("|a|b|c|\n|:-|-:|:-:|\n|1|2|3|");
    expect(html).toContain(`<th>a</th><th class="right">b</th><th class="center">c</th>`);
    expect(html).toContain(`<td>1</td><td class="right">2</td><td class="center">3</td>`);
  });

  it("has colors in code of a known language", () => {
    expect(markdownHtml("```ts\nconst a = '<';\n// b\n```")).toBe(
      `<pre class="code"><code><span class="keyword">const</span> a = <span class="string">&#39;&lt;&#39;</span>;\n<span class="comment">// b</span></code></pre>`,
    );
  });

  it("has headings of different sizes", () => {
    const sizes = [3, 4, 5, 6].map(
      (level) => new RegExp(`^h${level} \\{ font-size: ([\\d.]+)rem`, "m").exec(EXPORT_STYLE)?.[1],
    );
    expect(new Set(sizes).size).toBe(4);
    expect(sizes).not.toContain(undefined);
  });

  it("links to the web and to addresses, and to nothing else", () => {
    expect(markdownHtml("[a](https://x.test/?b=1&c=%22)")).toBe(
      `<p><a href="https://x.test/?b=1&amp;c=%22" rel="noopener noreferrer">a</a></p>`,
    );
    for (const href of ["javascript:x", "data:text/html,x", "file:///etc", "&#106;avascript:x"]) {
      expect(markdownHtml(`[a](${href})`)).toBe("<p>a</p>");
    }
    expect(markdownHtml("![pic](https://x.test/p.png)")).toContain(
      `<a href="https://x.test/p.png" rel="noopener noreferrer">pic</a>`,
    );
  });

  it("shows what stands for a sign as that sign, once", () => {
    expect(markdownHtml("a &amp; b &lt;i&gt; < c")).toBe("<p>a &amp; b &lt;i&gt; &lt; c</p>");
  });

  it("shows a text that is nested without end as it is written", () => {
    const text = "> ".repeat(20_000);
    expect(foreignTags(markdownHtml(text))).toEqual([]);
  });

  it("has no tag that is not ours, whatever it is made of", () => {
    const pieces = fc.constantFrom(
      "<script>",
      "</div>",
      "<a href='x'",
      "<!--",
      "-->",
      "&lt;",
      "&#60;",
      '"',
      "'",
      "`",
      "```\n",
      "[",
      "](",
      ")",
      "![",
      "javascript:",
      "https://a.b/",
      '<https://a.b/">',
      "* ",
      "> ",
      "|",
      "\n",
      "\n\n",
      "# ",
      "- ",
      "<![CDATA[",
      "onload=",
      "\\",
      "_",
      "**",
      "x",
      " ",
      "mailto:",
      "\u0000",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        expect(foreignTags(markdownHtml(parts.join("")))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the file", () => {
  it("is written for the user alone, and replaced by a newer page of the same session", async () => {
    const path = join(folder, "out.html");
    await writeExport(session, path);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await append({ role: "user", content: "something new", timestamp: 0 });
    await writeExport(session, path);
    expect(await readFile(path, "utf8")).toContain("something new");
  });

  it("replaces nothing else", async () => {
    const path = join(folder, "notes.html");
    await writeFile(path, "<p>mine</p>");
    await expect(writeExport(session, path)).rejects.toThrow("is there already");
    const other = await createSession(join(folder, "o.jsonl"), { cwd: folder });
    await writeExport(other, join(folder, "other.html"));
    await other.close();
    await expect(writeExport(session, join(folder, "other.html"))).rejects.toThrow(
      "no export of this session",
    );
    expect(await readFile(path, "utf8")).toBe("<p>mine</p>");
  });

  it("says so where it cannot be written, and leaves nothing behind", async () => {
    await expect(writeExport(session, join(folder, "no", "x.html"))).rejects.toThrow(
      "cannot be written",
    );
  });
});
