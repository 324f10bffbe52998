/** What YAML of workflows is made of, as far as it is used here. */
export type Yaml = string | readonly Yaml[] | { readonly [name: string]: Yaml };

interface Line {
  indent: number;
  text: string;
}

/** Maps, lists, flow lists, quoted and plain scalars, and blocks of lines. Throws for all else. */
export function readYaml(text: string): Yaml {
  const lines = text
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.trim().startsWith("#"))
    .map((line) => ({ indent: line.length - line.trimStart().length, text: line.trim() }));
  return readBlock(lines);
}

function readBlock(lines: Line[]): Yaml {
  const { indent, text } = lines[0] ?? { indent: 0, text: "" };
  if (text.startsWith("- ")) return readItems(lines, indent);
  const map: Record<string, Yaml> = {};
  while (lines[0]?.indent === indent) {
    const line = lines.shift();
    const [, name, value = ""] = /^([\w-]+):(?: (.*))?$/.exec(line?.text ?? "") ?? [];
    if (name === undefined) throw new Error(`This line is not read: ${line?.text}`);
    const isOver = (lines[0]?.indent ?? 0) <= indent;
    if (value === "|") map[name] = readLines(lines, indent);
    else map[name] = value !== "" || isOver ? readScalar(value) : readBlock(lines);
  }
  return map;
}

function readItems(lines: Line[], indent: number): Yaml[] {
  const items: Yaml[] = [];
  while (lines[0]?.indent === indent && lines[0].text.startsWith("- ")) {
    // The first entry of a map stands beside the dash.
    lines[0] = { indent: indent + 2, text: lines[0].text.slice(2) };
    items.push(readBlock(lines));
  }
  return items;
}

function readLines(lines: Line[], indent: number): string {
  const taken: string[] = [];
  while ((lines[0]?.indent ?? 0) > indent) taken.push(lines.shift()?.text ?? "");
  return taken.join("\n");
}

function readScalar(value: string): Yaml {
  if (value.startsWith("[")) return value.slice(1, -1).split(", ");
  return /^"(.*)"$/.exec(value)?.[1] ?? value;
}
