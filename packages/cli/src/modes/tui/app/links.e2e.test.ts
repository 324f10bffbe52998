import { expect, it } from "vitest";
import { ask, type OpenOptions, terminalWorld } from "../../../testing/terminal-world.ts";

// Links of answers and calls, in the built program and a real terminal.

const { open } = terminalWorld();

const SCRIPT = [
  { say: [{ call: "read", arguments: { path: "src/cart.ts" } }] },
  { say: "It is in src/cart.ts:1, see https://example.org/docs." },
];
const FILES = { "src/cart.ts": "export const cart = [];\n" };

const LINK = new RegExp(String.raw`\x1b\]8;;([^\x07]+)\x07([^\x1b]*)`, "g");

async function play(env: Record<string, string>): Promise<string> {
  const options: OpenOptions = { files: FILES, env, args: ["--mode", "auto", "--sandbox", "none"] };
  const { run } = await open(SCRIPT, options);
  ask(run, "Where is it?");
  await run.until("see https://example.org/docs.");
  expect(run.screen().join("\n")).toContain("It is in src/cart.ts:1, see");
  return run.bytes.toString("utf8");
}

it("files and addresses lead where they say, in a terminal that has links", async () => {
  const written = await play({ TERM: "xterm-ghostty", TERM_PROGRAM: "ghostty" });
  const links = [...written.matchAll(LINK)].map(([, target = "", text = ""]) => [target, text]);
  const files = links.filter(([target = ""]) => target.startsWith("file://"));
  expect(files.every(([target = ""]) => target.endsWith("/shop/src/cart.ts"))).toBe(true);
  // The call, and the answer.
  expect(files.map(([, text]) => text)).toEqual(
    expect.arrayContaining(["src/cart.ts", "src/cart.ts:1"]),
  );
  expect(links.map(([target]) => target)).toContain("https://example.org/docs");
});

it("nothing is written for them elsewhere, as in tmux without links", async () => {
  const written = await play({
    TERM: "tmux-256color",
    TERM_PROGRAM: "tmux",
    TMUX: "/tmp/x,1,0",
    TERM_PROGRAM_VERSION: "3.3",
  });
  expect(written).not.toContain("\u001b]8;");
});
