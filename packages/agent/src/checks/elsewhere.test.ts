import { expect, it } from "vitest";
import { Agent } from "../index.ts";
import { checkShape } from "./checks.ts";
import { type Advice, ELSEWHERE, explainName, findHome } from "./elsewhere.ts";
import { NAMES, type Place } from "./names.ts";

const places = Object.keys(NAMES) as Place[];
const rows = places.flatMap((place) =>
  Object.entries(ELSEWHERE[place] ?? {})
    .filter(([name]) => !(name in NAMES[place]))
    .map(([name, entry]) => ({ place, name, entry })),
);

it("there are names for every place but limits, which a run checks, and the watchdog", () => {
  expect(rows.length).toBeGreaterThan(100);
  expect(places.filter((place) => !rows.some((row) => row.place === place))).toEqual([
    "limits",
    "watchdog",
  ]);
});

it.each(rows)("$name in $place: what is advised is an option where the advice says", (row) => {
  const { place, name, entry } = row;
  const text = explainName(place, name);
  expect(() => checkShape(place, { name: "a", [name]: () => {} })).toThrow(text);
  if (typeof entry === "object" && "event" in entry) return;
  const advice: Advice = typeof entry === "string" ? { options: [entry] } : entry;
  const home = findHome(place, advice);
  if (home !== place) expect(text).toContain(`of ${place}: write`);
  expect(text?.includes(`, of ${home}()`)).toBe(home !== place);
  for (const path of advice.options) {
    const [option = "", part] = path.split(".");
    expect(NAMES[home]).toHaveProperty(option);
    if (part !== undefined) expect(NAMES[option as Place]).toHaveProperty(part);
    const value = part === undefined ? undefined : { [part]: () => {} };
    const given = option === "middleware" ? [value ?? {}] : value;
    expect(() => checkShape(home, { name: "a", [option]: given })).not.toThrow();
  }
  if (advice.method) expect(Agent.prototype[advice.method]).toBeTypeOf("function");
});
