import { parseAst } from "rolldown/parseAst";

/**
 * `specifier` is undefined where a dynamic import is given something else than a
 * string. `typeOnly`: nothing of it is left at run time.
 *
 * @typedef {{ specifier: string | undefined, typeOnly: boolean, line: number }} Import
 * @typedef {{ name: string, line: number }} GlobalUse
 * @typedef {{ type: string, start: number } & Record<string, unknown>} Node
 */

/** Globals that Node has and a browser has not. */
const NODE_GLOBALS = new Set([
  "process",
  "Buffer",
  "global",
  "require",
  "__dirname",
  "__filename",
  "setImmediate",
  "clearImmediate",
  "NodeJS",
]);

/**
 * Finds what a TypeScript module imports, in every way that there is to say it, and
 * which of Node's globals it uses. A name that the module declares itself is its own.
 *
 * @param {string} source
 * @param {string} file for the message of a syntax error, which is thrown
 * @returns {{ imports: Import[], nodeGlobals: GlobalUse[] }}
 */
export function readModule(source, file) {
  const program = /** @type {Node} */ (
    /** @type {unknown} */ (parseAst(source, { lang: "ts" }, file))
  );
  const lineOf = lineFinder(source);
  /** @type {Import[]} */
  const imports = [];
  /** @type {GlobalUse[]} */
  const uses = [];
  /** @type {Set<string>} */
  const declared = new Set();

  for (const match of source.matchAll(/^\/\/\/\s*<reference\s+types="([^"]+)"/gm)) {
    imports.push({ specifier: match[1], typeOnly: true, line: lineOf(match.index) });
  }
  walk(program, (node, parent, key) => {
    const line = lineOf(node.start);
    const from = importedBy(node);
    if (from !== undefined) imports.push({ ...from, line });
    if (node.type !== "Identifier" || typeof node["name"] !== "string") return;
    if (declares(parent, key)) declared.add(node["name"]);
    else if (NODE_GLOBALS.has(node["name"]) && !isMemberName(parent, key)) {
      uses.push({ name: node["name"], line });
    }
  });
  return { imports, nodeGlobals: uses.filter(({ name }) => !declared.has(name)) };
}

/**
 * @param {Node} node
 * @returns {Omit<Import, "line"> | undefined}
 */
function importedBy(node) {
  switch (node.type) {
    case "ImportDeclaration":
      return { specifier: literal(node["source"]), typeOnly: node["importKind"] === "type" };
    case "ExportAllDeclaration":
    case "ExportNamedDeclaration":
      if (!isNode(node["source"])) return undefined;
      return { specifier: literal(node["source"]), typeOnly: node["exportKind"] === "type" };
    case "ImportExpression":
      return { specifier: literal(node["source"]), typeOnly: false };
    case "TSImportType":
      return { specifier: literal(node["source"]), typeOnly: true };
    case "TSExternalModuleReference":
      return { specifier: literal(node["expression"]), typeOnly: false };
    case "CallExpression": {
      const [callee, argument] = [node["callee"], /** @type {unknown[]} */ (node["arguments"])[0]];
      const isRequire = isNode(callee) && callee["name"] === "require";
      return isRequire ? { specifier: literal(argument), typeOnly: false } : undefined;
    }
    default:
      return undefined;
  }
}

/**
 * Whether an identifier in this place gives a name to something.
 *
 * @param {Node | undefined} parent
 * @param {string} key
 */
function declares(parent, key) {
  switch (parent?.type) {
    case "ArrayPattern":
    case "RestElement":
      return true;
    case "AssignmentPattern":
      return key === "left";
    case "Property":
      return parent["inPattern"] === true && key === "value";
    case "ImportSpecifier":
    case "ImportDefaultSpecifier":
    case "ImportNamespaceSpecifier":
      return key === "local";
    default:
      return key === "params" || key === "param" || key === "id";
  }
}

/**
 * Whether an identifier in this place is the name of a member, not a reference.
 *
 * @param {Node | undefined} parent
 * @param {string} key
 */
function isMemberName(parent, key) {
  if (parent?.["computed"] === true) return false;
  switch (parent?.type) {
    case "MemberExpression":
      return key === "property";
    case "TSQualifiedName":
      return key === "right";
    case "ImportSpecifier":
      return key === "imported";
    case "ExportSpecifier":
      return key === "exported";
    default:
      return key === "key" || key === "label";
  }
}

/**
 * @param {Node} node
 * @param {(node: Node, parent: Node | undefined, key: string) => void} visit
 * @param {Node} [parent]
 * @param {string} [key]
 */
export function walk(node, visit, parent, key = "") {
  visit(node, parent, key);
  for (const [name, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (!isNode(child)) continue;
      if (node.type === "ObjectPattern" && child.type === "Property") child["inPattern"] = true;
      walk(child, visit, node, name);
    }
  }
}

/**
 * @param {unknown} value
 * @returns {value is Node}
 */
function isNode(value) {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

/** @param {unknown} node */
function literal(node) {
  return isNode(node) && typeof node["value"] === "string" ? node["value"] : undefined;
}

/** @param {string} source */
export function lineFinder(source) {
  const starts = [0];
  for (const match of source.matchAll(/\n/g)) starts.push(match.index + 1);
  /** @param {number} offset */
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}
