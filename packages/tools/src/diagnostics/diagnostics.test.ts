import { copyFile, mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createSandbox, noSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import { temporaryEnv } from "../testing/temporary-env.ts";
import { Diagnostics, type DiagnosticsOptions } from "./diagnostics.ts";
import type { LanguageServer } from "./language-servers.ts";

const PROGRAM = fileURLToPath(new URL("../testing/language-server.mjs", import.meta.url));
const BIN = fileURLToPath(new URL("../../../../node_modules/.bin", import.meta.url));
const { signal } = new AbortController();
/** On a busy machine a server takes as long as it takes. */
const PATIENT = { startMs: 100_000, checkMs: 100_000 };

async function open(
  options: DiagnosticsOptions,
  { sandbox = noSandbox, path = "/usr/bin:/bin" }: { sandbox?: Sandbox; path?: string } = {},
): Promise<{ diagnostics: Diagnostics; root: string }> {
  const folder = await temporaryEnv();
  const { env } = folder;
  const own = { ...env, sandbox: () => Promise.resolve(sandbox), environment: { PATH: path } };
  const diagnostics = new Diagnostics(own, { ...PATIENT, ...options });
  onTestFinished(async () => {
    await diagnostics.close();
    await folder.remove();
  });
  return { diagnostics, root: env.workspace.root };
}

function fake(...args: string[]): LanguageServer {
  return {
    name: "fake",
    files: { ".txt": "plaintext" },
    commands: [[process.execPath, PROGRAM, ...args]],
    isChosen: true,
  };
}

describe("a server", () => {
  it.each([["--pull"], ["--push"], ["--push", "--ask"]])(
    "reports errors: %s %s",
    async (...args) => {
      const { diagnostics, root } = await open({ servers: [fake(...args)] });
      const path = join(root, "a.txt");
      await writeFile(path, "right\nnot wrong\n");
      expect(await diagnostics.describe([path], signal)).toBe(
        "fake now finds 1 error in a.txt:\na.txt:2:5 it is wrong  (7)",
      );
      await writeFile(path, "right\n");
      expect(await diagnostics.describe([path], signal)).toBeUndefined();
      await writeFile(path, "wrong\n".repeat(12));
      const text = await diagnostics.describe([path, join(root, "gone.txt")], signal);
      expect(text).toMatch(
        /^fake now finds 12 errors in a\.txt:\na\.txt:1:1 .*\n(.*\n){9}and 2 more$/,
      );
    },
  );

  it("closes what was not used for the longest: many files are checked", async () => {
    const { diagnostics, root } = await open({ servers: [fake("--pull")] });
    for (let nth = 0; nth < 30; nth++) {
      const path = join(root, `${nth % 25}.txt`);
      await writeFile(path, "wrong");
      expect(await diagnostics.describe([path], signal)).toContain("1 error");
    }
  });

  it.each(["--die", "--silent"])("that says nothing is not waited for again: %s", async (way) => {
    const limits = way === "--silent" ? { startMs: 1, checkMs: 1 } : {};
    const { diagnostics, root } = await open({ servers: [fake(way)], ...limits });
    const path = join(root, "a.txt");
    await writeFile(path, "wrong");
    for (let nth = 0; nth < 4; nth++) {
      expect(await diagnostics.describe([path], signal)).toBeUndefined();
    }
  });

  it("that is not installed, or is not for the file, is left out", async () => {
    const missing = { ...fake(), commands: [["no-such-server"]] };
    const { diagnostics, root } = await open({ servers: [missing] });
    await writeFile(join(root, "a.txt"), "wrong");
    const paths = [join(root, "a.txt"), join(root, "a.bin")];
    expect(await diagnostics.describe(paths, signal)).toBeUndefined();
    expect(paths.map((path) => diagnostics.knows(path))).toEqual([true, false]);
  });

  it("is not started without a sandbox, unless the user's settings name it", async () => {
    const { diagnostics, root } = await open({}, { path: BIN });
    await writeFile(join(root, "a.ts"), "const a: string = 1;\n");
    expect(await diagnostics.describe([join(root, "a.ts")], signal)).toBeUndefined();
  });

  it("of the project itself is not started outside of the sandbox", async () => {
    const server = { ...fake(), commands: [["own-server"]] };
    const { diagnostics, root } = await open({ servers: [server] });
    const bin = join(root, "node_modules", ".bin");
    await mkdir(bin, { recursive: true });
    await writeFile(join(bin, "own-server"), `#!/bin/sh\ntouch ${root}/ran\n`, { mode: 0o755 });
    await writeFile(join(root, "a.txt"), "wrong");
    expect(await diagnostics.describe([join(root, "a.txt")], signal)).toBeUndefined();
    await expect(realpath(join(root, "ran"))).rejects.toThrow("ENOENT");
  });
});

it("TypeScript's own server finds what the compiler finds", async () => {
  const server: LanguageServer = {
    name: "typescript",
    files: { ".ts": "typescript" },
    commands: [[join(BIN, "tsc"), "--lsp", "--stdio"]],
    isChosen: true,
  };
  const { diagnostics, root } = await open({ servers: [server] });
  await writeFile(join(root, "tsconfig.json"), '{ "compilerOptions": { "strict": true } }');
  await writeFile(join(root, "b.ts"), "export const b: number = 1;\n");
  const path = join(root, "a.ts");
  await writeFile(path, 'import { b } from "./b.js";\nexport const a: string = b;\n');
  expect(await diagnostics.describe([path], signal)).toMatch(
    /^typescript now finds 1 error in a\.ts:\na\.ts:2:14 Type 'number' is not assignable to type 'string'\. \(2322\)$/,
  );
  await writeFile(path, 'import { b } from "./b.js";\nexport const a: number = b;\n');
  expect(await diagnostics.describe([path], signal)).toBeUndefined();
});

/** A command in the sandbox has a /tmp of its own: of a clone there it sees nothing. */
const isCloneHidden = BIN.startsWith("/tmp/");

describe("in the sandbox", { tags: "bubblewrap" }, () => {
  it.skipIf(isCloneHidden)(
    "the project's own TypeScript is used, and changes nothing",
    async () => {
      const sandbox = await createSandbox({ kind: "any" });
      const { diagnostics, root } = await open({}, { sandbox });
      await mkdir(join(root, "node_modules"));
      await symlink(BIN, join(root, "node_modules", ".bin"));
      await writeFile(join(root, "a.ts"), "export const a: string = 1;\n");
      expect(await diagnostics.describe([join(root, "a.ts")], signal)).toContain("a.ts:1:14");
    },
  );

  it("a server cannot write to the workspace", async () => {
    const sandbox = await createSandbox({ kind: "any" });
    const { diagnostics, root } = await open(
      { servers: [{ ...fake(), commands: [["own-server"]] }] },
      { sandbox },
    );
    const bin = join(root, "node_modules", ".bin");
    await mkdir(bin, { recursive: true });
    const program = join(bin, "server.mjs");
    await copyFile(PROGRAM, program);
    const script = `#!/bin/sh\ntouch ${root}/ran\nexec ${process.execPath} ${program} --pull\n`;
    await writeFile(join(bin, "own-server"), script, { mode: 0o755 });
    await writeFile(join(root, "a.txt"), "wrong");
    expect(await diagnostics.describe([join(root, "a.txt")], signal)).toContain("1 error");
    await expect(realpath(join(root, "ran"))).rejects.toThrow("ENOENT");
  });
});
