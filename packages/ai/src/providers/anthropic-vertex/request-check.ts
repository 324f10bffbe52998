import { fixture as anthropic } from "../anthropic-messages/request-check.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import { toFields, type RequestCheck } from "../testing/problems.ts";

/** "Use Claude models" in Google's documentation: the format of Anthropic without the model, with a version. */
const check: RequestCheck = (body, model = "") => {
  const { anthropic_version, ...own } = toFields(body);
  const problems =
    anthropic_version === "vertex-2023-10-16"
      ? []
      : ["anthropic_version: must be vertex-2023-10-16"];
  if ("model" in own) problems.push("model: is in the address");
  const id = model.replace("@", "-");
  return [...problems, ...anthropic.check({ ...own, model: id }, id)];
};

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [createModel("anthropic-vertex", "google-vertex-anthropic", "claude-opus-4-6")],
  findShape: () => "anthropic-messages",
  respond: (n, seal, by) => anthropic.respond(n, seal, by),
};
