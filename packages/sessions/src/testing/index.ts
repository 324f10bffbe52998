export {
  describeSessionStorage,
  type RegisterTest,
  type StorageUnderTest,
} from "./session-storage.ts";
