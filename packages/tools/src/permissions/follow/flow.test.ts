import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openWorkspace } from "../../workspace/workspace.ts";
import { commandParts } from "../command/parts.ts";
import { inspectCode } from "../danger/code.ts";
import { Drafts } from "./drafts.ts";
import { explainDanger } from "../danger/explain.ts";
import { Flow } from "./flow.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-flow-")));
  mkdirSync(join(root, "src/lib"), { recursive: true });
  mkdirSync(join(root, "docs"));
  for (const name of ["a.txt", "src/a.ts", "src/b.ts", "src/lib/deep.ts"])
    writeFileSync(join(root, name), "");
  symlinkSync("src/a.ts", join(root, "link"));
});
afterAll(() => rmSync(root, { recursive: true }));

/** The commands of a line, each with the folders that it may run in. */
function follow(line: string): string[] {
  const flow = new Flow({ root, cwd: "." }, new Drafts());
  for (let knowledge = -1; knowledge !== flow.knowledge;) {
    knowledge = flow.knowledge;
    flow.begin();
    commandParts(line, { expander: flow });
  }
  flow.begin();
  const { parts } = commandParts(line, { expander: flow });
  return parts.map(({ text, folders = [] }) => `${folders.join(" or ")}: ${text}`);
}

it.each([
  ["cd src && ls", [".: cd src", "src: ls"]],
  ["cd src; cd ..; ls", [".: cd src", "src: cd ..", ".: ls"]],
  ["(cd src && ls); pwd", [".: cd src", "src: ls", ".: pwd"]],
  [
    "(cd src; (cd lib; ls); ls); ls",
    [".: cd src", "src: cd lib", "src/lib: ls", "src: ls", ".: ls"],
  ],
  [
    "if test -d x; then cd src; ls; fi; pwd",
    [".: test -d x", ".: cd src", "src: ls", ". or src: pwd"],
  ],
  ["npm test && cd src && ls; pwd", [".: npm test", ".: cd src", "src: ls", "src or .: pwd"]],
  ["mkdir -p x && cd src && ls; pwd", [".: mkdir -p x", ".: cd src", "src: ls", "src: pwd"]],
  ["cd src || exit 1; ls", [".: cd src", ".: exit 1", "src: ls"]],
  ["cd src && ls & pwd", [".: cd src", "src: ls", ".: pwd"]],
  ["cd src && ls & (pwd)", [".: cd src", "src: ls", ".: pwd"]],
  ["cd src | ls", [".: cd src", ".: ls"]],
  ["cd none; ls", [".: cd none", "none or .: ls"]],
  ["bash -c 'cd src; ls'; pwd", [".: cd src", "src: ls", ".: bash -c 'cd src; ls'", ".: pwd"]],
  ["eval 'cd src'; ls", [".: cd src", ".: eval 'cd src'", ". or src: ls"]],
  ["pushd src; popd; ls", [".: pushd src", "src: popd", "src or .: ls"]],
])("knows where the commands of %j run", (line, expected) => {
  expect(follow(line)).toEqual(expected);
});

it.each([
  ["x=a; cat $x.txt", ["x=a", "cat a.txt"]],
  ["x=a y=$x; z=$y; cat $z", ["x=a y=$x", "z=$y", "cat a"]],
  [
    "for f in src/*.ts; do cp $f ${f%.ts}.js; done",
    ["cp src/a.ts src/a.js", "cp src/b.ts src/b.js"],
  ],
  ["cat $y; y=a", ["cat a", "y=a"]],
  ["f() { cat $1; }; f a b", ["cat a", "cat b", "f a b"]],
  ["echo a b | xargs rm", ["echo a b", "rm a b", "xargs rm"]],
  ["printf '%s\\n' a b | xargs rm", ["printf '%s\\n' a b", "rm a b", "xargs rm"]],
  [
    "find src -name '*.ts' -maxdepth 1 | xargs wc",
    ["find src -name '*.ts' -maxdepth 1", "wc src/a.ts src/b.ts", "xargs wc"],
  ],
  [
    "find . -type l -exec cat {} \\;",
    ["cat ./link", "cat {}", "find . -type l -exec cat '{}' ';'"],
  ],
  ["ls src/lib | xargs rm", ["ls src/lib", "rm deep.ts", "xargs rm"]],
  ["read -r x <<< a; cat $x", ["read -r x", "cat a"]],
  ["a=(x y); cat ${a[0]}", ["a=(x y)", "cat x", "cat y"]],
  ["echo 'cat a' | bash", ["echo 'cat a'", "cat a", "bash"]],
  ["echo cat a > s; bash < s", ["echo cat a", "cat a", "bash"]],
  ["cat $(dirname src/a.ts)", ["dirname src/a.ts", "cat src"]],
  ["cat $unknown", ["cat $unknown"]],
  ["cat src/*.ts", ["cat src/a.ts src/b.ts"]],
  // All of the workspace stays what it is, whatever is in it.
  ["rm *", ["rm a.txt docs link src", "rm *"]],
  ["cd src; rm *", ["cd src", "rm a.ts b.ts lib"]],
  ["cp a ${x:-b}", ["cp a b", "cp a ${x:-b}"]],
])("knows what %j runs", (line, expected) => {
  const texts = follow(line).map((each) => each.slice(each.indexOf(": ") + 2));
  expect(texts).toEqual(expected);
});

const REPEATED = 2_000;

it.each([
  ["braces", `echo ${"{a,b}".repeat(REPEATED)}`],
  ["braces in braces", `echo ${"{a,".repeat(REPEATED)}${"}".repeat(REPEATED)}`],
  ["substitutions", `echo ${"$(echo ".repeat(40)}x${")".repeat(40)}`],
  [
    "variables of many values",
    `for x in {1..64}; do for y in {1..64}; do ${"cat $x $y; ".repeat(50)} done; done`,
  ],
  [
    "a script that runs itself",
    `for x in ${Array.from({ length: 60 }, (_, at) => `'bash -c "$x" ${at}'`).join(" ")}; do bash -c "$x"; done`,
  ],
  ["stars", `ls ${"a*".repeat(REPEATED)}`],
  ["quotes", `x="${"'".repeat(REPEATED)}"; cat $x`],
  ["functions", "f() { g; }; g() { f; }; f; g; ".repeat(100)],
  ["assignments", Array.from({ length: 200 }, (_, at) => `x${at}=$x${at + 1}`).join(";")],
  ["lines", "cd src; cd ..; ".repeat(300)],
  ["pipes", `echo a${" | cat".repeat(REPEATED)} | xargs rm`],
  ["a list in code", `python3 -c "import subprocess; x = [${"'a'  ".repeat(500)}"`],
  ["calls in code", `python3 -c "${"open( ".repeat(1_500)}"`],
  ["sockets in code", `python3 -c "${"socket ".repeat(1_000)}"`],
])("comes to an end with many %s", async (_name, line) => {
  const workspace = await openWorkspace(root);
  const ground = { cwd: ".", workspace, isConfined: true, root, since: Date.now() };
  const danger = await explainDanger([line], ground);
  await workspace.close();
  expect(danger === undefined || typeof danger.why === "string").toBe(true);
});

it("code that is as long as a file may be is inspected in a moment", () => {
  for (const piece of ["open('a', ", "socket ", "['a'  ", "rename('a', ", "print > ", '"']) {
    const use = inspectCode(piece.repeat(6_000), {
      program: piece.startsWith("print") ? "awk" : "python3",
      args: [],
    });
    expect(use.needsNetwork).toBe(false);
  }
});
