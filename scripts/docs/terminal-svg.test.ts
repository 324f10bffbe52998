import { describe, expect, it } from "vitest";
import { drawFilm, drawStill } from "./terminal-svg.mjs";

const CAPTION = { columns: 20, title: "gyre", about: "What <this> shows" };
const row = (
  text: string,
  look = {},
): { text: string; column: number; columns: number; look: object } => ({
  text,
  column: 0,
  columns: text.length,
  look,
});

describe("a picture of a terminal", () => {
  it("has what is for readers as text, escaped", () => {
    const drawn = drawStill({ rows: [[row("a < b && c")]] }, CAPTION);
    expect(drawn).toContain(">a &lt; b &amp;&amp; c</text>");
    expect(drawn).toContain("<title>What &lt;this&gt; shows</title>");
  });

  it("draws looks, and of colors only those that are used", () => {
    const look = { foreground: 2, bold: true, underline: true } as const;
    const drawn = drawStill({ rows: [[row("green", look)]] }, CAPTION);
    expect(drawn).toContain('class="b u c2"');
    expect(drawn).toContain(".c2{");
    expect(drawn).not.toContain(".c1{");
  });

  it("gives what is inverse a ground in its color", () => {
    const drawn = drawStill(
      { rows: [[row("on", { foreground: "#aabbcc", inverse: true })]] },
      CAPTION,
    );
    expect(drawn).toMatch(/<rect [^>]*width="16.8"[^>]*fill="#aabbcc"\/>/);
  });

  it("puts what follows a wide character two columns behind it", () => {
    const drawn = drawStill({ rows: [[{ ...row("日x"), columns: 3 }]] }, CAPTION);
    expect(drawn).toContain('<text x="14" y="14.5">日</text><text x="30.8" y="14.5">x</text>');
  });
});

describe("a film of a terminal", () => {
  const frames = [
    { rows: [[row("one")], [row("same")]], ms: 500 },
    { rows: [[row("two")], [row("same")]], cursor: { row: 0, column: 3 }, ms: 1_500 },
  ];
  const drawn = drawFilm(frames, CAPTION);

  it("draws a row once, however many frames have it", () => {
    expect(drawn.split(">same<")).toHaveLength(2);
    expect(drawn.split('<use href="#r1" y="20"/>')).toHaveLength(3);
  });

  it("shows each frame in its time", () => {
    expect(drawn).toContain("animation:f 2.00s step-end infinite");
    expect(drawn).toContain("0%{transform:translateX(0px)}25%{transform:translateX(-196px)}");
  });

  it("stands still at its last frame where no motion is wanted", () => {
    expect(drawn).toContain(".f{transform:translateX(-196px);");
    expect(drawn).toContain("@media (prefers-reduced-motion:reduce){.f{animation:none}}");
  });

  it("has no script", () => {
    expect(drawn).not.toContain("<script");
  });
});
