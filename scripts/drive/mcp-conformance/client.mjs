// The client of `@gyre/mcp` as the conformance suite runs it: `node client.mjs URL`. It uses all that
// the server has, whichever scenario it is of. What the suite hands it are credentials, arguments of
// calls, and the consent that a person would give in a browser.
import { connectMcp } from "@gyre/mcp";

/** What a scenario gives a client: credentials, and the arguments of calls. */
const {
  client_id: clientId,
  client_secret: clientSecret,
  issuer,
  toolCalls = [],
} = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
/** The document that the suite takes for ours. */
const clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
const redirectUrl = "http://127.0.0.1:8976/callback";

const mcp = connectMcp({
  config: {
    url: process.argv[2] ?? "",
    oauth: { clientMetadataUrl, ...(clientId && { clientId, clientSecret, issuer }) },
  },
  // Consent: the page sends back at once, and no browser is needed to follow it.
  openLogin: async () => ({
    redirectUrl,
    async authorize(url, signal) {
      const response = await fetch(url, { redirect: "manual", signal });
      return new URL(response.headers.get("location") ?? "", url);
    },
  }),
  // A person who confirms, and leaves all else as it is.
  ask: async (question) => ({
    action: "accept",
    content:
      question.kind === "form"
        ? Object.fromEntries(
            question.fields.flatMap(({ name, type }) => (type === "boolean" ? [[name, true]] : [])),
          )
        : {},
  }),
});

try {
  const tools = await mcp.tools();
  for (const { name, inputSchema } of tools) {
    const given = toolCalls.find((/** @type {{ name: string }} */ call) => call.name === name);
    // Any object would do for one: a schema is one that shows what arrived of it.
    const values = given?.arguments ?? sample(inputSchema, tools[0]?.inputSchema);
    await attempt(() => mcp.call(name, values));
  }
  for (const { uri } of await mcp.resources()) await attempt(() => mcp.read(uri));
  for (const { name } of await mcp.prompts()) await attempt(() => mcp.prompt(name));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await mcp.close();
}

/** A request may fail without the rest being left. @param {() => Promise<unknown>} request */
async function attempt(request) {
  try {
    await request();
  } catch (error) {
    console.error(error);
  }
}

/**
 * Arguments that fit the properties of a schema.
 *
 * @param {Readonly<Record<string, unknown>>} schema
 * @param {unknown} object for arguments that are objects
 */
function sample({ properties }, object) {
  /** @type {Record<string, unknown>} */
  const values = { string: "text", number: 1, integer: 1, boolean: true, array: [], object };
  return Object.fromEntries(
    Object.entries(properties ?? {}).map(([name, { type }]) => [name, values[type] ?? null]),
  );
}
