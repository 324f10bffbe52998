import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ImageContent } from "@gyre/ai";

/** What services take. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const MAX_IMAGES = 10;
const TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};
/** A path that ends like an image: quoted, with spaces escaped, or a `file:` address. */
const PATHS =
  /"([^"\n]+\.(?:png|jpe?g|gif|webp))"|'([^'\n]+\.(?:png|jpe?g|gif|webp))'|((?:\\.|[^\s"'\\])+\.(?:png|jpe?g|gif|webp))(?=$|[\s.,;:!?)])/gi;

export interface FoundImages {
  images: ImageContent[];
  /** Why one that is there was not taken. */
  problems: string[];
}

/** The images that a prompt names by their paths. What is no file is left as text. */
export async function imagesIn(text: string, cwd: string): Promise<FoundImages> {
  const found: FoundImages = { images: [], problems: [] };
  const paths = new Set<string>();
  for (const [, quoted, single, bare] of text.matchAll(PATHS)) {
    const path = parsePath(quoted ?? single ?? (bare ?? "").replaceAll(/\\(.)/g, "$1"), cwd);
    if (path !== undefined) paths.add(path);
  }
  for (const path of paths) {
    const info = await stat(path).catch(() => undefined);
    if (!info?.isFile()) continue;
    if (found.images.length >= MAX_IMAGES) {
      found.problems.push(`${path} is not sent: ${MAX_IMAGES} images are the most.`);
    } else if (info.size > MAX_IMAGE_BYTES) {
      found.problems.push(`${path} is not sent: it is larger than 5 MB.`);
    } else {
      const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
      const mimeType = TYPES[ending] ?? "image/png";
      found.images.push({
        type: "image",
        data: (await readFile(path)).toString("base64"),
        mimeType,
      });
    }
  }
  return found;
}

function parsePath(written: string, cwd: string): string | undefined {
  try {
    if (written.startsWith("file://")) return fileURLToPath(written);
  } catch {
    // No path of this machine.
    return undefined;
  }
  if (written.startsWith("~/")) return resolve(homedir(), written.slice(2));
  return resolve(cwd, written.replace(/^@/, ""));
}
