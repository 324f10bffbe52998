export { catalog, CATALOG_DATE, CATALOG_SOURCES } from "./catalog.ts";
export * from "./find.ts";
export * from "./service-models.ts";
export * from "./user-models.ts";
