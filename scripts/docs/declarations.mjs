import { dirname, resolve } from "node:path";
import { readDeclarationFile } from "./declaration-file.mjs";

/**
 * @typedef {import("./declaration-file.mjs").Declared} Declared
 * @typedef {import("./declaration-file.mjs").Lead} Lead
 * @typedef {import("./declaration-file.mjs").Module} Module
 *
 * Where a name is declared. `from`: a file of declarations, or the specifier of a module
 * that is not ours.
 * @typedef {{ from: string, name: string }} Origin
 */

/**
 * Reads files of declarations (`.d.ts`) and all that they lead to, and answers what they
 * export and where that is declared.
 *
 * @param {readonly string[]} files
 * @param {ReadonlyMap<string, string>} entries the files of our own packages, by specifier
 */
export async function readDeclarations(files, entries) {
  /** @type {Map<string, Module>} */
  const modules = new Map();
  const waiting = [...files];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (modules.has(file)) continue;
    const found = await readDeclarationFile(file);
    modules.set(file, found);
    for (const specifier of listSpecifiers(found)) {
      const target = resolveTarget(file, specifier);
      if (target !== specifier) waiting.push(target);
    }
  }

  /**
   * @param {string} file
   * @param {string} specifier
   * @returns {string} the file, or the specifier of what is not ours
   */
  function resolveTarget(file, specifier) {
    if (!specifier.startsWith(".")) return entries.get(specifier) ?? specifier;
    return resolve(dirname(file), specifier.replace(/(\.d)?\.[jt]s$/, "") + ".d.ts");
  }

  /**
   * Where a name that a module exports is declared.
   *
   * @param {string} from
   * @param {string} name
   * @param {ReadonlySet<string>} seen what was asked for on the way here, and of whom
   * @returns {Origin | undefined}
   */
  function exported(from, name, seen = new Set()) {
    const at = modules.get(from);
    if (at === undefined) return { from, name };
    if (seen.has(`${from} ${name}`)) return undefined;
    const onward = new Set(seen).add(`${from} ${name}`);
    const lead = at.exports.get(name);
    if (lead?.specifier !== undefined) {
      return exported(resolveTarget(from, lead.specifier), lead.name, onward);
    }
    if (lead !== undefined) return local(from, lead.name);
    for (const specifier of at.stars) {
      const target = resolveTarget(from, specifier);
      const origin = modules.has(target) ? exported(target, name, onward) : undefined;
      if (origin !== undefined) return origin;
    }
    return undefined;
  }

  /**
   * Where a name that a module uses is declared. Nothing for names of the language.
   *
   * @param {string} from
   * @param {string} name
   * @returns {Origin | undefined}
   */
  function local(from, name) {
    const at = modules.get(from);
    if (at?.declared.has(name)) return { from, name };
    const lead = at?.imports.get(name);
    return lead === undefined ? undefined : follow(from, lead);
  }

  /**
   * @param {string} from
   * @param {Lead} lead
   */
  function follow(from, { specifier, name }) {
    return specifier === undefined
      ? local(from, name)
      : exported(resolveTarget(from, specifier), name);
  }

  /**
   * @param {string} file
   * @param {Set<string>} seen
   * @returns {Set<string>}
   */
  function collectNames(file, seen = new Set()) {
    const at = modules.get(file);
    if (at === undefined || seen.has(file)) return new Set();
    seen.add(file);
    const further = at.stars.flatMap((specifier) => [
      ...collectNames(resolveTarget(file, specifier), seen),
    ]);
    return new Set([...at.exports.keys(), ...further]);
  }

  return {
    /**
     * What a file exports, by name.
     *
     * @param {string} file
     */
    resolveExports(file) {
      /** @type {Map<string, Origin>} */
      const found = new Map();
      for (const name of collectNames(file)) {
        const origin = exported(file, name);
        if (origin !== undefined) found.set(name, origin);
      }
      return found;
    },

    /**
     * The declarations at a place, in order: several for overloads, and for a type and a
     * value of one name. None for what is not ours.
     *
     * @param {Origin} origin
     * @returns {readonly Declared[]}
     */
    declared({ from, name }) {
      return modules.get(from)?.declared.get(name) ?? [];
    },

    /**
     * Where the names are declared that a declaration uses.
     *
     * @param {Declared} declaration
     * @returns {Origin[]}
     */
    usedBy({ file, uses }) {
      return uses.flatMap((lead) => follow(file, lead) ?? []);
    },
  };
}

/**
 * @param {Module} module
 * @returns {string[]}
 */
function listSpecifiers({ declared, imports, exports, stars }) {
  const uses = [...declared.values()].flat().flatMap((one) => one.uses);
  const leads = [...imports.values(), ...exports.values(), ...uses];
  return [...stars, ...leads.flatMap(({ specifier }) => specifier ?? [])];
}
