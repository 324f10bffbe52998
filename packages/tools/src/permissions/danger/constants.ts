/** Longer code is taken as it is. */
const MAX_FOLDED_CHARS = 16 * 1024;
/** What one step makes known may be needed by another one. */
const MAX_PASSES = 6;
/** Times that a text is repeated by a number behind it. */
const MAX_REPEATS = 20;

/** Which program runs the code, and the words behind it in the command line. */
export interface CodePlace {
  program: string;
  passed: readonly string[];
  /** It is in a file, not in the command line. */
  isFile?: boolean;
}

/** A piece of code: a text with its quotes, or what is between two texts. */
interface Token {
  text: string;
  /** Of a text; empty for what is between. */
  quote: string;
}

/**
 * Code in which texts stand in the place of what is put together of them: `"a" + "b"`, variables with a text,
 * arguments, parts of a path. It is for a look at the texts of the code, and need not be able to run.
 */
export function foldConstants(code: string, place: CodePlace): string {
  if (code.length > MAX_FOLDED_CHARS) return code;
  let folded = nameImports(fillArguments(quoteOthers(code, place), place));
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const before = folded;
    const tokens = joinTexts(split(folded));
    folded = takeCalls(write(fillVariables(tokens, place)));
    if (folded === before || folded.length > 2 * MAX_FOLDED_CHARS) break;
  }
  return folded;
}

