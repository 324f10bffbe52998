import type { FormatFiles } from "../files/table.ts";

/** The server is usually one's own, and says itself what is too large for it. */
export const FILES: FormatFiles = () => ({
  image: { types: ["image/png", "image/jpeg", "image/webp"], sources: ["base64"] },
});
