export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** How many bytes of a file are enough to recognize one. */
export const IMAGE_HEAD_BYTES = 12;

const PNG = "89504e470d0a1a0a";
const JPEG = "ffd8ff";
const GIFS = ["GIF87a", "GIF89a"];

/** Which kind of image a file is, judged by its first bytes; its name proves nothing. */
export function imageType(head: Uint8Array): ImageType | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const hex = bytes.toString("hex", 0, IMAGE_HEAD_BYTES);
  const text = bytes.toString("latin1", 0, IMAGE_HEAD_BYTES);
  if (hex.startsWith(PNG)) return "image/png";
  if (hex.startsWith(JPEG)) return "image/jpeg";
  if (GIFS.some((mark) => text.startsWith(mark))) return "image/gif";
  if (text.startsWith("RIFF") && text.startsWith("WEBP", 8)) return "image/webp";
  return undefined;
}

/** The media type of a document, of sound or of film that services may take, judged by its first bytes. */
export function mediaType(head: Uint8Array, name: string): string | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const text = bytes.toString("latin1", 0, MEDIA_HEAD_BYTES);
  const known = MEDIA.find(([, mark, offset = 0]) => text.startsWith(mark, offset));
  if (known?.[0] === "audio/mpeg" || (bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe6) === 0xe2)) {
    return "audio/mpeg";
  }
  if (known?.[0] === "video/webm" && /\.mkv$/i.test(name)) return "video/x-matroska";
  return known?.[0];
}

const MEDIA_HEAD_BYTES = 16;
/** The more exact first. */
const MEDIA: readonly (readonly [type: string, mark: string, offset?: number])[] = [
  ["application/pdf", "%PDF-"],
  ["audio/mp4", "ftypM4A", 4],
  ["video/quicktime", "ftypqt", 4],
  ["video/3gpp", "ftyp3g", 4],
  ["video/mp4", "ftyp", 4],
  ["audio/ogg", "OggS"],
  ["audio/flac", "fLaC"],
  ["audio/mpeg", "ID3"],
  ["audio/wav", "WAVE", 8],
  ["video/avi", "AVI ", 8],
  ["video/webm", "\x1aE\xdf\xa3"],
];

/** What begins with these bytes, written as Latin-1, at an offset. */
const KINDS: readonly (readonly [kind: string, mark: string, offset?: number])[] = [
  ["PDF document", "%PDF-"],
  ["ZIP archive", "PK\x03\x04"],
  ["gzip archive", "\x1f\x8b"],
  ["bzip2 archive", "BZh"],
  ["xz archive", "\xfd7zXZ\0"],
  ["Zstandard archive", "\x28\xb5\x2f\xfd"],
  ["7z archive", "7z\xbc\xaf\x27\x1c"],
  ["tar archive", "ustar", 257],
  ["ELF program", "\x7fELF"],
  ["Mach-O program", "\xcf\xfa\xed\xfe"],
  ["Windows program", "MZ"],
  ["WebAssembly module", "\0asm"],
  ["Java class", "\xca\xfe\xba\xbe"],
  ["SQLite database", "SQLite format 3\0"],
  ["WOFF font", "wOFF"],
  ["WOFF2 font", "wOF2"],
  ["BMP image", "BM"],
  ["TIFF image", "II*\0"],
  ["TIFF image", "MM\0*"],
  ["icon", "\0\0\x01\0"],
  ["MP4 media", "ftyp", 4],
  ["Ogg media", "OggS"],
  ["MP3 audio", "ID3"],
  ["WAVE audio", "WAVE", 8],
  ["RIFF media", "RIFF"],
  ["FLAC audio", "fLaC"],
  ["Matroska media", "\x1aE\xdf\xa3"],
];

/** What a file that is no text may be, for people; "binary file" where that is not known. */
export function binaryKind(head: Uint8Array): string {
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString("latin1");
  const known = KINDS.find(([, mark, offset = 0]) => text.startsWith(mark, offset));
  return known?.[0] ?? imageType(head) ?? "binary file";
}
