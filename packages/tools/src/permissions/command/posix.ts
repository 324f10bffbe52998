/** What shells without the extensions of bash may read in another way, and how to name it. */
const DIFFERENCES: readonly (readonly [RegExp, string])[] = [
  [/\$['"[]/, "A sign behind the dollar"],
  // Only the plainest of them; `$((` as well.
  [/\$\{(?!\w+\}|[@*#?$!-]\})|\$\(\((?![\d\s+*%-]*\)\))/, "What is expanded"],
  [/`/, "A backquote"],
  [/<</, "A here-document"],
  [/[<>]\(|(?<!\$)\(\(|=\(/, "A bracket"],
  [/&\s*>|\|\s*&|;\s*&/, "A sign with an ampersand"],
  [/[<>]&(?![\d-](?:[\s;|&)]|$))|\d\d[<>]/, "A redirection"],
  [/(?<!\$)\{(?!\s)/, "A brace"],
  [/\[\[|\]\]/, "A bracket"],
  [/\w\+=|\w\[/, "An assignment"],
  [
    /\b(?:time|function|select|coproc|eval|trap|source|builtin|let|declare|typeset|local)\b/,
    "A word",
  ],
  [/(?:^|[\s;|&(])\.\s/, "A word"],
  [/\\\n|\\$/, "A line that goes on"],
  [/[^\t\n -~]/, "A character"],
];

/**
 * Why a script may not mean to other shells what it means to bash; undefined where it is plain.
 * It looks at the text alone, quoted or not: it doubts too much rather than too little.
 */
export function describePosixDoubt(script: string): string | undefined {
  const found = DIFFERENCES.find(([sign]) => sign.test(script));
  return found && `${found[1]} in it means something else to "sh" than to bash.`;
}
