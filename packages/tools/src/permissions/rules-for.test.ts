import { expect, it } from "vitest";
import type { Danger } from "./danger/explain.ts";
import { rulesFor } from "./rules-for.ts";

const rules = (command: string, danger?: Danger["kind"]): Promise<string[] | undefined> =>
  rulesFor({
    tool: "shell",
    isConfined: true,
    access: { kind: "run", targets: [command], summary: "" },
    ...(danger && { danger: { kind: danger, why: "" } }),
  });

it("a rule is for a program with its command, and whatever follows", async () => {
  expect(await rules("npm install left-pad")).toEqual([
    "shell(npm install)",
    "shell(npm install *)",
  ]);
  expect(await rules("npm run build -- --fast")).toEqual([
    "shell(npm run build)",
    "shell(npm run build *)",
  ]);
  expect(await rules("eslint src")).toEqual(["shell(eslint)", "shell(eslint *)"]);
});

it("there is one for each part of a command line", async () => {
  expect(await rules("cd app && npm test | tail -5")).toEqual([
    "shell(cd *)",
    "shell(npm test)",
    "shell(npm test *)",
    "shell(tail)",
    "shell(tail *)",
  ]);
});

it("programs that do whatever they are given have no prefix", async () => {
  expect(await rules("node build.js")).toEqual(["shell(node build.js)"]);
  expect(await rules("bash -c 'ls'")).toEqual(["shell(ls)", "shell(ls *)"]);
  expect(await rules("make && python3 x.py")).toBeUndefined();
});

it("there is none for what destroys something", async () => {
  expect(await rules("git push --force", "destructive")).toBeUndefined();
  expect(await rules("sudo ls", "destructive")).toBeUndefined();
});

it("without a sandbox a rule is for the command as it is: no other would allow it", async () => {
  const access = { kind: "run", targets: ["npm test"], summary: "" } as const;
  expect(await rulesFor({ tool: "shell", access })).toEqual(["shell(npm test)"]);
});
