// `npm start`: the agent, where there is a terminal; else the demo, which ends by itself. A command, such as
// `npm start -- runs list`, needs no terminal.
// The program runs in this process, so that its signals and its exit code are its own.
const isAtTerminal = process.stdin.isTTY && process.stdout.isTTY;
const hasCommand = /^[a-z]/.test(process.argv[2] ?? "");
if (!isAtTerminal && !hasCommand) process.argv.splice(2, 0, "demo");
await import(new URL("../../packages/cli/bundle/gyre.js", import.meta.url).href);
