import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { plant } from "../shared/tree.ts";
import { parseReleaseArgs, releaseChangelog, setVersions } from "./versions.mjs";

describe("npm run release", () => {
  it("publishes nothing without the flag", () => {
    expect(parseReleaseArgs(["0.2.0"], "0.1.0")).toEqual({ version: "0.2.0", isPublished: false });
    expect(parseReleaseArgs(["0.2.0", "--publish"], "0.1.0").isPublished).toBe(true);
  });

  it.each([[[]], [["next"]], [["0.2.0", "0.3.0"]], [["0.2.0", "--pubish"]]])(
    "%j is answered with how it is used",
    (args) => {
      expect(() => parseReleaseArgs(args, "0.1.0")).toThrow("Usage: npm run release -- VERSION");
    },
  );

  it("an older version is refused; the same one is the first release of it", () => {
    expect(() => parseReleaseArgs(["0.9.9"], "0.10.0")).toThrow("0.9.9 is older than 0.10.0");
    expect(parseReleaseArgs(["0.1.0"], "0.1.0").version).toBe("0.1.0");
  });

  it("gives the newest section of the changelog its version and day", () => {
    const text =
      "# Changelog\n\n## 0.1.0, not released\n\n### Added\n\n- Tea.\n\n## 0.0.1, 2026-01-01\n";
    expect(releaseChangelog(text, "0.2.0", "2026-11-16")).toBe(
      text.replace("0.1.0, not released", "0.2.0, 2026-11-16"),
    );
    expect(() => releaseChangelog("## 0.1.0, not released\n", "0.2.0", "")).toThrow("says nothing");
    expect(() => releaseChangelog("## 0.1.0, 2026-01-01\n", "0.2.0", "")).toThrow("no section");
  });

  it("sets the version of all packages, of what they need of each other, and of the lockfile", () => {
    const own = { "@gyre/ai": "0.1.0", zod: "4.6.7" };
    const root = plant({
      "package.json": { name: "root", version: "0.1.0" },
      "package-lock.json": {
        version: "0.1.0",
        packages: {
          "": { version: "0.1.0" },
          "packages/agent": { version: "0.1.0", dependencies: own },
          "node_modules/zod": { version: "4.6.7" },
        },
      },
      "packages/ai/package.json": { name: "@gyre/ai", version: "0.1.0" },
      "packages/agent/package.json": { name: "@gyre/agent", version: "0.1.0", dependencies: own },
    });
    const read = (file: string): unknown => JSON.parse(readFileSync(join(root, file), "utf8"));
    const files = ["package.json", "package-lock.json", "packages/ai/package.json"];
    setVersions(root, [...files, "packages/agent/package.json"], "0.2.0");
    const needed = { "@gyre/ai": "0.2.0", zod: "4.6.7" };
    expect(read("package.json")).toMatchObject({ version: "0.2.0" });
    expect(read("packages/agent/package.json")).toMatchObject({
      version: "0.2.0",
      dependencies: needed,
    });
    expect(read("package-lock.json")).toEqual({
      version: "0.2.0",
      packages: {
        "": { version: "0.2.0" },
        "packages/agent": { version: "0.2.0", dependencies: needed },
        "node_modules/zod": { version: "4.6.7" },
      },
    });
  });
});
