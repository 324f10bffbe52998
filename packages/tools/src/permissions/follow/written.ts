/** Run what is written in their arguments, or in what they read. */
const INTERPRETERS =
  /^(?:node|nodejs|bun|deno|tsx|ts-node|python[\d.]*|py|pypy\d*|perl|ruby|php|lua|Rscript|julia|awk|gawk|mawk|nawk)$/;

/** Code that writes a file from its beginning, with the path in the group `path`. */
const WRITES = [
  /\bopen\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*,\s*(?:mode\s*=\s*)?["'][^"']*[wx]/g,
  /\bPath\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*\)\.write_(?:text|bytes)\b/g,
  /\b(?:writeFile|createWriteStream|truncate)(?:Sync)?\(\s*(?<q>["'`])(?<path>[^"'`\n]+)\k<q>/g,
  /\b(?:copy|copyfile|copy2|copyFileSync|cpSync|renameSync|rename|replace|move)\s*\(?\s*["'][^"']*["']\s*,\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>/g,
  /\bos\.open\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>[^)\n]*O_TRUNC/g,
  /\btruncate\s*\(?\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*,/g,
  /\brename\s*\(?\s*["'][^"']*["']\s*,\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>/g,
  /\bwritefile\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>/g,
  /^\.(?:output|once|save|backup|log)\s+(?<q>)(?<path>[^\s"'|]+)/gm,
  /\bfileinput\.input\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>[^)\n]{0,200}\binplace\b/g,
  /\b(?:File|IO|Bun|Deno)\.(?:bin)?write\w*\s*\(?\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>/g,
  // Whatever opens it: an archive, a log, a file by its number.
  /\b\w+\(\s*(?<q>["'`])(?<path>[^"'`\n]+)\k<q>\s*,\s*(?:mode\s*=\s*)?["'][wx][bt+]?["']/g,
  /\bfilename\s*=\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>[^)\n]{0,200}\bfilemode\s*=\s*["'][wx]/g,
  /\bPath\(\s*(?<q>["'])[^"'`\n]+\k<q>\s*\)\.(?:replace|rename)\(\s*["'](?<path>[^"'`\n]+)["']/g,
  /\bPath\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*\)\.open\(\s*["'][wx]/g,
  /\bopen\b[^;\n]{0,200}?(?<q>["'])\+?>\s*(?<path>[^>"']+?)\k<q>/g,
  /\bopen\b[^;\n]{0,200}?["']\+?>["']\s*,\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>/g,
];

/** Whether a program runs code that stands in the command line. */
export function isInterpreter(program: string): boolean {
  return INTERPRETERS.test(program);
}

/** Files that code writes, whatever it does to them. */
export function findWritten(code: string): string[] {
  return findPaths(code, WRITES);
}

/** What is in the group `path` of each match. */
export function findPaths(code: string, patterns: readonly RegExp[]): string[] {
  return patterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map(({ groups }) => groups?.["path"] ?? ""),
  );
}
