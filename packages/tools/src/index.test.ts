import { expect, it } from "vitest";
import * as tools from "./index.ts";

it("has the notes that the pages offer", () => {
  const pad = new tools.NotePad("Goal: a fox.");
  expect(tools.notesTool(pad).name).toBe("notes");
  expect(pad.text).toBe("Goal: a fox.");
});
