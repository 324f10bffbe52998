import type { Theme } from "../terminal/theme.ts";

/** The part that a piece of a program plays, which decides its color. */
export type Role = keyof Theme;

/** A piece with a beginning and an end. `open` is the source of a regular expression. */
export interface Enclosure {
  open: string;
  /** The literal characters that end it. */
  close: string;
  role: "string" | "comment";
  /** It continues in the next line. Default: it ends with its line. */
  multiline?: boolean;
  /** A backslash escapes the next character. Default: it does not. */
  escape?: boolean;
}

/** The syntax of a language. Of two matches at one place the first one counts. */
export interface Language {
  /** Patterns that begin a comment up to the end of the line. */
  lineComments: readonly string[];
  enclosures: readonly Enclosure[];
  /** Other patterns, matched before anything else. */
  patterns: readonly (readonly [pattern: string, role: Role])[];
  keywords: ReadonlySet<string>;
  types: ReadonlySet<string>;
  /** Names with a capital letter are types. */
  capitalTypes: boolean;
  /** A name before a bracket is a call. */
  calls: boolean;
  /** Numbers have a color. */
  numbers: boolean;
  /** Keywords may be written in capitals. */
  caseless: boolean;
}

const quoted = (sign: string, multiline = false): Enclosure => ({
  open: sign,
  close: sign,
  role: "string",
  multiline,
  escape: true,
});
const DOUBLE = quoted('"');
const SINGLE = quoted("'");
const QUOTES = [DOUBLE, SINGLE];
const TEMPLATE = quoted("`", true);
const TRIPLE_DOUBLE = quoted('"""', true);
const TRIPLE_SINGLE = quoted("'''", true);
/** One character in quotes, in languages where a quote can also stand alone. */
const CHARACTER: Enclosure = {
  open: "'(?=(?:\\\\.[^']*|[^\\\\'])')",
  close: "'",
  role: "string",
  escape: true,
};
const SLASHES: Enclosure = { open: "/\\*", close: "*/", role: "comment", multiline: true };
const MARKUP_COMMENT: Enclosure = { open: "<!--", close: "-->", role: "comment", multiline: true };
/** In a shell a number sign within a word does not begin a comment. */
const SPACED_HASH = "(?<![^\\s;(])#";

/** Names have no colors. */
const NO_NAMES = { capitalTypes: false, calls: false };

interface Sketch extends Partial<Omit<Language, "keywords" | "types">> {
  /** Separated by spaces. */
  keywords?: string;
  types?: string;
}

function language(sketch: Sketch): Language {
  return {
    lineComments: ["//"],
    enclosures: [SLASHES, ...QUOTES],
    patterns: [],
    capitalTypes: true,
    calls: true,
    numbers: true,
    caseless: false,
    ...sketch,
    keywords: splitWords(sketch.keywords),
    types: splitWords(sketch.types),
  };
}

function splitWords(list = ""): ReadonlySet<string> {
  return new Set(list.split(" "));
}

const C_FLOW = "break case continue default do else for goto if return switch while";
const OBJECT_WORDS =
  "abstract catch class extends false final finally implements import instanceof interface new null package private protected public static super this throw throws true try";
const C_TYPES =
  "bool byte char double float int long short void size_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t unsigned signed";
/** A key with dashes before the sign of its value. */
const keyBefore = (sign: string): readonly [string, Role] => [`[\\w.-]+(?=[ \\t]*${sign})`, "type"];

