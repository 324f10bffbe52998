export { type GeneratedImages, generateImage, type ImageOptions } from "./generate-image.ts";
export type { ImageWish } from "./services.ts";
export type { CallOptions } from "../calls/call.ts";
