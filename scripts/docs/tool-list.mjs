/**
 * The page that lists the tools of the catalog, in the order in which a model sees them.
 *
 * @param {Pick<typeof import("@gyre/tools/catalog"), "TOOLS" | "DEFAULT_TOOLS">} catalog
 * @returns {string}
 */
export function toolListPage({ TOOLS, DEFAULT_TOOLS }) {
  const rows = TOOLS.map(({ name, presentation: { kind }, aliases = [], needsOptions }) => {
    const use = DEFAULT_TOOLS.includes(name) ? "by default" : needsOptions ? "with options" : "";
    return `| \`${name}\` | ${kind} | ${use} | ${aliases.map((alias) => `\`${alias}\``).join(", ")} |`;
  });
  return `# List of tools

<!-- Written by scripts/docs/reference.mjs from the catalog of @gyre/tools. -->

What a toolset can have. [Tools](../../tools.md#the-tools-of-gyretools) says what each takes and what its limits are.

| tool | kind | there | other programs call it |
|---|---|---|---|
${rows.join("\n")}
`;
}
