export { cutText } from "./cut-text.ts";
export { humanSize } from "./human-size.ts";
export {
  binaryKind,
  IMAGE_HEAD_BYTES,
  imageType,
  type ImageType,
  mediaType,
} from "./image-type.ts";
export { fromSource, PROVENANCE_NOTE, type Source } from "./provenance.ts";
export { sanitize, type SanitizeOptions } from "./sanitize.ts";
