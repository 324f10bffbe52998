// `npm start`: the agent, where there is a terminal; else the demo, which ends by itself.
// The program runs in this process, so that its signals and its exit code are its own.
const isAtTerminal = process.stdin.isTTY && process.stdout.isTTY;
if (!isAtTerminal) process.argv.splice(2, 0, "demo");
await import(new URL("../../packages/cli/bundle/gyre.js", import.meta.url).href);
