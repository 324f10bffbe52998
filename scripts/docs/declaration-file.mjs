import { existsSync, readFileSync } from "node:fs";
import { format } from "oxfmt";
import { parseSync } from "rolldown/utils";

/**
 * One declaration of a name. `doc`: its doc comment without the stars. `text`: as it is
 * written, without `export` and `declare`. `uses`: the names that it speaks of.
 *
 * @typedef {"function" | "class" | "interface" | "type" | "const"} Kind
 * @typedef {{
 *   file: string, kind: Kind, doc: string | undefined, text: string, uses: readonly Lead[],
 * }} Declared
 *
 * A name of another module, by its specifier, or of the same one.
 * @typedef {{ specifier: string | undefined, name: string }} Lead
 *
 * What one file declares, imports and exports, by name. `stars`: the modules that it
 * exports all of.
 * @typedef {{
 *   declared: Map<string, Declared[]>, imports: Map<string, Lead>,
 *   exports: Map<string, Lead>, stars: string[],
 * }} Module
 *
 * @typedef {ReturnType<typeof parseSync>} Parsed
 * @typedef {Parsed["program"]["body"][number]} Statement
 * @typedef {{ type: string, start: number, end: number } & Record<string, unknown>} Node
 */

/** Lines that fit a page. What a compiler writes has no layout of its own. */
const LAYOUT = /** @type {const} */ ({ printWidth: 100, objectWrap: "collapse" });

/** @type {Readonly<Record<string, Kind>>} */
const KINDS = {
  FunctionDeclaration: "function",
  TSDeclareFunction: "function",
  ClassDeclaration: "class",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  VariableDeclaration: "const",
};

/**
 * Reads a file as the compiler writes it (`.d.ts`). Throws where it is not there, or has
 * something in it that no page could show.
 *
 * @param {string} file
 * @returns {Promise<Module>}
 */
export async function readDeclarationFile(file) {
  if (!existsSync(file)) throw new Error(`${file} is missing. Run: npx tsc -b`);
  const { code } = await format(file, readFileSync(file, "utf8"), LAYOUT);
  const parsed = parseSync(file, code, { lang: "dts" });
  const [error] = parsed.errors;
  if (error !== undefined) throw new Error(`${file}: ${error.message}`);

  /** @type {Module} */
  const found = { declared: new Map(), imports: new Map(), exports: new Map(), stars: [] };
  /**
   * @param {Statement} node
   * @param {number} start where the statement begins
   */
  const declare = (node, start) => {
    const kind = KINDS[node.type];
    if (kind === undefined) return undefined;
    const name = readName(node);
    const list = found.declared.get(name) ?? [];
    list.push({
      file,
      kind,
      doc: docBefore(start, code, parsed),
      text: printDeclaration(node, code, parsed),
      uses: findUses(node),
    });
    found.declared.set(name, list);
    return name;
  };

  for (const node of parsed.program.body) {
    switch (node.type) {
      case "ImportDeclaration":
        for (const one of node.specifiers) {
          if (one.type !== "ImportSpecifier") continue;
          const lead = { specifier: node.source.value, name: textAt(one.imported, code) };
          found.imports.set(one.local.name, lead);
        }
        break;
      case "ExportAllDeclaration":
        if (node.exported !== null) throw new Error(`${file}: cannot show \`export * as\`.`);
        found.stars.push(node.source.value);
        break;
      case "ExportNamedDeclaration": {
        const name = node.declaration === null ? undefined : declare(node.declaration, node.start);
        if (name !== undefined) found.exports.set(name, { specifier: undefined, name });
        for (const one of node.specifiers) {
          const lead = { specifier: node.source?.value, name: textAt(one.local, code) };
          found.exports.set(textAt(one.exported, code), lead);
        }
        break;
      }
      case "ExportDefaultDeclaration":
        throw new Error(`${file}: cannot show \`export default\`.`);
      default:
        declare(node, node.start);
    }
  }
  return found;
}

/**
 * @param {{ start: number, end: number }} node
 * @param {string} code
 */
function textAt({ start, end }, code) {
  return code.slice(start, end);
}

/** @param {Statement} node */
function readName(node) {
  const named = node.type === "VariableDeclaration" ? node.declarations[0] : node;
  const id = named !== undefined && "id" in named ? named.id : undefined;
  if (id?.type !== "Identifier") throw new Error(`A ${node.type} has no name.`);
  return id.name;
}

/**
 * @param {number} start
 * @param {string} code
 * @param {Parsed} parsed
 */
function commentBefore(start, code, { comments }) {
  const last = comments.findLast(({ end }) => end <= start);
  return last !== undefined && code.slice(last.end, start).trim() === "" ? last : undefined;
}

/**
 * @param {number} start
 * @param {string} code
 * @param {Parsed} parsed
 */
function docBefore(start, code, parsed) {
  const comment = commentBefore(start, code, parsed);
  if (comment?.type !== "Block" || !comment.value.startsWith("*")) return undefined;
  const text = comment.value
    .slice(1)
    .replaceAll(/^[ \t]*\* ?/gm, "")
    .trim();
  return text === "" ? undefined : text;
}

/**
 * A declaration as people read it: a class has no private members but its constructor,
 * which says that others cannot make one.
 *
 * @param {Statement} node
 * @param {string} code
 * @param {Parsed} parsed
 */
function printDeclaration(node, code, parsed) {
  let text = "";
  let at = node.start;
  for (const member of node.type === "ClassDeclaration" ? node.body.body : []) {
    if (!("key" in member) || !isPrivate(member)) continue;
    const start = commentBefore(member.start, code, parsed)?.start ?? member.start;
    text += code.slice(at, start).trimEnd();
    at = member.end;
  }
  text += code.slice(at, node.end);
  return text.replace(/^declare /, "").replace(/\{\s*\}$/, "{}");
}

/** @param {{ key: { type: string }, accessibility?: string | null, kind?: string }} member */
function isPrivate({ key, accessibility, kind }) {
  return (
    key.type === "PrivateIdentifier" || (accessibility === "private" && kind !== "constructor")
  );
}

/**
 * The names of types and values that a declaration speaks of, each once, in order.
 *
 * @param {unknown} declaration
 * @returns {Lead[]}
 */
function findUses(declaration) {
  /** @type {Map<string, Lead>} */
  const found = new Map();
  /**
   * @param {unknown} node
   * @param {string} [specifier]
   */
  const add = (node, specifier) => {
    const name = rootName(node);
    if (name !== undefined) found.set(`${specifier ?? ""} ${name}`, { specifier, name });
  };
  /** @param {unknown} value */
  const visit = (value) => {
    if (Array.isArray(value)) for (const one of value) visit(one);
    if (!isNode(value)) return;
    for (const key of ["typeName", "exprName", "expression", "superClass"]) add(value[key]);
    if (value.type === "TSImportType" && isNode(value["source"])) {
      add(value["qualifier"], String(value["source"]["value"]));
    }
    for (const child of Object.values(value)) visit(child);
  };
  visit(declaration);
  return [...found.values()];
}

/**
 * @param {unknown} node
 * @returns {string | undefined} `a` of `a` and of `a.b.c`
 */
function rootName(node) {
  if (!isNode(node)) return undefined;
  if (node.type === "Identifier") return String(node["name"]);
  return rootName(node["left"] ?? node["object"]);
}

/**
 * @param {unknown} value
 * @returns {value is Node}
 */
function isNode(value) {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}
