/** How long a button says that it has copied. */
const SHOWN_MS = 2_000;

/**
 * A button for each block of code.
 *
 * @param {(message: string) => void} announce
 */
export function addCopyButtons(announce) {
  for (const block of document.querySelectorAll(".code")) {
    const code = block.querySelector("code");
    if (code === null) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", () => void copy(code, button, announce));
    block.append(button);
  }
}

/**
 * @param {HTMLElement} code
 * @param {HTMLButtonElement} button
 * @param {(message: string) => void} announce
 */
async function copy(code, button, announce) {
  const done = await writeText(code.textContent ?? "");
  // Pages without HTTPS have no clipboard: the code is selected for the key.
  if (!done) getSelection()?.selectAllChildren(code);
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  announce(done ? "Copied" : "The code is selected. Press Ctrl+C to copy it.");
  setTimeout(() => (button.textContent = "Copy"), SHOWN_MS);
}

/** @param {string} text */
async function writeText(text) {
  if (!isSecureContext) return false;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
