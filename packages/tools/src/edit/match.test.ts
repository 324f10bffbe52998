import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EditError } from "./error.ts";
import { type Edit, EditedText, findAll, findMatch, type Tolerance } from "./match.ts";
import { editedFile, planEdits } from "./plan.ts";

interface Made {
  content: string;
  tolerance: Tolerance | undefined;
}

function make(content: string, oldText: string, newText: string): Made {
  const file = editedFile("a.ts", content, content);
  const plan = planEdits(file, [{ oldText, newText }]);
  return { content: plan.content, tolerance: plan.edits[0]?.tolerance };
}

function catchFault(
  content: string,
  edits: Edit | Edit[],
  seen: string | undefined = content,
): EditError {
  try {
    planEdits(editedFile("a.ts", content, seen), [edits].flat());
  } catch (error) {
    if (error instanceof EditError) return error;
    throw error;
  }
  throw new Error("The edit was made.");
}

type Row = [what: string, file: string, old: string, next: string, result: string];

describe("exact", () => {
  const rows: Row[] = [
    ["within a line", "let a = 1;\n", "a = 1", "b = 2", "let b = 2;\n"],
    ["from within a line on", "  f(a,\n    b);\n", "f(a,\n    b)", "f(b)", "  f(b);\n"],
    ["all of a file", "a", "a", "", ""],
    ["white space alone", "a\n\n\nb\n", "\n\n\n", "\n\n", "a\n\nb\n"],
    ["line ends themselves", "a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"],
    ["a mark that goes", "\uFEFFa\n", "\uFEFFa", "a", "a\n"],
    ["behind a mark", "\uFEFFa\nb\n", "a\nb", "c", "\uFEFFc\n"],
    ["dollar signs", "a\n", "a", "$&$1", "$&$1\n"],
  ];
  test.each(rows)("%s", (_what, file, old, next, result) => {
    expect(make(file, old, next)).toEqual({ content: result, tolerance: "exact" });
  });

  test("a line that is put into a file with CRLF ends as its neighbors do", () => {
    expect(make("a\r\nb\r\n", "a", "a\nx").content).toBe("a\r\nx\r\nb\r\n");
    expect(make("a\nb\n", "a", "a\r\nx").content).toBe("a\nx\nb\n");
  });
});

