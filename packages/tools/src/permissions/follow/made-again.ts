/** Folders and files that programs make again. */
const MADE_AGAIN =
  /^(?:node_modules|bower_components|dist|build|out|target|coverage|tmp|temp|\.tmp|\.cache|\.next|\.nuxt|\.output|\.turbo|\.parcel-cache|\.vite|\.svelte-kit|\.angular|__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.tox|\.nox|\.nyc_output|\.gradle|\.eslintcache|\.DS_Store|.*\.(?:egg-info|log|tmp|temp|bak|orig|rej|swp|swo|pyc|pyo|o|obj|class|tsbuildinfo)|.*~)$/;

/** Whether programs make a file or a folder of that name again. */
export function isMadeAgain(name: string): boolean {
  return MADE_AGAIN.test(name);
}

/** Whether all that `find` looks for is made again. */
export function searchesMadeAgain(args: readonly string[]): boolean {
  const names = args.filter((_, index) => /^-i?name$/.test(args[index - 1] ?? ""));
  if (args.some((arg) => arg === "!" || arg === "-not")) return false;
  return names.length > 0 && names.every(isMadeAgain) && !args.includes("-o") === names.length < 2;
}
