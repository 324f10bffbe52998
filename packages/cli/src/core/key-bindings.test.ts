import { describe, expect, it } from "vitest";
import { listKeyGroups } from "../slash-commands/help.ts";
import { formatKeyLabel, KeyBindings } from "./key-bindings.ts";

describe("keys that are set", () => {
  it("take the place of the usual ones of their action, and of other actions", () => {
    const keys = new KeyBindings({ expand: "Ctrl+A", suspend: [], lineEnd: ["end", "ctrl+l"] });
    expect(keys.findForProgram("ctrl+a")).toBe("expand");
    expect(keys.findForProgram("ctrl+o")).toBeUndefined();
    // The prompt comes first, so it has to let it pass.
    expect(keys.findForPrompt("ctrl+a")).toBeUndefined();
    expect(keys.list("lineStart")).toEqual(["home"]);
    expect(keys.findForProgram("ctrl+z")).toBeUndefined();
    expect(keys.label("suspend")).toBeUndefined();
    expect(keys.findForPrompt("ctrl+l")).toBe("lineEnd");
    expect(keys.findForPrompt("ctrl+e")).toBeUndefined();
  });

  it("of what only has what the prompt leaves are shared with it", () => {
    const keys = new KeyBindings({ background: "ctrl+f" });
    expect(keys.findForProgram("ctrl+f")).toBe("background");
    expect(keys.findForPrompt("ctrl+f")).toBe("right");
    expect(keys.findForPrompt("ctrl+b")).toBe("left");
  });
});

it.each([
  ["ctrl+o", "Ctrl+O"],
  ["escape", "Esc"],
  ["ctrl+shift+-", "Ctrl+Shift+-"],
  ["ctrl++", "Ctrl++"],
  ["alt+pageUp", "Alt+PageUp"],
  ["ctrl+ ", "Ctrl+Space"],
  ["f5", "F5"],
])("%s is shown as %s", (key, label) => {
  expect(formatKeyLabel(key)).toBe(label);
});

describe("/help", () => {
  const find = (settings: ConstructorParameters<typeof KeyBindings>[0], about: string) =>
    listKeyGroups(new KeyBindings(settings))
      .flatMap(({ keys }) => keys)
      .find((row) => row.about === about)?.keys;

  it("shows keys as they are set", () => {
    const about = "show what is cut in full, or in short again";
    expect(find({}, about)).toBe("Ctrl+O");
    expect(find({ expand: ["f2", "ctrl+x"] }, about)).toBe("F2, Ctrl+X");
    expect(find({ expand: [] }, about)).toBe("no key");
    expect(find({ wordLeft: "alt+h" }, "wordLeft")).toBe("Alt+H");
    expect(find({ interrupt: "f1" }, "the tree of this session")).toBe("F1 F1");
    expect(find({ tree: "f3" }, "the tree of this session")).toBe("F3");
    expect(find({ newLine: "enter" }, "a new line")).toBe("Enter, \\ Enter");
    expect(find({ newLine: "enter" }, "send it; while it works: steer")).toBe("no key");
  });
});
