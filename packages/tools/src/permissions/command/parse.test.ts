import { describe, expect, it } from "vitest";
import { parseCommandLine } from "./parse.ts";
import { countCases } from "../../../../../tests/support/cases.ts";

/** Commands as lists of words; what is not literal in angle brackets. */
function listCommands(text: string): string[][] {
  return parseCommandLine(text).commands.map(({ words }) =>
    words.map((word) => (word.literal ? word.text : `<${word.text}>`)),
  );
}

function findUnclear(text: string): string | undefined {
  return parseCommandLine(text).unclear;
}

describe("parseCommandLine", () => {
  it.each<[string, string[][]]>([
    ["git status", [["git", "status"]]],
    ["a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]],
    ["a\nb\n\n# c\nd # e", [["a"], ["b"], ["d"]]],
    ["a |& b", [["a"], ["b"]]],
    ["! a; time { b; }; time -p (c)", [["a"], ["b"], ["c"]]],
    ["time a", [["time", "a"]]],
    ["echo a#b '#' \\# x", [["echo", "a#b", "#", "#", "x"]]],
    ["echo 'a b' \"c d\" e\\ f", [["echo", "a b", "c d", "e f"]]],
    [String.raw`r"m" -r\f '/'x`, [["rm", "-rf", "/x"]]],
    [String.raw`$'\x72\155' $'\u0061\n'`, [["rm", "a\n"]]],
    ["r\\\nm x \\\n y", [["rm", "x", "y"]]],
    ['echo "a;b|c&d(e)"', [["echo", "a;b|c&d(e)"]]],
    ["(a; b) && { c; d; }", [["a"], ["b"], ["c"], ["d"]]],
    ["if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]],
    ["while a; do b; done; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]],
    ["for x in 1 2; do a; done\nfor y\ndo b; done", [["a"], ["b"]]],
    ["case x in (a|b) c;; d) e;& *) f;; esac; g", [["c"], ["e"], ["f"], ["g"]]],
    ["echo if then fi", [["echo", "if", "then", "fi"]]],
    ["[[ -f a && b < c ]] && d", [["[[", "-f", "a", "b", "c"], ["d"]]],
    ["a 2>&1 >/dev/null <b &>c", [["a"]]],
    ["a <<E b\n$ no expansion\nE\nc", [["a", "b"], ["c"]]],
    ["a <<-E\n\tx; rm\n\tE\nb", [["a"], ["b"]]],
    ["a <<'E' <<F\nrm\nE\nrm\nF\nb", [["a"], ["b"]]],
    ["a <<E\nE\\\n\nb", [["a"], ["b"]]],
    ["echo $((1 + 2))", [["echo", "<$((1 + 2))>"]]],
    ["a {} x{ }y [ ]", [["a", "{}", "x{", "}y", "[", "]"]]],
    ["a<b>c", [["a"]]],
    ["{fd}>a rm -rf b", [["rm", "-rf", "b"]]],
    ["a {fd}<b c", [["a", "c"]]],
    ["{f\\\nd}>a rm", [["rm"]]],
    ["'{fd}'>a rm", [["{fd}", "rm"]]],
    ['{fd}"">a rm', [["{fd}", "rm"]]],
    ["''{fd}>a rm", [["{fd}", "rm"]]],
    ["if'' a", [["if", "a"]]],
    [
      'time"" a; "!" b',
      [
        ["time", "a"],
        ["!", "b"],
      ],
    ],
    ["{fd} >a rm", [["{fd}", "rm"]]],
  ])("%j", (text, commands) => {
    expect(listCommands(text)).toEqual(commands);
    expect(findUnclear(text)).toBeUndefined();
  });

  it.each<[string, string[][]]>([
    ["a $(b $(c)) `d`", [["c"], ["b", "<$(c)>"], ["d"], ["a", "<$(b $(c))>", "<`d`>"]]],
    ['a "x $(b) y"', [["b"], ["a", '<"x $(b) y">']]],
    ["a `b \\`c\\``", [["c"], ["b", "<`c`>"], ["a", "<`b \\`c\\``>"]]],
    ["a `b <<'E'\nE\\\n\nc\nE\n`", [["b"], ["c"], ["E"], ["a", "<`b <<'E'\nE\\\n\nc\nE\n`>"]]],
    [
      "a `b 'c\\\nd'`",
      [
        ["b", "cd"],
        ["a", "<`b 'c\\\nd'`>"],
      ],
    ],
    ["a \"$(b <<'E'\nx (y)\nE\n)\"", [["b"], ["a", "<\"$(b <<'E'\nx (y)\nE\n)\">"]]],
    ["a \"$(b <<'E'\nx\nE\n)\"; c", [["b"], ["a", "<\"$(b <<'E'\nx\nE\n)\">"], ["c"]]],
    ["a <(b) >(c)", [["b"], ["c"], ["a", "<<(b)>", "<>(c)>"]]],
    ["a ${x:-$(b)}", [["b"], ["a", "<${x:-$(b)}>"]]],
    ["X=$(a) b", [["a"], ["b"]]],
    ["X=(1 $(a))", [["a"], []]],
    ["a <<E\n$(b) `c`\nE", [["b"], ["c"], ["a"]]],
    ["a <<<$(b)", [["b"], ["a"]]],
    ["a > $(b)", [["b"], ["a"]]],
    ["for x in $(a); do b $x; done", [["a"], ["b", "<$x>"]]],
    ["case $(a) in $(b)) c;; esac", [["a"], ["b"], ["c"]]],
    ["[[ $(a) == b ]]", [["a"], ["[[", "<$(a)>", "==", "b"]]],
  ])("finds what is run inside of words: %j", (text, commands) => {
    const found = listCommands(text);
    expect(found).toHaveLength(commands.length);
    expect(found).toEqual(expect.arrayContaining(commands));
    expect(findUnclear(text)).toBeUndefined();
  });

  it.each([`EOF""`, "EOF''", `""EOF`, `E""OF`, "E\\OF", "'EOF'", `"EOF"`, `EOF""''`, "EO\\\nF''"])(
    "takes a here-document as it is where its mark has any quote: %j",
    (mark) => {
      for (const sign of ["<<", "<<-", "<< ", "3<<"]) {
        const text = `a ${sign}${mark}\nx\\\nEOF\nb > c\nEOF\n`;
        expect(listCommands(text), text).toEqual([["a"], ["b"], ["EOF"]]);
      }
    },
  );

  it("joins lines of a here-document whose mark has no quote", () => {
    for (const mark of ["EOF", "E\\\nOF", "\\\nEOF"]) {
      expect(listCommands(`a <<${mark}\nx\\\nEOF\nb > c\nEOF\nd`)).toEqual([["a"], ["d"]]);
    }
  });

  it.each(["EOF$''", `EOF$""`, "$'EOF'", `$"EOF"`, "EOF$'\\n'"])(
    "does not say where a here-document ends whose mark shells read differently: %j",
    (mark) => {
      expect(findUnclear(`a <<${mark}\nx\\\nEOF\nb\nEOF\n`)).toBeDefined();
      expect(findUnclear(`a <<-${mark}\nx\\\nEOF\nb\nEOF\n`)).toBeDefined();
    },
  );

  it.each(["$x", "*.sh a", "a?", "[a]b", "{a,b}", "$(a)", "~/a", "a$IFS", "`a`", '"$x"', "{1..2}"])(
    "does not claim to know the words of %j",
    (text) => {
      expect(parseCommandLine(text).commands.at(-1)?.words[0]?.literal).toBe(false);
    },
  );

  it.each<[string, string]>([
    ["{-a,x*}", ""],
    ["{-a,x[1]}", ""],
    ["{-a,x?}", ""],
    ["{-a,$x}", ""],
    ["{-a,~}", ""],
    ["{-a,`b`}", ""],
    ["{-a,<(b)}", ""],
    ["x{-a,x*}", "x"],
    ["'-'{a,x*}", "-"],
    ["{1.\\\n.2}", ""],
    ["{a\\\n,b}", ""],
    ["~", ""],
    ["~/a", ""],
    ["x=~", "x="],
    ["a*{b,c}", "a"],
    ["a[b]c", "a"],
    ["[[a]", ""],
    ["[ab*]", ""],
    ["a[b$x]", "a"],
    ["a[b[c]", "a"],
    ["src/$x", "src/"],
  ])("knows what a word that expands begins with: %j", (text, prefix) => {
    const word = parseCommandLine(`a ${text}`).commands.at(-1)?.words[1];
    expect(word).toMatchObject({ literal: false, prefix });
  });

  it.each([
    "a 'b",
    'a "b',
    "a $(b",
    "a `b",
    "(a",
    "{ a",
    "a)",
    "a;;",
    "if a; then b",
    "fi",
    "i\\\nf a; then b; fi",
    "a ${b",
    "a $((b) | c)",
    "((a); b)",
    "a <<E\nb",
    "a <<$E\nb\n$E",
    "a $'\\'; b #'",
    "a $'\\x00'",
    "a\0b",
    "a @(b|c)",
    "a $[1]",
    'a "${b:-\'}"',
    "a() { b; }; a",
    "function a { b; }",
    "a ${b:=c}",
    "a ${b@P}",
    "a ${!b}",
    "a ${b[0]}",
    "a $((b))",
    "((a++))",
    "for PATH in .; do a; done",
    "[[ $a -eq 1 ]]",
    "coproc a",
    "a >&'$(b)'",
    "a >&\\b",
    'a >&"$b"',
    "a >&$b",
    "a <&'b'",
    "a $(b <<E\nE\nc d;e)",
    "a \"$(b <<'E'\nE;c #)\nE\n)\"",
    "a $(b <<E\nE\\\n$(c) ; d\nE\n)",
    "a <(b <<-E\n\tEx)\n\tE\n)",
    "a $(b <<''\nx)\n\n)",
    'a "${x:-`b "c\\"d"; e; f "g\\"h"`}"',
    'a "`b \\"c\\"`"',
    'a <<E\n`b \\"c\\"`\nE\n',
    "time -p -p a",
    "time -- -- a",
    "a <(b <<E\nE\nc d;e)",
    'a "$({ b <<E; } &&\nE\nc d;e)"',
    "time a[ # ]; b",
    "time -\\p a",
    "time x''=1 a",
    "time '--' a",
    "time -p a[\n]; b",
    "a | time { b; }",
    "time time ! a",
    "time -p time ! a",
    "time -- ! a",
    "time \\\n ! a",
    "time time if a; then b; fi",
    "a |& time -p if b; then c; fi",
    "a |\ntime while b; do c; done",
    "{a[0]}>b rm",
    "{PATH}>b rm",
    "a {BASH_ENV}<b; rm",
    "{a[$(b)]}>b rm",
    "a <<E $(b\nE\n)",
    "rm \\",
    "ls >'a\\\n'|rm \\",
  ])("says that it is unclear: %j", (text) => {
    expect(findUnclear(text)).toMatch(/\.$/);
  });

  it("stops at what is nested too deeply, or too long for any shell", () => {
    for (const text of ["(", "$(", "{ ", '"$(', "`\\`", "${x:-"].map((piece) =>
      piece.repeat(10_000),
    )) {
      expect(findUnclear(text)).toBeDefined();
    }
    expect(findUnclear("x".repeat(1024 * 1024))).toMatch("more than");
  });

  it("reports which files the shell itself opens", () => {
    const { commands } = parseCommandLine("a >b 2>>c <d >|e &>f >&g <>h 2>&1 <<<i");
    expect(commands[0]?.redirects.map(({ kind, target }) => [kind, target.text])).toEqual([
      ["write", "b"],
      ["write", "c"],
      ["read", "d"],
      ["write", "e"],
      ["write", "f"],
      ["write", "g"],
      ["write", "h"],
      ["input", "i"],
    ]);
    expect(parseCommandLine("{ a; } > b").commands.at(-1)?.redirects[0]?.target.text).toBe("b");
    const [here] = parseCommandLine("sh <<'E'\nrm $x\nE").commands[0]?.redirects ?? [];
    expect(here?.body).toBe("rm $x");
  });

  it("keeps assignments apart", () => {
    const [command] = parseCommandLine('A=1 B="$x" c D=2').commands;
    expect(command?.assignments.map(({ text }) => text)).toEqual(["A=1", 'B="$x"']);
    expect(command?.words.map(({ text }) => text)).toEqual(["c", "D=2"]);
    expect(listCommands('"A"=1')).toEqual([["A=1"]]);
    expect(listCommands("A+\\\n={b,c} d")).toEqual([["d"]]);
  });

  it("looks at each character a bounded number of times", { tags: "long" }, () => {
    const longLine = countCases(16, 64) * 1024;
    const pieces = [
      ..."a'\"`\\;|&(){}[]<>$#!\n ~*=,",
      ..."$( ${ $(( <( << <<E\n $' \\\n $x a=( (( [[ ]] if case esac \"$( `\\` {a, [] ]]]".split(
        " ",
      ),
    ];
    for (const piece of pieces) {
      for (const frame of ["", "a ", "'", '"', "`", "a <<E\n", "[[ ", "case x in ", "x="]) {
        const long = (chars: number): number =>
          parseCommandLine(frame + piece.repeat(Math.ceil(chars / piece.length))).steps;
        const steps = long(longLine);
        expect(steps, JSON.stringify([frame, piece])).toBeLessThanOrEqual(
          5 * long(longLine / 4) + 1000,
        );
        expect(steps, JSON.stringify([frame, piece])).toBeLessThan(16 * longLine);
      }
    }
  });
});
