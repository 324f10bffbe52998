/*
 * Command lines at random, for a comparison of what bash runs with what the parser finds.
 * Every program that a line can name is in `STUB_NAMES`; no path in it is absolute.
 */

/** Numbers from 0 to 1, the same for the same seed. */
export type Random = () => number;

/** A small generator of good numbers (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Programs that do nothing else than to be run. */
const NAMES = "ca cb ce cf ch ci".split(" ");
/** Builtins that run what they are given: they do so here as well. */
const WRAPPERS = [
  "eval",
  "eval",
  "eval --",
  "command",
  "builtin eval",
  "command eval",
  "time eval",
];
/** Programs that an argument makes run or write something: rules look at their arguments. */
export const GUARDED_NAMES: readonly string[] = "find git sed sort tar curl node python3".split(
  " ",
);
const BUILTINS = "echo true false : test printf".split(" ");
export const STUB_NAMES: readonly string[] = [...NAMES, ...GUARDED_NAMES, ...BUILTINS];

/** Files in the folder where lines run, for patterns to find. */
export const FILE_NAMES: readonly string[] =
  "x1 x2 xo difftool remote-ext config log -exec -o -e -c --to-command=x1 ca cb a b ab -delete".split(
    " ",
  );

const ENDLESS = /\b(?:while|until)\b|\bfor\s*\(\(/;
const BACKGROUND = /(?<![&<>|])&(?![&>])|\bcoproc\b|[<>]\(/;

/** Whether a line may start processes without end, none of which waits for another. */
export function mayFlood(line: string): boolean {
  return ENDLESS.test(line) && BACKGROUND.test(line);
}

/** A path that is written as meant: the device, or one in the folder that lines have as their home. */
const MEANT_PATH = /[<>]\/dev\/null(?=[\s;&|()<>]|$)|~\//g;

/** Whether a line may name a file outside of its folder, as one that was mutated may: it is not run. */
export function mayReachOutside(line: string): boolean {
  return line.replace(MEANT_PATH, "").includes("/");
}

/** One line. `serial` is in the name of each file that it writes. */
export function createLine(next: Random, serial: number): string {
  const writer = new LineWriter(next, serial);
  const kind = next();
  if (kind < 0.15) return writer.soup();
  if (kind < 0.35) return writer.guarded();
  if (kind < 0.47) return writer.documents();
  const line = writer.script();
  return kind < 0.7 ? line : writer.mutate(line);
}

const SOUP = [
  ...NAMES.map((name) => `${name} `),
  ..."; ;; & && | || ( ) { } ! \n \\ ' \" ` # $ < > = ~ * ? [ ] [[ ]] , - ..".split(" "),
  ..."$( $(( )) ${ ${x $' $\" <( >( << <<- <<E <<'E' <<< >& &> 2> |& ;& \\\n \\\\ \\' \\\" \"\" '' $''".split(
    " ",
  ),
  ..."if then elif else fi while until do done for select in case esac function time coproc"
    .split(" ")
    .map((word) => `${word} `),
  ..."x X= x= x+= E \nE\n \n\tE\n \\nE\n f() 1 2 a,b {a,b} {1..2} ${x:-ca} $(cb) `ch` \"$(ca)\" 'cb' (ch) (( [a]".split(
    " ",
  ),
  ...["{ ch;}", " ", "\t", "\r", "\r\n", "\u00a0", "\f", "\v", "\u2003", "\u0085"],
  ...["; do ", "; then ", "; done ", "; fi ", " in ", ";; esac ", "x=(", "x[", "{x}>"],
];

/** What lines are disturbed with: quotes around nothing, lines that go on, strange blanks. */
const DISTURBANCES = [
  ..."\"\" '' $'' $\"\" \\ \\\n \\\\ # \n ; & | ( ) { } < > << ` ' \" $ ! ~ * ? [ ] = , .. -".split(
    " ",
  ),
  ...[
    " ",
    "\t",
    "\r",
    "\u00a0",
    "\f",
    "$(",
    "<(",
    "${",
    "((",
    "))",
    "\n\n",
    " #",
    ";;",
    "<<-E\n",
    "E\n",
  ],
  ...["{a,", "..", "\\\n.", "${x}", "$x", "$IFS", "in ", "do ", "fi ", "esac ", "time ", "! "],
];

const SEPARATORS = [
  ..."; && || | & |& ;\n \n \n\n &\n &&\n |\n".split(" ").map((sign) => ` ${sign} `),
  "\n",
  "\n",
  ";",
  "&",
  "|",
  " # note\n",
  " \\\n; ",
  "\n# ca 'cb\n",
];

/** Which kinds of compound command there are, the unclear ones once. */
const COMPOUNDS = [0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7, 8, 9, 9, 10, 11, 11, 12, 13, 14, 15, 15];

/** A here-document's mark in the many ways that it can be written. */
const MARKS: readonly ((mark: string) => string)[] = [
  (mark) => mark,
  (mark) => mark,
  (mark) => `'${mark}'`,
  (mark) => `"${mark}"`,
  (mark) => `\\${mark}`,
  (mark) => `${mark}""`,
  (mark) => `${mark}''`,
  (mark) => `''${mark}`,
  (mark) => `${mark}$''`,
  (mark) => `$'${mark}'`,
  (mark) => `${mark}\\\n`,
  (mark) => `\\\n${mark}`,
  (mark) => `${mark}$`,
];

interface PendingDocument {
  mark: string;
  tabs: boolean;
}

class LineWriter {
  readonly #next: Random;
  readonly #serial: number;
  #files = 0;
  #documents: PendingDocument[] = [];

  constructor(next: Random, serial: number) {
    this.#next = next;
    this.#serial = serial;
  }

  soup(): string {
    return this.#repeat(1, 12, () => `${this.#pick(SOUP)}${this.#chance(0.5) ? " " : ""}`).join("");
  }

  script(): string {
    const text = this.#list(0);
    return this.#documents.length > 0 ? text + this.#newline("\n") : text;
  }

  /** Here-documents above all. */
  documents(): string {
    const text = `${this.#pick(NAMES)} ${this.#repeat(1, 2, () => this.#hereDocument()).join(" ")}`;
    const rest = this.#newline("\n");
    const line = `${text}${rest}${this.#chance(0.5) ? this.script() : ""}`;
    if (this.#chance(0.7)) return line;
    const name = this.#pick(NAMES);
    return this.#pick([
      `${name} $(${line})`,
      `${name} "$(${line}${this.#pick(NAMES)} a;${this.#pick(NAMES)})"`,
      `${name} <(${line}${this.#pick(NAMES)};${this.#pick(NAMES)})`,
      `${name} \`${line}\``,
      `(${line})`,
      `{ ${line}\n}`,
    ]);
  }

  /** A program whose arguments rules look at, and such arguments, written in many ways. */
  guarded(): string {
    const name = this.#pick([...GUARDED_NAMES, "git", "git", "sed", "sed"]);
    const disguised = this.#pick([0, 0, 0.5, 1]);
    const words = this.#repeat(1, 4, () => this.#pick(ARGUMENTS.get(name) ?? []))
      .flatMap((words) => words.split("\t"))
      .map((word) => (this.#chance(disguised) ? this.#disguise(word) : quoteWord(word)));
    if (this.#chance(0.2)) words.splice(0, words.length, this.#brace(words));
    const command = `${name} ${words.join(" ")}`;
    return this.#chance(0.2) ? `${this.script()}\n${command}` : command;
  }

  mutate(line: string): string {
    let text = line;
    for (let left = 1 + this.#below(3); left > 0; left--) {
      const at = this.#below(text.length + 1);
      const length = this.#below(4);
      const piece = this.#pick(DISTURBANCES);
      const action = this.#next();
      if (action < 0.5) text = text.slice(0, at) + piece + text.slice(at);
      else if (action < 0.7) text = text.slice(0, at) + text.slice(at + length);
      else if (action < 0.9) text = text.slice(0, at) + piece + text.slice(at + 1);
      else text = text.slice(0, at) + text.slice(at, at + 3 * length) + text.slice(at);
    }
    return text;
  }

  #list(depth: number): string {
    let text = this.#command(depth);
    for (let left = this.#below(depth > 1 ? 2 : 4); left > 0; left--) {
      text += this.#newline(this.#pick(SEPARATORS)) + this.#command(depth);
    }
    return text;
  }

  /** A separator, and behind the end of a line the here-documents that begin there. */
  #newline(separator: string): string {
    if (!separator.includes("\n") || separator.includes("\\\n")) return separator;
    const documents = this.#documents;
    this.#documents = [];
    return separator + documents.map((document) => this.#documentBody(document)).join("");
  }

  #command(depth: number): string {
    if (depth > 3 || this.#chance(0.6)) return this.#simple(depth);
    const list = (): string => this.#list(depth + 1);
    const end = (): string => this.#newline(this.#pick(["; ", "\n", " ;\n", " &\n"]));
    switch (this.#pick(COMPOUNDS)) {
      case 0:
        return `(${list()})${this.#redirects()}`;
      case 1:
        return `{ ${list()}${end()}}${this.#redirects()}`;
      case 2:
        return `if ${list()}${end()}then ${list()}${end()}fi`;
      case 3:
        return `if ${list()}${end()}then ${list()}${end()}else ${list()}${end()}fi`;
      case 4:
        return `while ${list()}${end()}do ${list()}${end()}break; done`;
      case 5:
        return `until ${list()}${end()}do ${list()}${end()}break\ndone${this.#redirects()}`;
      case 6:
        return `for x in ${this.#words(depth)}${end()}do ${list()}${end()}done`;
      case 7:
        return `case ${this.#word(depth)} in ${this.#word(depth)}) ${list()};; esac`;
      case 8:
        return `case ${this.#word(depth)} in\n(a|${this.#word(depth)}) ${list()}\n;;\n*) ${list()} ;;& b) ${list()}\nesac`;
      case 9:
        return `[[ ${this.#pick(["-n ", "! ", "a == ", "-f ", "a && ", "( a || b ) && "])}${this.#word(depth)} ]]`;
      case 10:
        return `! ${this.#command(depth + 1)}`;
      case 11:
        return `time ${this.#pick(["", "-p "])}${this.#command(depth + 1)}`;
      case 12:
        return `for ((${this.#pick(["1;1;1", "x=0;x<2;x++", ";0;"])})); do ${list()}${end()}done`;
      case 13:
        return `((${this.#pick(["1", "1+1", "x", "1<2", "$(ca)", "x[$(cb)]"])}))`;
      case 14:
        return `${this.#pick(["f()", "function f", "coproc", "select x in a;do", "g ()"])} { ${list()}${end()}}`;
      default:
        return `${this.#simple(depth)} ${this.#hereDocument()}`;
    }
  }

  #simple(depth: number): string {
    const parts: string[] = [];
    if (this.#chance(0.15)) {
      parts.push(
        `${this.#pick(["x=", "X=", "x+=", "IFS=", "x=a", "{x}>/dev/null "])}${this.#word(depth)}`,
      );
    }
    if (this.#chance(0.1)) parts.push(this.#redirects());
    parts.push(this.#name());
    if (this.#chance(0.7)) parts.push(this.#words(depth));
    if (this.#chance(0.25)) parts.push(this.#redirects());
    if (this.#chance(0.12)) parts.push(this.#hereDocument());
    if (this.#chance(0.08)) parts.push(this.#words(depth));
    return parts.join(this.#chance(0.05) ? " \\\n " : " ");
  }

  #name(): string {
    if (this.#chance(0.1)) return this.#pick(BUILTINS);
    const name = this.#pick(NAMES);
    if (this.#chance(0.75)) return name;
    if (this.#chance(0.2)) return `${this.#pick(WRAPPERS)} ${name}`;
    const [first = "", second = ""] = name;
    return this.#pick([
      `'${name}'`,
      `"${name}"`,
      `${first}"${second}"`,
      `${first}\\${second}`,
      `${first}\\\n${second}`,
      `$'${name}'`,
      `${name}""`,
      `''${name}`,
      `${name}\r`,
      `${first}{${second},a}`,
      `${first}[${second}]`,
      `$x${name}`,
      `\\${name}`,
      `${name}\u00a0`,
    ]);
  }

  #words(depth: number): string {
    return this.#repeat(1, 3, () => this.#word(depth)).join(
      this.#pick([" ", " ", " ", "\t", "  ", " \\\n"]),
    );
  }

  #word(depth: number): string {
    return this.#repeat(1, this.#chance(0.7) ? 1 : 3, () => this.#piece(depth)).join("");
  }

  #piece(depth: number): string {
    if (depth < 3 && this.#chance(0.2)) {
      const list = this.#list(depth + 2);
      return this.#pick([
        `$(${list})`,
        `"$(${list})"`,
        `\`${list.replace(/[\\`$]/g, String.raw`\$&`)}\``,
        `<(${list})`,
        `>(${list})`,
        `\${x:-$(${list})}`,
        `"\${x:-\`${list}\`}"`,
        `\${x#$(${list})}`,
        `"a $(${list}) b"`,
        `$(( $(${list}) ))`,
        `$( (${list}) )`,
        `$((${list}))`,
        `\`${list}\``,
        `x=($(${list}))`,
        `{a,$(${list})}`,
      ]);
    }
    return this.#pick(PIECES);
  }

  #redirects(): string {
    const file = `o${this.#serial}_${this.#files++}`;
    return this.#pick([
      `>${file}`,
      `> ${file}`,
      `>>${file}`,
      `2>${file}`,
      `&>${file}`,
      `>|${file}`,
      `<>${file}`,
      `>&${file}`,
      `>&'${file}'`,
      `>&'$(${this.#pick(NAMES)})'`,
      `&>'$(${this.#pick(NAMES)})'`,
      `>'${file}'`,
      `>${file}""`,
      `{fd}>${file}`,
      `{fd}"">${file}`,
      `22>${file}`,
      `>\\\n${file}`,
      `>${file}{,}`,
      "2>&1",
      ">&-",
      "<&-",
      "2>&1-",
      "<a",
      "<<<a",
      "<<< $(ca)",
      "</dev/null",
      "3<&0",
    ]);
  }

  #hereDocument(): string {
    const mark = this.#pick(["E", "E", "F", "ca"]);
    const tabs = this.#chance(0.3);
    this.#documents.push({ mark, tabs });
    return `${this.#pick(["", "", "", "3", "0"])}<<${tabs ? "-" : ""}${this.#pick(["", "", " "])}${this.#pick(MARKS)(mark)}`;
  }

  #documentBody({ mark, tabs }: PendingDocument): string {
    const name = this.#pick(NAMES);
    const lines = this.#repeat(0, 4, () =>
      this.#pick([
        "text",
        "x\\",
        `x\\\n${mark}`,
        `x\\\n${mark}\n${name}`,
        "x\\\\",
        "\\",
        mark,
        `\t${mark}`,
        `${mark} `,
        `${mark};${name})`,
        `${mark}\\\n$(${name}) ; ${this.#pick(NAMES)}`,
        `${mark}\\`,
        `${mark}""`,
        `${mark}\r`,
        `\\${mark}`,
        name,
        `$(${name})`,
        `\`${name}\``,
        `\\$(${name})`,
        `\${x:-$(${name})}`,
        `"$(${name})"`,
        `'$(${name})'`,
        `\\\\$(${name})`,
        "<<F",
        "F",
        ")",
        "$(",
        "'",
        '"',
        "`",
        "",
        `; ${name}`,
        `$(${name} <<G`,
        "G",
        `$((${name}))`,
      ]),
    );
    const end = this.#chance(0.93) ? `${tabs && this.#chance(0.5) ? "\t" : ""}${mark}\n` : "";
    return lines.map((line) => `${line}\n`).join("") + end;
  }

  /** The same word in another way of writing; not always one that stays the same word. */
  #disguise(word: string): string {
    const quoted = `'${word.replaceAll("'", String.raw`'\''`)}'`;
    if (quoteWord(word) !== word) return quoted;
    const at = this.#below(word.length + 1);
    const [head, tail] = [word.slice(0, at), word.slice(at)];
    const letter = tail.charAt(0);
    return this.#pick([
      word,
      word,
      word,
      word,
      quoted,
      `${head}""${tail}`,
      `${head}\\\n${tail}`,
      `${head}'${tail}'`,
      letter === "" ? word : `${head}[${letter}]${tail.slice(1)}`,
      letter === "" ? word : `${head}?${tail.slice(1)}`,
      `${head}*`,
      `{${word},b}`,
      `${head}{${tail},b}`,
      `{b,${word}}`,
      `${head}{,}${tail}`,
      `{${word},x*}`,
      `{x?,${word}}`,
      `$x${word}`,
      `\${x}${word}`,
      `$'${word}'`,
      `$"${word}"`,
      `~${word}`,
      `{,} ${word}`,
      `"$x"${word}`,
      `b$IFS${word}`,
      `a{$x,\\ ${word}}`,
    ]);
  }

  /** All of these words by one that expands to them. */
  #brace(words: readonly string[]): string {
    const glob = this.#pick(["", ",x*", ",[x]1", ",x?", ",~", ",$x", ",y*"]);
    return `${this.#pick(["", "", "", "x", "'-'"])}{${words.map((word) => word.replace(/^'(.*)'$/s, (_, inner: string) => inner.replace(/[^\w]/g, String.raw`\$&`))).join(",")}${glob}}`;
  }

  #repeat(least: number, most: number, make: () => string): string[] {
    return Array.from({ length: least + this.#below(most - least + 1) }, make);
  }

  #pick<T>(from: readonly T[]): T {
    const picked = from[this.#below(from.length)];
    if (picked === undefined) throw new Error("There is nothing to pick from.");
    return picked;
  }

  #below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  #chance(share: number): boolean {
    return this.#next() < share;
  }
}

