export { catalogue, CATALOGUE_DATE, CATALOGUE_SOURCES } from "./catalogue.ts";
export * from "./find.ts";
export * from "./service-models.ts";
export * from "./user-models.ts";
