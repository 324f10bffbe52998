import type { Confinement } from "@gyre/tools";
import { expect, it } from "vitest";
import { assumeMode } from "../text/choices.ts";
import { settleMode } from "./permissions.ts";
import type { ModeState } from "./types.ts";

async function settle(
  confinement: Confinement,
  mode: ModeState = { now: "auto", isAssumed: true },
): Promise<ModeState> {
  await settleMode(mode, () => Promise.resolve(confinement));
  return mode;
}

it("the mode that nothing was said of is auto where a sandbox holds, and ask elsewhere", async () => {
  expect(await settle(true)).toEqual({ now: "auto", isAssumed: false });
  expect(await settle(false)).toEqual({ now: "ask", isAssumed: false });
  expect(await settle("waived")).toEqual({ now: "ask", isAssumed: false });
});

it("a mode that was chosen stays, also one that is chosen while the sandbox is tried out", async () => {
  expect((await settle(false, { now: "auto", isAssumed: false })).now).toBe("auto");
  const mode: ModeState = { now: "auto", isAssumed: true };
  await settleMode(mode, () => {
    Object.assign(mode, { now: "plan", isAssumed: false });
    return Promise.resolve(false);
  });
  expect(mode.now).toBe("plan");
});

it("no sandbox is assumed on systems without one, nor where it is turned off", () => {
  expect(assumeMode({}, "linux")).toBe("auto");
  expect(assumeMode({}, "darwin")).toBe("auto");
  expect(assumeMode({}, "win32")).toBe("ask");
  expect(assumeMode({ sandbox: "none" }, "linux")).toBe("ask");
});