/** Texts that are written without quotes. */
function quoteOthers(code: string, { program }: CodePlace): string {
  const coded = code
    .replaceAll(/\btempfile\.(?:gettempdir|mkdtemp)\(\)|\bos\.tmpdir\(\)/g, "'/tmp'")
    .replaceAll(
      /\b(?:chr|String\.from(?:CharCode|CodePoint))\(\s*(\d{1,5}(?:\s*,\s*\d{1,5})*)\s*\)/g,
      (_, list: string) => `'${String.fromCodePoint(...list.split(",").map(Number))}'`,
    );
  if (!/^(?:perl|ruby)/.test(program)) return coded;
  return coded
    .replaceAll(
      /\bq[qw]?\s*(?:\(([^()'\n]*)\)|\{([^{}'\n]*)\}|\[([^[\]'\n]*)\]|([/|!])([^'\n]*?)\4)/g,
      (_, ...found: (string | undefined)[]) =>
        `'${found[0] ?? found[1] ?? found[2] ?? found[4] ?? ""}'`,
    )
    .replaceAll(/<([\w./-]*[*?][\w./*?-]*)>/g, "'$1'");
}

/** The words behind the code, in the place of what finds them. */
function fillArguments(code: string, { program, passed, isFile = false }: CodePlace): string {
  if (passed.length === 0) return code;
  const first = new Map([
    ["sys.argv", 1],
    ["process.argv", isFile ? 2 : 1],
    ["ARGV", program.endsWith("awk") ? 1 : 0],
  ]);
  const fill = ({ text, quote }: Token): Token => {
    const at = (index: number, whole: string): string => {
      const word = passed[index];
      if (word === undefined) return whole;
      // What has quotes in it is no path.
      const plain = word.replaceAll(/["'`\n\\]/g, " ");
      return quote === "" ? `"${plain}"` : plain;
    };
    const filled = text.replaceAll(
      /\$?\b(sys\.argv|process\.argv|ARGV)\[(\d)\]/g,
      (whole, name: string, index: string) => at(Number(index) - (first.get(name) ?? 0), whole),
    );
    const shifts = quote === "" && program.startsWith("perl");
    return {
      text: shifts
        ? filled.replaceAll(/(?<![.\w$@%&>])shift\b(?!\s*[(@])/g, (whole) => at(0, whole))
        : filled,
      quote,
    };
  };
  return write(split(code).map(fill));
}

/** Functions of modules by their own names. */
function nameImports(code: string): string {
  let named = code.replaceAll(/\bopen\(\s*file\s*=\s*/g, "open(");
  for (const [, module = "", name = ""] of code.matchAll(/\bimport\s+([\w.]+)\s+as\s+(\w+)/g))
    named = named.replaceAll(new RegExp(`(?<![\\w.])${name}\\.`, "g"), `${module}.`);
  for (const [, module = "", list = ""] of code.matchAll(
    /\bfrom\s+([\w.]+)\s+import\s+([\w ,*]+)/g,
  )) {
    for (const [, own = "", name = own] of list.matchAll(/([\w*]+)(?:\s+as\s+(\w+))?/g)) {
      const called = own === "*" ? "(remove|unlink|system|popen|listdir|run|call)" : `(${name})`;
      const full = `${module}.${own === "*" ? "$1" : own}(`;
      named = named.replaceAll(new RegExp(`(?<![\\w.])${called}\\s*\\(`, "g"), full);
    }
  }
  return named;
}

/** Calls that leave a text as it is, and those by a text. */
function takeCalls(code: string): string {
  return code
    .replaceAll(
      /\b(?:os\.)?path\.(?:join|resolve|normalize|abspath)\(\s*("[^"\n]*"|'[^'\n]*')\s*\)/g,
      "$1",
    )
    .replaceAll(/(?<=[\w)])\[\s*(["'])([A-Za-z]\w*)\1\s*\]\s*\(/g, ".$2(");
}

const TEXT = /(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1/g;

function split(code: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (const match of code.matchAll(TEXT)) {
    const [whole, quote = "", text = ""] = match;
    tokens.push({ text: code.slice(at, match.index), quote: "" }, { text, quote });
    at = match.index + whole.length;
  }
  return [...tokens, { text: code.slice(at), quote: "" }];
}

function write(tokens: readonly Token[]): string {
  return tokens.map(({ text, quote }) => `${quote}${text}${quote}`).join("");
}

/** Before the parts of a path. */
const PATH_BEGINS = /\b(?:path\.(?:join|resolve)|joinpath|Path|File\.join)\(\s*$/;

/** Between two texts: what puts them together. */
function joinTexts(tokens: readonly Token[]): Token[] {
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    if (!token) break;
    const between = found.at(-1);
    const before = found.at(-2);
    if (token.quote === "" || before?.quote === undefined || before.quote === "") {
      found.push(token);
      continue;
    }
    const sign = between?.text ?? "";
    const begin = found.at(-3)?.text ?? "";
    const isPath = /^\)\s*\/\s*$/.test(sign) && /\bPath\(\s*$/.test(begin);
    const isListed = /^\s*,\s*$/.test(sign) && PATH_BEGINS.test(begin);
    if (!/^(?:\s*[+.]\s*|[ \t]*)$/.test(sign) && !isPath && !isListed) {
      found.push(token);
      continue;
    }
    found.splice(-2, 2, {
      ...before,
      text: `${before.text}${isPath || isListed ? "/" : ""}${token.text}`,
    });
    const next = tokens[at + 1];
    if (isPath && next) {
      found.push({ text: `)${next.text}`, quote: "" });
      at++;
    }
  }
  return found.map((token, index) => repeat(token, found[index - 1], found[index + 1]));
}

/** `"." * 2`. */
function repeat(token: Token, before: Token | undefined, next: Token | undefined): Token {
  if (token.quote !== "") {
    const count = /^\s*\*\s*(\d{1,2})\b/.exec(next?.text ?? "")?.[1];
    return count === undefined
      ? token
      : { ...token, text: token.text.repeat(Math.min(Number(count), MAX_REPEATS)) };
  }
  return before?.quote === undefined || before.quote === ""
    ? token
    : { ...token, text: token.text.replace(/^\s*\*\s*\d{1,2}\b/, "") };
}

const ASSIGNS =
  /(?:^|[;\n{:]|\b(?:const|let|var|my|our)\s)\s*([$@]?[A-Za-z_]\w*)\s*=\s*((?:[\w.]*\bPath\(\s*)?)$/;

/** Variables that have one text, everywhere. */
function fillVariables(tokens: readonly Token[], { program }: CodePlace): Token[] {
  const values = new Map<string, string | undefined>();
  for (const [index, { text, quote }] of tokens.entries()) {
    const assigned = quote === "" ? undefined : ASSIGNS.exec(tokens[index - 1]?.text ?? "");
    if (!assigned) continue;
    const [, name = "", path = ""] = assigned;
    const ends = path === "" ? /^\s*(?:[;\n,)}]|$)/ : /^\s*\)\s*(?:[;\n,)}]|$)/;
    const isWhole = ends.test(tokens[index + 1]?.text ?? "");
    const value = path === "" ? `${quote}${text}${quote}` : `Path(${quote}${text}${quote})`;
    const isSame = !values.has(name) || values.get(name) === value;
    values.set(name, isWhole && isSame ? value : undefined);
  }
  let filled = [...tokens];
  const interpolates = /^(?:perl|ruby|php)/.test(program);
  for (const [name, value] of values) {
    if (value === undefined) continue;
    const plain = name.replace(/^[$@]/, "");
    const sign = name.startsWith("$") ? String.raw`\$` : "";
    const use = new RegExp(`(?<![\\w.$@])${sign}${plain}\\b(?!\\s*(?:[(]|=(?!=)))`, "g");
    const inside = new RegExp(`\\$?\\{${plain}\\}${interpolates ? `|\\$${plain}\\b` : ""}`, "g");
    const bare = value.replace(/^(?:Path\()?["'`]|["'`]\)?$/g, "");
    filled = filled.map(({ text, quote }) => ({
      text: quote === "" ? text.replaceAll(use, () => value) : text.replaceAll(inside, () => bare),
      quote,
    }));
  }
  return filled.map(({ text, quote }, index) => {
    // What is still open in it has the form that a shell knows.
    const isFormat = quote !== "" && FORMATS.test(filled[index - 1]?.text ?? "");
    if (isFormat)
      return {
        text: text.replaceAll(/(?<!\$)\{([^{}]*)\}/g, (_, inner: string) => fillInner(inner)),
        quote,
      };
    if (quote === "`")
      return {
        text: text.replaceAll(/\$\{([^{}]*)\}/g, (_, inner: string) => fillInner(inner)),
        quote,
      };
    return { text: quote === "" ? text.replace(FORMATS, "") : text, quote };
  });
}

/** Before a text of Python in which braces are expanded. */
const FORMATS = /(?<![\w.])f$/;

/** What stands in braces inside of a text: another text, or what is not known. */
function fillInner(inner: string): string {
  const [, , text] = /^\s*(["'`])([^"'`]*)\1\s*$/.exec(inner) ?? [];
  return text ?? `\${${inner}}`;
}
