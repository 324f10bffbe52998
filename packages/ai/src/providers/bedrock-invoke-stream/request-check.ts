import { fixture as anthropic } from "../anthropic-messages/request-check.ts";
import { fixture as converse } from "../bedrock-converse-stream/request-check.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import { toFields, type RequestCheck } from "../testing/problems.ts";

/** "Inference request parameters" in Amazon's documentation: the model's own format without its name. */
const check: RequestCheck = (body, model = "") => {
  const { anthropic_beta: _, anthropic_version, schemaVersion, ...own } = toFields(body);
  if (!model.includes("claude")) {
    const problems = schemaVersion === "messages-v1" ? [] : ["schemaVersion: must be messages-v1"];
    return [...problems, ...converse.check(own, model)];
  }
  const problems =
    anthropic_version === "bedrock-2023-05-31"
      ? []
      : ["anthropic_version: must be bedrock-2023-05-31"];
  // The id of the model carries a region and a vendor here.
  const id = model.replace(/^.*anthropic\./, "").replace(/-v\d.*$/, "");
  return [...problems, ...anthropic.check({ ...own, model: id, stream: true }, id)];
};

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [
    createModel("bedrock-invoke-stream", "amazon-bedrock", "us.anthropic.claude-opus-4-6-v1"),
    createModel("bedrock-invoke-stream", "amazon-bedrock", "amazon.nova-pro-v1:0"),
  ],
  findShape: ({ id }) => (id.includes("claude") ? "anthropic-messages" : "bedrock-converse-stream"),
  respond(n, seal, by) {
    const isClaude = by.id.includes("claude");
    const { body = "" } = (isClaude ? anthropic : converse).respond(n, seal, by);
    const events = Array.isArray(body) ? body.join("") : String(body);
    const chunks = events
      .split("\n\n")
      .filter(Boolean)
      .map((event) => {
        const [, name = ""] = /^event: (.*)$/m.exec(event) ?? [];
        const [, data = ""] = /^data: (.*)$/m.exec(event) ?? [];
        const own = isClaude ? data : JSON.stringify({ [name]: JSON.parse(data) });
        return `event: chunk\ndata: ${JSON.stringify({ bytes: btoa(own) })}\n\n`;
      });
    // Under this type the events come as text, which is easier to write.
    return { headers: { "content-type": "application/json" }, body: chunks };
  },
};