const LANGUAGES: Readonly<Record<string, Language>> = {
  typescript: language({
    enclosures: [SLASHES, ...QUOTES, TEMPLATE],
    keywords: `${C_FLOW} ${OBJECT_WORDS} as async await const debugger declare delete enum export from function get in infer is keyof let namespace of override readonly satisfies set type typeof undefined var void with yield`,
    types: "any bigint boolean never number object string symbol unknown",
  }),
  json: language({
    patterns: [['"(?:[^"\\\\]|\\\\.)*"(?=[ \\t]*:)', "type"]],
    enclosures: [SLASHES, DOUBLE],
    keywords: "true false null",
    ...NO_NAMES,
  }),
  python: language({
    lineComments: ["#"],
    patterns: [["@[\\w.]+", "call"]],
    enclosures: [TRIPLE_DOUBLE, TRIPLE_SINGLE, ...QUOTES],
    keywords:
      "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
    types: "bool bytes complex dict float frozenset int list object set str tuple type",
  }),
  go: language({
    enclosures: [SLASHES, DOUBLE, CHARACTER, { ...TEMPLATE, escape: false }],
    keywords: `${C_FLOW} chan const defer fallthrough false func go import interface iota map nil package range select struct true type var`,
    types:
      "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
  }),
  rust: language({
    patterns: [
      ["#!?\\[[^\\]]*\\]", "comment"],
      ["\\w+!(?=[\\s(\\[{])", "call"],
    ],
    enclosures: [
      SLASHES,
      { open: 'r#"', close: '"#', role: "string", multiline: true },
      { ...DOUBLE, multiline: true },
      CHARACTER,
    ],
    keywords:
      "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self static struct super trait true type union unsafe use where while",
    types:
      "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize Self String Vec Option Result",
  }),
  zig: language({
    patterns: [
      ["@\\w+", "call"],
      ["\\\\\\\\.*", "string"],
    ],
    enclosures: [DOUBLE, CHARACTER],
    keywords:
      "align and asm async await break catch comptime const continue defer else enum errdefer error export extern false fn for if inline noalias null or orelse packed pub resume return struct suspend switch test threadlocal true try undefined union unreachable usingnamespace var volatile while",
    types:
      "anyerror anytype bool comptime_int f16 f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 usize void",
  }),
  c: language({
    patterns: [["^[ \\t]*#[ \\t]*\\w+", "keyword"]],
    enclosures: [SLASHES, DOUBLE, CHARACTER],
    keywords: `${C_FLOW} alignas auto catch class const consteval constexpr concept co_await co_return co_yield decltype delete enum explicit export extern false final friend inline mutable namespace new noexcept nullptr NULL operator override private protected public register requires restrict sizeof static static_assert struct template this throw true try typedef typename union using virtual volatile`,
    types: C_TYPES,
  }),
  java: language({
    patterns: [["@\\w+", "call"]],
    enclosures: [SLASHES, TRIPLE_DOUBLE, DOUBLE, CHARACTER],
    keywords: `${C_FLOW} ${OBJECT_WORDS} assert enum native permits record sealed strictfp synchronized transient var volatile yield`,
    types: `${C_TYPES} boolean`,
  }),
  kotlin: language({
    patterns: [["@\\w+", "call"]],
    enclosures: [SLASHES, { ...TRIPLE_DOUBLE, escape: false }, DOUBLE, CHARACTER],
    keywords:
      "abstract actual annotation as break by catch class companion const constructor continue crossinline data do else enum expect external false final finally for fun get if import in infix init inline inner interface internal is lateinit noinline null object open operator out override package private protected public reified return sealed set super suspend tailrec this throw true try typealias val var vararg when where while",
  }),
  swift: language({
    patterns: [["[@#]\\w+", "call"]],
    enclosures: [SLASHES, TRIPLE_DOUBLE, DOUBLE],
    keywords:
      "actor any as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough false fileprivate final for func get guard if import in indirect init inout internal is lazy let mutating nil open operator override private protocol public repeat rethrows return self set some static struct subscript super switch throw throws true try typealias unowned var weak where while",
  }),
  csharp: language({
    patterns: [["^[ \\t]*#\\w+", "keyword"]],
    enclosures: [
      SLASHES,
      TRIPLE_DOUBLE,
      { open: '@"', close: '"', role: "string", multiline: true },
      DOUBLE,
      CHARACTER,
    ],
    keywords: `${C_FLOW} abstract as async await base catch checked class const delegate enum event explicit extern false finally fixed foreach get implicit in init interface internal is lock nameof namespace new null operator out override params partial private protected public readonly record ref required sealed set sizeof stackalloc static struct this throw true try typeof unchecked unsafe using var virtual volatile when where with yield`,
    types: `${C_TYPES} decimal dynamic object sbyte string uint ulong ushort`,
  }),
  ruby: language({
    lineComments: [SPACED_HASH],
    patterns: [
      ["(?<!:):\\w+[?!]?", "number"],
      ["@@?\\w+", "type"],
    ],
    enclosures: [
      { open: "^=begin", close: "=end", role: "comment", multiline: true },
      ...QUOTES,
      TEMPLATE,
    ],
    keywords:
      "alias and begin break case class def do else elsif end ensure extend false for if in include loop module next nil not or private protected public raise redo require require_relative rescue retry return self super then true undef unless until when while yield",
  }),
  php: language({
    lineComments: ["//", "#(?!\\[)"],
    patterns: [
      ["\\$\\w+", "type"],
      ["<\\?(?:php|=)?|\\?>", "keyword"],
    ],
    keywords: `${C_FLOW} ${OBJECT_WORDS} and array as callable clone const declare echo elseif empty endforeach endfor endif endwhile enum fn foreach function global include include_once insteadof isset list match namespace or print readonly require require_once self trait unset use var xor yield`,
    types: "bool float int iterable mixed object string void",
  }),
  shell: language({
    lineComments: [SPACED_HASH],
    patterns: [
      ["\\$(?:\\w+|[@#?*!$-]|\\{[^}]*\\})", "type"],
      ["(?<=^|[ \\t])--?[A-Za-z][\\w-]*", "number"],
      ["^[ \\t]*\\$ ", "accent"],
    ],
    enclosures: [
      { ...DOUBLE, multiline: true },
      { ...SINGLE, multiline: true, escape: false },
    ],
    keywords:
      "alias break case continue declare do done elif else esac eval exec exit export fi for function if in local read readonly return select set shift source then trap unset until while",
    ...NO_NAMES,
  }),
  sql: language({
    lineComments: ["--"],
    enclosures: [SLASHES, { ...SINGLE, multiline: true, escape: false }, DOUBLE],
    keywords:
      "add all alter and any as asc begin between by cascade case check column commit constraint create cross database default delete desc distinct drop else end except exists explain false for foreign from full function grant group having if in index inner insert intersect into is join key lateral left like limit natural not null offset on or order outer over partition primary procedure references returning revoke right rollback row rows select set table then to transaction trigger true truncate union unique update using values view when where window with",
    types:
      "bigint blob boolean char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
    capitalTypes: false,
    caseless: true,
  }),
  markup: language({
    lineComments: [],
    patterns: [
      ["</?[A-Za-z][\\w:.-]*|/?>", "keyword"],
      ["[\\w:@.-]+(?==)", "type"],
      ["&#?\\w+;", "number"],
    ],
    enclosures: [
      MARKUP_COMMENT,
      { open: '(?<==)"', close: '"', role: "string", multiline: true },
      { open: "(?<==)'", close: "'", role: "string", multiline: true },
    ],
    ...NO_NAMES,
  }),
  css: language({
    lineComments: ["(?<!:)//"],
    patterns: [
      ["@[\\w-]+", "keyword"],
      ["#[0-9a-fA-F]{3,8}\\b", "number"],
      ["-?\\d*\\.?\\d+(?:%|[a-z]+)?", "number"],
      ["[$-]{0,2}[A-Za-z][\\w-]*(?=[ \\t]*:)", "type"],
    ],
    keywords: "important inherit initial unset",
    capitalTypes: false,
  }),
  yaml: language({
    lineComments: [SPACED_HASH],
    patterns: [keyBefore(":(?:\\s|$)"), ["^---", "comment"], ["[&*][\\w-]+", "call"]],
    enclosures: QUOTES,
    keywords: "true false null yes no on off",
    ...NO_NAMES,
  }),
  toml: language({
    lineComments: [SPACED_HASH, "^[ \\t]*;"],
    patterns: [["^[ \\t]*\\[.*\\]", "keyword"], keyBefore("=")],
    enclosures: [TRIPLE_DOUBLE, { ...TRIPLE_SINGLE, escape: false }, ...QUOTES],
    keywords: "true false",
    ...NO_NAMES,
  }),
  markdown: language({
    lineComments: [],
    patterns: [
      ["^#{1,6} .*", "keyword"],
      ["^[ \\t]*(?:[-*+]|\\d+[.)]) ", "accent"],
      ["^>.*", "comment"],
      ["\\]\\([^)]*\\)", "call"],
    ],
    enclosures: [
      MARKUP_COMMENT,
      { open: "^```", close: "```", role: "string", multiline: true },
      { open: "`", close: "`", role: "string" },
    ],
    ...NO_NAMES,
  }),
  diff: language({
    lineComments: ["^(?:diff|index|\\+\\+\\+|---) "],
    patterns: [
      ["^\\+(?!\\+\\+ ).*", "added"],
      ["^-(?!-- ).*", "removed"],
      ["^@@.*", "accent"],
    ],
    enclosures: [],
    ...NO_NAMES,
    numbers: false,
  }),
  dockerfile: language({
    lineComments: ["^[ \\t]*#"],
    patterns: [["\\$(?:\\w+|\\{[^}]*\\})", "type"]],
    enclosures: QUOTES,
    keywords:
      "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
    ...NO_NAMES,
  }),
  lua: language({
    lineComments: ["--(?!\\[\\[)"],
    enclosures: [
      { open: "--\\[\\[", close: "]]", role: "comment", multiline: true },
      { open: "\\[\\[", close: "]]", role: "string", multiline: true },
      ...QUOTES,
    ],
    keywords:
      "and break do else elseif end false for function goto if in local nil not or repeat return self then true until while",
  }),
  makefile: language({
    lineComments: ["#"],
    patterns: [
      ["\\$(?:[@<^*?%$]|\\([^)]*\\)|\\{[^}]*\\})", "type"],
      ["^[\\w./%-]+(?=[^:=]*:(?!=))", "call"],
    ],
    enclosures: QUOTES,
    keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport",
    ...NO_NAMES,
  }),
};

/** Other names in fences, and file extensions. */
const ALIASES: Readonly<Record<string, string>> = {
  typescript: "ts tsx mts cts js jsx mjs cjs javascript",
  json: "jsonc json5 jsonl",
  python: "py pyi python3",
  go: "golang",
  rust: "rs",
  c: "h cpp c++ cc cxx hpp hh objc m",
  kotlin: "kt kts",
  csharp: "cs c#",
  ruby: "rb gemfile rakefile",
  shell: "bash sh zsh console shell-session fish",
  sql: "postgresql mysql sqlite",
  markup: "html htm xml svg vue svelte xhtml",
  css: "scss sass less",
  yaml: "yml",
  toml: "ini cfg conf properties",
  markdown: "md mdx",
  diff: "patch",
  dockerfile: "docker containerfile",
  makefile: "make mk",
};

const BY_NAME: ReadonlyMap<string, Language> = new Map(
  Object.entries(LANGUAGES).flatMap(([name, known]) =>
    [name, ...(ALIASES[name]?.split(" ") ?? [])].map((alias) => [alias, known] as const),
  ),
);

/** A language by its name in a fence; undefined where it is unknown. */
export function findLanguage(name: string): Language | undefined {
  return BY_NAME.get(name.toLowerCase());
}
