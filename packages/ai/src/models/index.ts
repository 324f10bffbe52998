export { catalog, CATALOG_DATE, CATALOG_SOURCES } from "./catalog.ts";
export * from "./find.ts";
export * from "./model.ts";
export * from "./service-models.ts";
export {
  mergeModels,
  parseUserModels,
  type UserModel,
  type UserModels,
  UserModelsError,
  type UserService,
  userServices,
} from "./user-models.ts";
export * from "./catalog-facts.ts";
