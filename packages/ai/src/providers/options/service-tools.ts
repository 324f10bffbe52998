import type { ServiceTool } from "../../client/service-tools.ts";

/** The tools of a service: how each is written, and which fields of it the service has. */
export type ServiceToolTable<Tool extends { type: string } = ServiceTool> = {
  readonly [Type in Tool["type"]]?: ServiceToolRow<Extract<Tool, { type: Type }>>;
};

interface ServiceToolRow<Tool> {
  readonly fields: readonly Exclude<keyof Tool, "type">[];
  write(tool: Tool): object;
}

/**
 * The tools as a service takes them. Throws for the first that it does not have, or that has a field
 * that it does not have: a restriction that is not sent would be no restriction.
 */
export function writeServiceTools<Tool extends { type: string }>(
  tools: readonly Tool[],
  table: ServiceToolTable<Tool>,
  service: string,
): object[] {
  return tools.map((tool) => {
    // The row of a type is for tools of this type: that is how the table is made.
    const row = Object.hasOwn(table, tool.type)
      ? (table[tool.type as Tool["type"]] as ServiceToolRow<Tool> | undefined)
      : undefined;
    if (!row) {
      const others = Object.keys(table).join(", ");
      const instead = others === "" ? "Leave it out." : `It has ${others}.`;
      throw new TypeError(`${service} has no tool "${tool.type}". ${instead}`);
    }
    const taken: readonly PropertyKey[] = row.fields;
    for (const [name, value] of Object.entries(tool)) {
      if (name === "type" || value === undefined || taken.includes(name)) continue;
      const instead = taken.length > 0 ? ` It has ${taken.join(", ")}.` : "";
      throw new TypeError(
        `the tool "${tool.type}" of ${service} has no "${name}". Leave it out.${instead}`,
      );
    }
    return row.write(tool);
  });
}
