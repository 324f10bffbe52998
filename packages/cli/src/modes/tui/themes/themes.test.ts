import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COLORS } from "../terminal/theme.ts";
import { parseBackground, readColorVariable } from "./background.ts";
import { chooseTheme } from "./choose.ts";
import { parseStyle } from "./styles.ts";
import { loadTheme } from "./themes.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "gyre-themes-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const cwd = (): string => join(root, "work");
const env = (more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  HOME: join(root, "home"),
  TERM: "xterm-256color",
  ...more,
});

function write(path: string, content: unknown): void {
  const at = join(root, path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, typeof content === "string" ? content : JSON.stringify(content));
}

const load = (name: string, more?: Readonly<Record<string, string>>) =>
  loadTheme(name, { env: env(more), cwd: cwd() });

describe("a style", () => {
  it.each([
    ["bold cyan", "1;36"],
    ["bright-red on 236", "91;48;5;236"],
    ["208", "38;5;208"],
    ["default on bright-black", "39;100"],
    ["Italic  UNDERLINE", "3;4"],
    ["#ff8800", "38;2;255;136;0"],
    ["on #000000", "48;2;0;0;0"],
  ])("%s", (text, style) => {
    expect(parseStyle(text, true)).toBe(style);
  });

  it("is one of 256 colors where the terminal has no more", () => {
    expect(parseStyle("#ff8800", false)).toBe("38;5;208");
    expect(parseStyle("on #000000", false)).toBe("48;5;16");
  });

  it.each([
    "",
    "blu",
    "on",
    "256",
    "#ff88",
    "1;36",
    "\x1b[31m",
    "red\x1b]0;x\x07",
    "bright-",
    "__proto__",
  ])("is not %j", (text) => {
    expect(parseStyle(text, true)).toBeUndefined();
  });
});

describe("the background", () => {
  it.each([
    ["11;rgb:ffff/ffff/ffff", "light"],
    ["11;rgb:fd/f6/e3", "light"],
    ["11;rgb:0000/0000/0000", "dark"],
    ["11;rgb:1e1e/1e1e/2e2e", "dark"],
    ["11;rgba:0000/0000/0000/ffff", "dark"],
    ["11;?", undefined],
    ["10;rgb:ffff/ffff/ffff", undefined],
  ])("%s is %s", (answer, background) => {
    expect(parseBackground(answer)).toBe(background);
  });

  it.each([
    ["15;0", "dark"],
    ["0;15", "light"],
    ["0;default;15", "light"],
    ["15;default", undefined],
    [undefined, undefined],
  ])("COLORFGBG=%s is %s", (value, background) => {
    expect(readColorVariable(value)).toBe(background);
  });

  it("is what the terminal answers, else what COLORFGBG says, else unknown", () => {
    const choose = (answer: string | undefined, variable?: string) =>
      chooseTheme({
        theme: "auto",
        answer,
        env: env(variable === undefined ? {} : { COLORFGBG: variable }),
        cwd: cwd(),
      });
    expect(choose("11;rgb:ffff/ffff/ffff", "15;0")).toEqual({ styles: load("light") });
    expect(choose(undefined, "15;0")).toEqual({ styles: load("dark") });
    expect(choose(undefined)).toEqual({ styles: {} });
  });
});

describe("a theme", () => {
  it("has its own colors where the terminal has 256, and those of the terminal elsewhere", () => {
    expect(load("light")).not.toEqual(load("dark"));
    expect(load("light", { TERM: "linux" })).toEqual({});
  });

  it("is a file of the user, else of the project, on top of a base", () => {
    write("work/.gyre/themes/sea.json", { base: "dark", colors: { accent: "blue" } });
    expect(load("sea")).toEqual({ ...load("dark"), accent: "34" });
    write("home/.config/gyre/themes/sea.json", { colors: { accent: "bold 208" } });
    expect(load("sea")).toEqual({ accent: "1;38;5;208" });
  });

  it("can change every style that there is", () => {
    const colors = Object.fromEntries(Object.keys(COLORS).map((key) => [key, "red"]));
    write("home/.config/gyre/themes/red.json", { colors });
    expect(Object.values(load("red")).every((style) => style === "31")).toBe(true);
  });

  it.each([
    [{ colors: { accent: "blu" } }, /"accent" must be a text such as "bold cyan".*It is "blu"\./],
    [{ colors: { accent: 5 } }, /"accent" must be .*It is 5\./],
    [{ colors: { acent: "red" } }, /nothing called "acent"\. There are: strong, /],
    [{ colors: { accent: "\x1b[2J" } }, /It is "\\u001b\[2J"\./],
    [{ base: "blue" }, /"base" must be "light" or "dark"\. It is "blue"\./],
    [{ colors: [], base: "dark" }, /must be an object such as/],
    [[], /must be an object such as/],
    [{ accent: "red" }, /has "base" and "colors", and no "accent"\./],
    ["{", /is not JSON: /],
  ])("that is wrong says what and where: %j", (content, message) => {
    write("home/.config/gyre/themes/mine.json", content);
    expect(() => load("mine")).toThrow(message);
    expect(() => load("mine")).toThrow(join("themes", "mine.json"));
    const { styles, problem } = chooseTheme({
      theme: "mine",
      answer: undefined,
      env: env(),
      cwd: cwd(),
    });
    expect(styles).toEqual({});
    expect(problem).toMatch(message);
  });

  it("that is not there is named, with where it was looked for", () => {
    mkdirSync(cwd(), { recursive: true });
    expect(() => load("sky")).toThrow(/There is no theme "sky": neither .*sky\.json nor \.gyre/);
  });
});