/** A word as it stands in a line, without a disguise. */
function quoteWord(word: string): string {
  return /[\s;!|{}]/.test(word) || word === "" ? `'${word}'` : word;
}

const PIECES = [
  ...'a b - -x a,b a=b x=1 =a a: \'q\' "q" "a b" \'a b\' \'it\'"\'"\'s\' "a\\"b" \\a \\$ \\\' \\" \\\\ $x ${x} "$x"'.split(
    " ",
  ),
  ...'${x:-a} ${x:+a} ${#x} ${x%a} ${x/a/b} ${x^} "${x:-a}" ${x:-\'a\'} ${x:-"a"} ${x:-{} ${x@P} ${!x} ${x:=a} ${x[0]}'.split(
    " ",
  ),
  ..."{a,b} {a,b}c x{a,b} {a,x*} {1..3} {a..c} {a,{b,c}} {} {a} {,} {a, }{ {1.\\\n.2} {'a',b} {a\\,b} {\"a,b\"}".split(
    " ",
  ),
  ..."* a* ? [ab] [!a] [a x] a] ~ ~/a a=~ ~a $((1+1)) $[1+1] $'a' $'a\\'b' $'\\x61' $\"a\" $ $$ $? $# a$ \"$\" #a a#b".split(
    " ",
  ),
  ..."\"\" '' \\\n a\\\nb ! !! @ % ^ + if then fi do done in case esac time { } [[ ]] [ function select coproc".split(
    " ",
  ),
  ...[
    "a\rb",
    "\r",
    "a\u00a0b",
    "\u2003",
    "é",
    "\f",
    "\v",
    "\u0085",
    "\u200b",
    "x=(a b)",
    "'a\\\nb'",
    "x=()",
    "x+=(a)",
  ],
  ...'@(a|b) !(a) $\'\\n\' "\\\n" \'\\\' "\\a" "\\`" "\'" \'"\' ${x-\\}} ${x-"}"} "${x-}}" ${x-a b} a&b a;b ~+ ~- a:~'.split(
    " ",
  ),
];

