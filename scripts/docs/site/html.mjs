/** @type {Readonly<Record<string, string>>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text for an element or for an attribute in double quotes. @param {string} text */
export function escapeHtml(text) {
  return text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
