import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";
import { type BannerFacts, bannerRow, type FolderTrust } from "./banner.ts";

function banner(more: Partial<BannerFacts> = {}): string {
  return textOfRow(
    bannerRow({
      version: "0.1.0",
      model: "claude-sonnet-4-5",
      folder: "/home/ann/src/app",
      home: "/home/ann",
      trust: "trusted",
      columns: 80,
      theme: NO_COLORS,
      ...more,
    }),
  );
}

describe("the banner", () => {
  it("is one line of version, model, folder and trust", () => {
    expect(banner()).toBe("gyre 0.1.0 · claude-sonnet-4-5 · ~/src/app · trusted");
  });

  it("says nothing of trust where there is nothing to trust", () => {
    expect(banner({ trust: "nothing to trust" })).toBe(
      "gyre 0.1.0 · claude-sonnet-4-5 · ~/src/app",
    );
  });

  it("shortens a folder from the left, at a name where one fits", () => {
    const folder = "/home/ann/src/a-long-name/another/app";
    expect(banner({ folder, columns: 57 })).toBe(
      "gyre 0.1.0 · claude-sonnet-4-5 · …/another/app · trusted",
    );
    expect(banner({ folder: "/a/an-endless-name", columns: 56 })).toContain("…endless-name ·");
  });

  it("has version and model at 40 columns", () => {
    expect(banner({ columns: 40 })).toBe("gyre 0.1.0 · claude-sonnet-4-5 · …/app");
  });

  it("keeps that a folder is not trusted rather than the folder", () => {
    expect(banner({ columns: 46, trust: "not trusted" })).toBe(
      "gyre 0.1.0 · claude-sonnet-4-5 · not trusted",
    );
  });

  it("takes a home for one only up to a whole name", () => {
    expect(banner({ folder: "/home/anna" })).toContain("· /home/anna ·");
    expect(banner({ folder: "/home/ann" })).toContain("· ~ ·");
  });

  it("shows nothing that a terminal obeys", () => {
    expect(banner({ folder: "/tmp/\x1b[2Ja\nb", model: "m\x1b]0;x\x07" })).toBe(
      "gyre 0.1.0 · m · /tmp/a b · trusted",
    );
  });

  it("is never wider than the terminal", () => {
    const trusts: FolderTrust[] = ["trusted", "trusted once", "not trusted", "nothing to trust"];
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 120 }),
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "grapheme" }),
        fc.constantFrom(...trusts),
        (columns, folder, model, trust) => {
          const facts = { version: "0.1.0", model, folder: `/${folder}`, trust, columns };
          expect(widthOfRow(bannerRow({ ...facts, theme: COLORS }))).toBeLessThanOrEqual(columns);
        },
      ),
    );
  });
});
