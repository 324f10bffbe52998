import { SETTING_NAMES, SETTINGS } from "./table.ts";

/** The JSON Schema of a settings file, which editors complete and check with. */
export function settingsSchema(): Readonly<Record<string, unknown>> {
  const properties = SETTING_NAMES.map((name) => {
    const { about, kind, standard } = SETTINGS[name];
    const usual = standard === undefined ? {} : { default: standard };
    return [name, { description: about, ...kind.schema, ...usual }];
  });
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of gyre",
    description: "config.json of the user, or .gyre/config.json of a project.",
    type: "object",
    properties: {
      $schema: { description: "Where this schema is.", type: "string" },
      ...Object.fromEntries(properties),
    },
    additionalProperties: false,
  };
}