describe("line ends and byte order mark", () => {
  const rows: Row[] = [
    ["CRLF file", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\r\nc\r\n"],
    ["LF file", "a\nb\nc\n", "a\r\nb\r\n", "x\r\nb\r\n", "x\nb\nc\n"],
    ["a line end first", "a\r\nb\r\nc\r\n", "\nb\n", "\nx\n", "a\r\nx\r\nc\r\n"],
    [
      "mixed: what stays, stays",
      "a\r\nb\nc\r\nd\n",
      "a\r\nb\r\nc\n",
      "a\r\nb\r\nx\r\nc\n",
      "a\r\nb\nx\nc\r\nd\n",
    ],
    ["a file without its last line end", "a\nb", "b\n", "c\nd\n", "a\nc\nd"],
    ["a mark that the file has not", "a\nb\n", "\uFEFFa\n", "\uFEFFx\n", "x\nb\n"],
  ];
  test.each(rows)("%s", (_what, file, old, next, result) => {
    expect(make(file, old, next).content).toBe(result);
  });
});

describe("trailing white space", () => {
  const rows: Row[] = [
    ["in the old text", "a\nb\nc\n", "a  \nb\t\n", "a  \nx\n", "a\nx\nc\n"],
    ["in the file", "a  \nb\t\nc\n", "a\nb\n", "a\nx\n", "a  \nx\nc\n"],
    ["a line that stays keeps it", "f(a) \ng(b)\n", "f(a)\ng(b)", "f(a)\nh(b)", "f(a) \nh(b)\n"],
    ["on every line: taken off the new ones", "a\nb\n", "a \nb \n", "a \nc \n", "a\nc\n"],
    ["at the very end", "f(a);\nf(ab);\n", "f(a);  ", "g();", "g();\nf(ab);\n"],
  ];
  test.each(rows)("%s", (_what, file, old, next, result) => {
    expect(make(file, old, next)).toEqual({ content: result, tolerance: "trailing white space" });
  });

  test("the indent of a line that goes on is not trailing", () => {
    expect(catchFault("foo\n\tbar\n", { oldText: "foo\n    ", newText: "baz\n    " }).code).toBe(
      "missing",
    );
  });
});

describe("punctuation", () => {
  const rows: Row[] = [
    ["curly quotes in the file", "say(“a”, 1)\n", 'say("a", 1)', 'say("a", 2)', "say(“a”, 2)\n"],
    ["curly quotes in the old text", 'say("a")\n', "say(“a”)", "say(“b”)", 'say("b")\n'],
    [
      "and new lines",
      "say('a')\nx\n",
      "say(‘a’)\n",
      "say(‘a’)\nsay(‘b’)\n",
      "say('a')\nsay('b')\nx\n",
    ],
    ["dashes", "a — b\nc\n", "a - b\nc", "a - b\nd", "a — b\nd\n"],
    ["ellipsis", "wait… now\n", "wait... now", "wait... then", "wait… then\n"],
    ["ellipsis typed", "wait... now\n", "wait… now", "wait… then", "wait... then\n"],
    ["no-break space", "a\u00a0b c\n", "a b c", "a b d", "a\u00a0b d\n"],
  ];
  test.each(rows)("%s", (_what, file, old, next, result) => {
    expect(make(file, old, next)).toEqual({ content: result, tolerance: "punctuation" });
  });

  test("half of an ellipsis is not found", () => {
    expect(catchFault("a…b\n", { oldText: "..b", newText: "x" }).code).toBe("missing");
  });
});

describe("line numbers", () => {
  const file = "a\n  b\n\nc\n";
  const rows: [what: string, old: string, next: string, result: string][] = [
    ["tab", "1\ta\n2\t  b\n", "1\ta\n2\t  x\n", "a\n  x\n\nc\n"],
    ["padded, colon", "   1: a\n   2:   b", "   1: a\n   2:   x", "a\n  x\n\nc\n"],
    ["bar", "2|  b\n3|\n4|c", "2|  b\n3|\n4|x", "a\n  b\n\nx\n"],
    ["L", "L1: a\nL2:   b", "L1: x\nL2:   b", "x\n  b\n\nc\n"],
    ["L without a space", "L1:a\nL2:  b", "L1:x\nL2:  b", "x\n  b\n\nc\n"],
    ["an empty line without", "2\t  b\n\n4\tc", "2\t  b\n\n4\tx", "a\n  b\n\nx\n"],
    ["an empty line of a number alone", "2\t  b\n3\n4\tc", "2\t  b\n3\n4\tx", "a\n  b\n\nx\n"],
    ["in the old text only", "1\ta\n2\t  b", "a\n  x", "a\n  x\n\nc\n"],
    ["new lines without", "1\ta\n2\t  b", "1\ta\nnew\n2\t  b", "a\nnew\n  b\n\nc\n"],
  ];
  test.each(rows)("%s", (_what, old, next, result) => {
    expect(make(file, old, next)).toEqual({ content: result, tolerance: "line numbers" });
  });

  test("numbers that do not count up are text", () => {
    expect(catchFault(file, { oldText: "1\ta\n3\t  b", newText: "x" }).code).toBe("missing");
  });

  test("numbers in the new text that may be text are not guessed at", () => {
    const edit = { oldText: "1\ta\n2\t  b", newText: "70\ta\n9\tb" };
    expect(catchFault(file, edit).code).toBe("unclear");
  });

  test("a file that has such numbers itself is edited as it is", () => {
    expect(make("1: a\n2: b\n", "1: a\n2: b", "1: x\n2: b")).toEqual({
      content: "1: x\n2: b\n",
      tolerance: "exact",
    });
  });
});

describe("indentation", () => {
  const tabs = "f() {\n\tif (a) {\n\t\tb();\n\t}\n}\n";

  describe("in a file with tabs that has spaces in a template literal", () => {
    const file = "\ta = `\n  text\n`;\n\tb();\n";
    const old = "  a = `\n  text\n`;\n  b();\n";

    test.each([
      [
        "a line of the literal",
        "  a = `\n  text 2\n`;\n  b();\n",
        "\ta = `\n  text 2\n`;\n\tb();\n",
      ],
      ["a line outside of it", "  a = `\n  text\n`;\n  c();\n", "\ta = `\n  text\n`;\n\tc();\n"],
    ])("keeps the indentation of %s", (_, next, result) => {
      expect(make(file, old, next)).toEqual({ content: result, tolerance: "indentation" });
    });

    test("does not guess that of a new line", () => {
      const newText = "  a = `\n  text\n  more\n`;\n  b();\n";
      expect(catchFault(file, { oldText: old, newText }).code).toBe("unclear");
    });
  });
  const rows: Row[] = [
    [
      "dropped",
      tabs,
      "if (a) {\n\tb();\n}\n",
      "if (a) {\n\tif (c) {\n\t\tb();\n\t}\n}\n",
      "f() {\n\tif (a) {\n\t\tif (c) {\n\t\t\tb();\n\t\t}\n\t}\n}\n",
    ],
    ["added", "a\n  b\n", "    a\n      b\n", "    a\n      c\n", "a\n  c\n"],
    [
      "tabs as 2 spaces",
      tabs,
      "  if (a) {\n    b();\n",
      "  if (a) {\n    c();\n      d\n",
      "f() {\n\tif (a) {\n\t\tc();\n\t\t\td\n\t}\n}\n",
    ],
    [
      "tabs as 4 spaces",
      tabs,
      "    if (a) {\n        b();\n",
      "    if (a) {\n        c();\n",
      "f() {\n\tif (a) {\n\t\tc();\n\t}\n}\n",
    ],
    [
      "spaces as tabs",
      "x {\n    a\n        b\n}\n",
      "\ta\n\t\tb\n",
      "\ta\n\t\tc\n\t\t\td\n",
      "x {\n    a\n        c\n            d\n}\n",
    ],
    [
      "tabs as spaces and dropped",
      tabs,
      "if (a) {\n    b();\n}\n",
      "if (a) {\n    c();\n}\n",
      "f() {\n\tif (a) {\n\t\tc();\n\t}\n}\n",
    ],
    ["blank lines are as they are", "\ta\n\n\tb\n", "a\n\nb\n", "a\n\nc\n", "\ta\n\n\tc\n"],
  ];
  test.each(rows)("%s", (_what, file, old, next, result) => {
    expect(make(file, old, next)).toEqual({ content: result, tolerance: "indentation" });
  });

  test("lines that stay keep their bytes, also where they are aligned in their own way", () => {
    const file = "\tf(a,\n\t      b); \n\tg();\n";
    const made = make(file, "  f(a,\n        b);\n  g();\n", "  f(a,\n        b);\n  h();\n");
    expect(made.content).toBe("\tf(a,\n\t      b); \n\th();\n");
  });

  const refused: [what: string, file: string, old: string, next: string, code: string][] = [
    ["not the same on all lines", "  a\n    b\n", "a\nb\n", "a\nc\n", "missing"],
    ["two places", "  a\n  b\nx\n    a\n    b\n", "a\nb\n", "a\nc\n", "ambiguous"],
    ["a new line that is further out", "a\n  b\n", "    a\n      b\n", "  a\n", "unclear"],
    ["tabs and spaces together", "\t\ta\n\t\tb\n", "a\nb\n", "a\n    b2\n", "unclear"],
    ["an unknown width", "\t\ta\n\t\tb\n", "  a\n  b\n", "  a\n    c\n", "unclear"],
  ];
  test.each(refused)("refused: %s", (_what, file, oldText, newText, code) => {
    expect(catchFault(file, { oldText, newText }).code).toBe(code);
  });
});

describe("refused", () => {
  test("several places are reported with their lines", () => {
    const { code, message } = catchFault("a\nb\na\nb\n", { oldText: "a\nb\n", newText: "x" });
    expect(code).toBe("ambiguous");
    expect(message).toContain("lines 1-2, 3-4");
  });

  test("places that overlap are several", () => {
    expect(catchFault("aaa\n", { oldText: "aa", newText: "b" }).code).toBe("ambiguous");
  });

  test("of very many places some are reported", () => {
    const { message } = catchFault("a\n".repeat(1_000), { oldText: "a", newText: "b" });
    expect(message).toContain("20 and more");
  });

  test("an old text that is empty says how to insert", () => {
    const { code, message } = catchFault("a\n", { oldText: "", newText: "b" });
    expect(code).toBe("empty");
    expect(message).toContain("write tool");
  });

  test("nothing to change", () => {
    expect(catchFault("a\n", { oldText: "a", newText: "a" }).code).toBe("same");
    expect(catchFault("a\n", { oldText: "a  ", newText: "a" }).code).toBe("same");
  });

  test("half of a character", () => {
    expect(catchFault("a\n", { oldText: "a", newText: "\ud83d" }).code).toBe("invalid");
  });

  test("edits that overlap, whatever their order", () => {
    const edits = [
      { oldText: "b\nc", newText: "x" },
      { oldText: "a\nb", newText: "y" },
    ];
    const { code, message } = catchFault("a\nb\nc\n", edits);
    expect(code).toBe("overlap");
    expect(message).toContain("edits[1] and edits[0]");
    expect(message).toContain("lines 1-2 and 2-3");
  });

  test("nothing is taken for being similar", () => {
    const file = "function add(a, b) {\n  return a + b;\n}\n";
    const edit = { oldText: "function add(a, b) {\n  return a - b;\n}\n", newText: "x" };
    expect(catchFault(file, edit).code).toBe("missing");
  });
});

describe("a file that has changed since it was read", () => {
  const seen = "one\ntwo\nthree\nfour\nfive\n";

  test("elsewhere: made, and said", () => {
    const file = editedFile("a", "zero\none\ntwo\nthree\nfour\nFIVE\n", seen);
    const plan = planEdits(file, [{ oldText: "three", newText: "3" }]);
    expect(plan).toMatchObject({
      content: "zero\none\ntwo\n3\nfour\nFIVE\n",
      isChangedElsewhere: true,
    });
  });

  test("on the same line: refused", () => {
    const { code, message } = catchFault(
      seen.replace("three", "three and"),
      { oldText: "three", newText: "3" },
      seen,
    );
    expect(code).toBe("changed");
    expect(message).toContain("line 3");
  });

  test("the text is there, and not where it was seen: refused", () => {
    const body = (name: string, result: string): string =>
      `function ${name}() {\n  let ${name}1;\n  return ${result};\n}\n`;
    const before = body("a", "null") + body("b", "1");
    const now = body("a", "0") + body("b", "null");
    expect(catchFault(now, { oldText: "return null;", newText: "return 2;" }, before).code).toBe(
      "changed",
    );
  });

  test("one of several that were seen alike: refused", () => {
    const edit = { oldText: "  x();\n", newText: "  y();\n" };
    expect(catchFault("a\n  x();\nb\n  z();\n", edit, "a\n  x();\nb\n  x();\n").code).toBe(
      "changed",
    );
  });

  test("a byte order mark that reading left out is no change", () => {
    const file = editedFile("a", `\uFEFF${seen}`, seen);
    const plan = planEdits(file, [{ oldText: "one", newText: "1" }]);
    expect(plan.isChangedElsewhere).toBe(false);
  });

  test("a miss says so", () => {
    expect(catchFault(seen, { oldText: "six", newText: "6" }, "six\n").message).toContain(
      "has changed",
    );
  });
});

test("a file that was never read is edited where the text is its own proof", () => {
  const file = editedFile("a.ts", "\ta\n\tb\n");
  expect(planEdits(file, [{ oldText: "\ta \n", newText: "\tc\n" }]).content).toBe("\tc\n\tb\n");
  expect(() => planEdits(file, [{ oldText: "a\nb\n", newText: "a\nc\n" }])).toThrow(
    /you have not read/,
  );
});

describe("for any text", () => {
  const line = fc.stringMatching(/^[ \t]{0,4}[ab“"…\u00a0-]{0,4}[ \t\r]{0,2}$/);
  const text = fc
    .array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 12 })
    .map((lines) => lines.map(([body, end]) => body + end).join(""));
  const edit = fc.record({ oldText: text, newText: text });

  test("an edit is made or is a clear error, and what is around it stays", () => {
    fc.assert(
      fc.property(text, edit, fc.option(text, { nil: undefined }), (content, edit, seen) => {
        const edited = new EditedText(content);
        try {
          const outcome =
            edit.oldText === "" ? { type: "missing" as const } : findMatch(edited, edit);
          const plan = planEdits(editedFile("a", content, seen), [edit]);
          if (outcome.type !== "found") throw new Error("Made without a place.");
          const { start, end, replacement } = outcome.match;
          expect(plan.content).toBe(content.slice(0, start) + replacement + content.slice(end));
        } catch (error) {
          expect(error).toBeInstanceOf(EditError);
        }
      }),
    );
  });

  test("what an edit does not touch is byte for byte what it was", () => {
    const space = fc.constantFrom("", " ", "\t", "  \t");
    const lines = fc.array(fc.tuple(space, space, fc.constantFrom("\n", "\r\n")), {
      minLength: 4,
      maxLength: 12,
    });
    fc.assert(
      fc.property(lines, fc.nat(), fc.nat(), fc.nat(), (lines, first, length, changed) => {
        const from = first % lines.length;
        const to = from + 1 + (length % (lines.length - from));
        const at = from + (changed % (to - from));
        const file = lines.map(([indent, trailing, end], index) => ({
          written: `${indent}line “${index}”`,
          trailing,
          end,
        }));
        const buildText = (changed: number): string =>
          file
            .map(({ written, trailing, end }, index) =>
              index === changed ? `changed${end}` : written + trailing + end,
            )
            .join("");
        const slipped = file.slice(from, to).map(({ written }) => written.replace(/[“”]/g, '"'));
        const oldText = slipped.map((line) => `${line}\n`).join("");
        const newText = slipped
          .map((line, index) => (index === at - from ? "changed\n" : `${line}\n`))
          .join("");
        // What the changed line had at its very end goes with it, as far as it is known.
        const made = make(buildText(-1), oldText, newText).content;
        const expected = buildText(at);
        const kept = made
          .split("\n")
          .map((line) => (line.startsWith("changed") ? line.replace(/[ \t]+(\r?)$/, "$1") : line));
        expect(kept.join("\n")).toBe(expected);
      }),
    );
  });

  test("edits in any order come to the same", () => {
    const words = fc.uniqueArray(fc.stringMatching(/^[a-z]{3,6}$/), { minLength: 3, maxLength: 9 });
    fc.assert(
      fc.property(words, fc.infiniteStream(fc.nat()), (words, numbers) => {
        const content = words.map((word) => `<${word}>\n`).join("");
        const edits = words
          .filter((_, index) => index % 2 === 0)
          .map((word) => ({ oldText: `<${word}>`, newText: `[${word}]` }));
        const keyed = edits.map((edit) => ({ edit, key: numbers.next().value ?? 0 }));
        const shuffled = keyed.sort((a, b) => a.key - b.key).map(({ edit }) => edit);
        const made = (edits: Edit[]): string => planEdits(editedFile("a", content), edits).content;
        expect(made(shuffled)).toBe(made(edits));
      }),
    );
  });

  test("all places are found, also those that overlap", () => {
    const letters = fc.array(fc.nat(1), { maxLength: 40 });
    fc.assert(
      fc.property(letters, fc.array(fc.nat(1), { minLength: 1, maxLength: 4 }), (hay, needle) => {
        const places = hay.flatMap((_, at) =>
          needle.every((code, i) => hay[at + i] === code) ? [at] : [],
        );
        expect([...findAll(hay, needle)]).toEqual(places);
      }),
    );
  });
});

describe("work grows with the size of the file, no faster", () => {
  /** Counts what is looked at. */
  function counting(
    length: number,
    at: (index: number) => number,
  ): { list: ArrayLike<number>; looks: () => number } {
    let looks = 0;
    const list = new Proxy<ArrayLike<number>>(
      { length },
      {
        get(target, key) {
          if (key === "length") return target.length;
          looks += 1;
          return at(Number(key));
        },
      },
    );
    return { list, looks: () => looks };
  }

  test("a search in a text that repeats itself", () => {
    const length = 20_000;
    const hay = counting(length, () => 1);
    const needle = [2, ...Array.from({ length: 2_000 }, () => 1)];
    expect([...findAll(hay.list, needle)]).toEqual([]);
    const other = counting(length, (index) => (index % 100 === 99 ? 2 : 1));
    expect([...findAll(other.list, [...needle.slice(1, 120), 2])]).toEqual([]);
    expect(hay.looks() + other.looks()).toBeLessThan(length * 8);
  });

  const long = "a".repeat(80);
  const sized: [what: string, line: string, oldText: string][] = [
    [
      "5 MB of lines, a miss",
      "  const value = compute(1);  ",
      "const value = compute(2);\nreturn value;\n",
    ],
    ["5 MB of one line", " ".repeat(5_000_000), "x  x"],
    ["5 MB of the same line", `\t${long}`, `${`  ${long}\n`.repeat(5_000)}b\n`],
    ["5 MB of the same block", long, `${long} \n`.repeat(5_000)],
  ];
  test.each(sized)("%s", (_what, line, oldText) => {
    const content = `${line}\n`.repeat(Math.ceil(5_000_000 / (line.length + 1)));
    expect(["missing", "ambiguous"]).toContain(catchFault(content, { oldText, newText: "y" }).code);
  });
});
