import { describe, expect, it } from "vitest";
import { costText, usageDetails } from "./usage-text.ts";

describe("a cost", () => {
  it("names the tools of the service that are not in it", () => {
    const usage = { input: 5, cost: { total: 0.5, notIncluded: ["webSearch", "codeExecution"] } };
    expect(costText(usage)).toBe("$0.50 without webSearch, codeExecution");
    expect(usageDetails(usage)).toBe("5 in · $0.50 without webSearch, codeExecution");
    expect(costText({ cost: { total: 0.5 } })).toBe("$0.50");
    expect(costText({})).toBe("a price that is not known");
  });
});