/** Arguments of programs that rules look at, harmless ones among others; with a tab, two. */
const ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  [
    "find",
    [".", "a", "-name", "x1", "-exec", "-delete", "ca", ";", "{}", "-type", "f", "-fprint", "--"],
  ],
  [
    "git",
    "log status diff -c difftool difftool remote-ext config x1 --output=x1 --no-pager --stat HEAD".split(
      " ",
    ),
  ],
  [
    "sed",
    [
      ..."-n 1p s/a/b/ x1 -E -i -f -be1e".split(" "),
      ...[
        "1e ca",
        "w x1",
        "-be1e ca",
        "-l\t1p",
        "-e\t1p",
        "-e\t",
        "-e\t",
        "-e\t",
        "-e\t1e ca",
        "-e\t1e ca",
      ],
    ],
  ],
  ["sort", ["-o", "x1", "-u", "-r", "-ox1", "--output=x1", "a", "--", "-k1", "-uo"]],
  ["tar", ["xf", "-xf", "a", "x1", "--to-command=ca", "-I", "ca", "xIf", "cf", "-C", "--"]],
  ["curl", ["-o", "x1", "-s", "-sS", "-so", "http:a", "-K", "-O", "--output", "-H", "a:b", "-d"]],
  ["node", ["-e", "a", "x1", "--eval", "--test", "-p", "--import=a", "--", "-c"]],
  ["python3", ["-c", "a", "x1", "-m", "-u", "-V", "-", "-uc", "-B"]],
]);
